#if Detection
  internal import CHangcheck
  public import Dispatch

  // What takes a queue or a group takes a drop-in: the same calls over again, each passing the
  // original on. Where both would do (`.main`, `nil`) the original's call is meant, so these are
  // disfavoured. Another module may declare them once more; nothing here replaces anything.

  extension DispatchObject {
    /// Equals `setTarget(queue:)` with the original queue.
    @_disfavoredOverload public func setTarget(queue: InstrumentedQueue) {
      setTarget(queue: queue.original)
    }
  }

  extension Dispatch.DispatchQueue {
    /// Equals the original's initialiser with the original target.
    @_disfavoredOverload public convenience init(
      label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = [],
      autoreleaseFrequency: AutoreleaseFrequency = .inherit, target: InstrumentedQueue?
    ) {
      self.init(
        label: label, qos: qos, attributes: attributes,
        autoreleaseFrequency: autoreleaseFrequency, target: target?.original)
    }

    /// Equals `async(group:execute:)` with the original group, and is recorded as an enter.
    @inline(never) @_disfavoredOverload public func async(
      group: InstrumentedGroup, execute workItem: DispatchWorkItem
    ) {
      group.willRunBlock(hck_frame())
      guard RaceOrder.isOn else { return async(group: group.original, execute: workItem) }
      let isBarrier = RaceBlock.isBarrier(workItem)
      var block = RaceBlock(on: RaceBlock.object(self), isBarrier: isBarrier)
      block.before = group.orderKey
      async(
        group: group.original, flags: isBarrier ? .barrier : [], execute: block.performing(workItem)
      )
    }

    /// Equals `async(group:qos:flags:execute:)` with the original group, and is recorded as an
    /// enter.
    @inline(never) @_disfavoredOverload public func async(
      group: InstrumentedGroup?, qos: DispatchQoS = .unspecified,
      flags: DispatchWorkItemFlags = [],
      execute work: @escaping @Sendable @convention(block) () -> Void
    ) {
      if let group { group.willRunBlock(hck_frame()) }
      guard RaceOrder.isOn, let group else {
        return async(group: group?.original, qos: qos, flags: flags, execute: work)
      }
      var block = RaceBlock(on: RaceBlock.object(self), isBarrier: flags.contains(.barrier))
      block.before = group.orderKey
      async(group: group.original, qos: qos, flags: flags, execute: block.wrapping(work))
    }
  }

  extension Dispatch.DispatchGroup {
    /// Equals `notify(qos:flags:queue:execute:)` with the original queue.
    @_disfavoredOverload public func notify(
      qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], queue: InstrumentedQueue,
      execute work: @escaping @convention(block) () -> Void
    ) {
      notify(qos: qos, flags: flags, queue: queue.original, execute: work)
    }

    /// Equals `notify(queue:work:)` with the original queue.
    @_disfavoredOverload public func notify(queue: InstrumentedQueue, work: DispatchWorkItem) {
      notify(queue: queue.original, work: work)
    }
  }

  extension DispatchWorkItem {
    /// Equals `notify(qos:flags:queue:execute:)` with the original queue.
    @_disfavoredOverload public func notify(
      qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], queue: InstrumentedQueue,
      execute: @escaping @convention(block) () -> Void
    ) {
      guard RaceOrder.isOn else {
        return notify(qos: qos, flags: flags, queue: queue.original, execute: execute)
      }
      var block = RaceBlock(
        on: RaceBlock.object(queue.original), isBarrier: flags.contains(.barrier))
      // The item's end is not seen.
      block.beginsUnseen = true
      notify(
        qos: qos, flags: flags, queue: queue.original, execute: block.wrapping(once: execute))
    }

    /// Equals `notify(queue:execute:)` with the original queue.
    @_disfavoredOverload public func notify(queue: InstrumentedQueue, execute: DispatchWorkItem) {
      guard RaceOrder.isOn else { return notify(queue: queue.original, execute: execute) }
      let isBarrier = RaceBlock.isBarrier(execute)
      var block = RaceBlock(on: RaceBlock.object(queue.original), isBarrier: isBarrier)
      block.beginsUnseen = true
      notify(
        flags: isBarrier ? .barrier : [], queue: queue.original, execute: block.performing(execute))
    }
  }

  extension DispatchPredicate {
    /// Equals the case with the original queue.
    @_disfavoredOverload public static func onQueue(_ queue: InstrumentedQueue) -> Self {
      .onQueue(queue.original)
    }

    /// Equals the case with the original queue.
    @_disfavoredOverload public static func onQueueAsBarrier(_ queue: InstrumentedQueue) -> Self {
      .onQueueAsBarrier(queue.original)
    }

    /// Equals the case with the original queue.
    @_disfavoredOverload public static func notOnQueue(_ queue: InstrumentedQueue) -> Self {
      .notOnQueue(queue.original)
    }
  }

  extension DispatchData.Deallocator {
    /// Equals the case with the original queue.
    @_disfavoredOverload public static func custom(
      _ queue: InstrumentedQueue?, _ deallocator: @escaping @convention(block) () -> Void
    ) -> Self {
      .custom(queue?.original, deallocator)
    }
  }
#endif
