#if Detection
  internal import CHangcheck
  public import Dispatch
  internal import Recorder

  extension InstrumentedQueue {
    /// Submits a work item; equals `DispatchQueue.async(execute:)` with a work item.
    public func async(execute workItem: DispatchWorkItem) { original.async(execute: workItem) }

    /// Submits a work item that a group waits for; equals `DispatchQueue.async(group:execute:)`.
    @inline(never) public func async(group: InstrumentedGroup, execute workItem: DispatchWorkItem) {
      group.willRunBlock(hck_frame())
      original.async(group: group.original, execute: workItem)
    }

    /// Submits a work item that a group waits for that is no drop-in.
    @_disfavoredOverload public func async(
      group: Dispatch.DispatchGroup, execute workItem: DispatchWorkItem
    ) {
      original.async(group: group, execute: workItem)
    }

    /// Submits a block; equals `DispatchQueue.async(group:qos:flags:execute:)`.
    @inline(never) public func async(
      group: InstrumentedGroup? = nil, qos: DispatchQoS = .unspecified,
      flags: DispatchWorkItemFlags = [],
      execute work: @escaping @Sendable @convention(block) () -> Void
    ) {
      if group != nil || !flags.isEmpty { willRunBlock(group, flags, hck_frame()) }
      original.async(group: group?.original, qos: qos, flags: flags, execute: work)
    }

    /// Submits a block that a group waits for that is no drop-in.
    @_disfavoredOverload public func async(
      group: Dispatch.DispatchGroup?, qos: DispatchQoS = .unspecified,
      flags: DispatchWorkItemFlags = [],
      execute work: @escaping @Sendable @convention(block) () -> Void
    ) {
      if !flags.isEmpty { willRunBlock(nil, flags, hck_frame()) }
      original.async(group: group, qos: qos, flags: flags, execute: work)
    }

    /// Submits a block at a time of the clock that stands still while the machine sleeps; equals
    /// `DispatchQueue.asyncAfter(deadline:qos:flags:execute:)`.
    public func asyncAfter(
      deadline: DispatchTime, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
      execute work: @escaping @Sendable @convention(block) () -> Void
    ) {
      original.asyncAfter(deadline: deadline, qos: qos, flags: flags, execute: work)
    }

    /// Submits a block at a time of day; equals
    /// `DispatchQueue.asyncAfter(wallDeadline:qos:flags:execute:)`.
    public func asyncAfter(
      wallDeadline: DispatchWallTime, qos: DispatchQoS = .unspecified,
      flags: DispatchWorkItemFlags = [],
      execute work: @escaping @Sendable @convention(block) () -> Void
    ) {
      original.asyncAfter(wallDeadline: wallDeadline, qos: qos, flags: flags, execute: work)
    }

    /// Submits a work item later; equals `DispatchQueue.asyncAfter(deadline:execute:)`.
    public func asyncAfter(deadline: DispatchTime, execute: DispatchWorkItem) {
      original.asyncAfter(deadline: deadline, execute: execute)
    }

    /// Submits a work item at a time of day; equals
    /// `DispatchQueue.asyncAfter(wallDeadline:execute:)`.
    public func asyncAfter(wallDeadline: DispatchWallTime, execute: DispatchWorkItem) {
      original.asyncAfter(wallDeadline: wallDeadline, execute: execute)
    }

    @inline(never) private func willRunBlock(
      _ group: InstrumentedGroup?, _ flags: DispatchWorkItemFlags, _ frame: UnsafeRawPointer
    ) {
      group?.willRunBlock(frame)
      if flags.contains(.barrier), recordingSlot(word) != nil { checkBarrier(frame) }
    }
  }
#endif
