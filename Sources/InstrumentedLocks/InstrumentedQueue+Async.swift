#if Detection
  internal import CHangcheck
  public import Dispatch
  internal import Recorder

  extension InstrumentedQueue {
    /// Submits a work item; equals `DispatchQueue.async(execute:)` with a work item.
    public func async(execute workItem: DispatchWorkItem) {
      guard RaceOrder.isOn else { return original.async(execute: workItem) }
      let (flags, work) = ordered(workItem)
      original.async(flags: flags, execute: work)
    }

    /// Submits a work item that a group waits for; equals `DispatchQueue.async(group:execute:)`.
    @inline(never) public func async(group: InstrumentedGroup, execute workItem: DispatchWorkItem) {
      group.willRunBlock(hck_frame())
      guard RaceOrder.isOn else { return original.async(group: group.original, execute: workItem) }
      let (flags, work) = ordered(workItem, group)
      original.async(group: group.original, flags: flags, execute: work)
    }

    /// Submits a work item that a group waits for that is no drop-in.
    @_disfavoredOverload public func async(
      group: Dispatch.DispatchGroup, execute workItem: DispatchWorkItem
    ) {
      guard RaceOrder.isOn else { return original.async(group: group, execute: workItem) }
      let (flags, work) = ordered(workItem)
      original.async(group: group, flags: flags, execute: work)
    }

    /// Submits a block; equals `DispatchQueue.async(group:qos:flags:execute:)`.
    @inline(never) public func async(
      group: InstrumentedGroup? = nil, qos: DispatchQoS = .unspecified,
      flags: DispatchWorkItemFlags = [],
      execute work: @escaping @Sendable @convention(block) () -> Void
    ) {
      if group != nil || !flags.isEmpty { willRunBlock(group, flags, hck_frame()) }
      original.async(
        group: group?.original, qos: qos, flags: flags, execute: ordered(work, flags, group))
    }

    /// Submits a block that a group waits for that is no drop-in.
    @_disfavoredOverload public func async(
      group: Dispatch.DispatchGroup?, qos: DispatchQoS = .unspecified,
      flags: DispatchWorkItemFlags = [],
      execute work: @escaping @Sendable @convention(block) () -> Void
    ) {
      if !flags.isEmpty { willRunBlock(nil, flags, hck_frame()) }
      // Who waits for that group is not seen.
      original.async(
        group: group, qos: qos, flags: flags,
        execute: ordered(work, flags, endsUnseen: group != nil))
    }

    /// Submits a block at a time of the clock that stands still while the machine sleeps; equals
    /// `DispatchQueue.asyncAfter(deadline:qos:flags:execute:)`.
    public func asyncAfter(
      deadline: DispatchTime, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
      execute work: @escaping @Sendable @convention(block) () -> Void
    ) {
      original.asyncAfter(
        deadline: deadline, qos: qos, flags: flags, execute: ordered(work, flags))
    }

    /// Submits a block at a time of day; equals
    /// `DispatchQueue.asyncAfter(wallDeadline:qos:flags:execute:)`.
    public func asyncAfter(
      wallDeadline: DispatchWallTime, qos: DispatchQoS = .unspecified,
      flags: DispatchWorkItemFlags = [],
      execute work: @escaping @Sendable @convention(block) () -> Void
    ) {
      original.asyncAfter(
        wallDeadline: wallDeadline, qos: qos, flags: flags, execute: ordered(work, flags))
    }

    /// Submits a work item later; equals `DispatchQueue.asyncAfter(deadline:execute:)`.
    public func asyncAfter(deadline: DispatchTime, execute: DispatchWorkItem) {
      guard RaceOrder.isOn else {
        return original.asyncAfter(deadline: deadline, execute: execute)
      }
      let (flags, work) = ordered(execute)
      original.asyncAfter(deadline: deadline, flags: flags, execute: work)
    }

    /// Submits a work item at a time of day; equals
    /// `DispatchQueue.asyncAfter(wallDeadline:execute:)`.
    public func asyncAfter(wallDeadline: DispatchWallTime, execute: DispatchWorkItem) {
      guard RaceOrder.isOn else {
        return original.asyncAfter(wallDeadline: wallDeadline, execute: execute)
      }
      let (flags, work) = ordered(execute)
      original.asyncAfter(wallDeadline: wallDeadline, flags: flags, execute: work)
    }

    private func ordered(
      _ work: @escaping RaceBlock.Work, _ flags: DispatchWorkItemFlags,
      _ group: InstrumentedGroup? = nil, endsUnseen: Bool = false
    ) -> RaceBlock.Work {
      guard RaceOrder.isOn else { return work }
      var block = RaceBlock(on: orderedObject, isBarrier: flags.contains(.barrier))
      block.before = group?.orderKey ?? 0
      block.endsUnseen = endsUnseen
      return block.wrapping(work)
    }

    private func ordered(
      _ item: DispatchWorkItem, _ group: InstrumentedGroup? = nil
    ) -> (DispatchWorkItemFlags, RaceBlock.Work) {
      let isBarrier = RaceBlock.isBarrier(item)
      var block = RaceBlock(on: orderedObject, isBarrier: isBarrier)
      block.before = group?.orderKey ?? 0
      return (isBarrier ? .barrier : [], block.performing(item))
    }

    /// What `RaceOrder` knows the queue by.
    var orderedObject: UnsafeRawPointer { RaceBlock.object(original) }

    @inline(never) private func willRunBlock(
      _ group: InstrumentedGroup?, _ flags: DispatchWorkItemFlags, _ frame: UnsafeRawPointer
    ) {
      group?.willRunBlock(frame)
      if flags.contains(.barrier), recordingSlot(word) != nil { checkBarrier(frame) }
    }
  }
#endif
