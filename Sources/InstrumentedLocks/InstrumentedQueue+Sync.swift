// The original's overloads are what they are.
// swift-format-ignore-file: AmbiguousTrailingClosureOverload

#if Detection
  internal import CHangcheck
  public import Dispatch
  internal import Recorder

  // The original runs the block on the calling thread, or blocks it until another one has run it:
  // either way the queue is this thread's from somewhere in the call to its end. Where the wait
  // ends the recorder cannot see; whoever reads asks libdispatch's memory and the kernel.
  extension InstrumentedQueue {
    /// Runs `workItem` on the queue and waits for its end; equals `DispatchQueue.sync(execute:)`.
    @inline(never) public func sync(execute workItem: () -> Void) {
      let frame = hck_frame()
      guard let slot = recordingSlot(syncWord) else { return run(workItem) }
      let before = enter(slot, syncWord, frame)
      run(workItem)
      leave(slot, before)
    }

    /// Runs a work item on the queue and waits for its end; equals `DispatchQueue.sync(execute:)`
    /// with a work item. One with the barrier flag is recorded like one without.
    @inline(never) public func sync(execute workItem: DispatchWorkItem) {
      let frame = hck_frame()
      guard let slot = recordingSlot(syncWord) else { return run(workItem) }
      let before = enter(slot, syncWord, frame)
      run(workItem)
      leave(slot, before)
    }

    @inline(__always) private func run(_ work: () -> Void) {
      guard let (block, back) = order(isBarrier: false) else {
        return original.sync(execute: work)
      }
      original.sync { block.run(work) }
      RaceOrder.acquire(RaceOrder.key(back))
    }

    private func run(_ item: DispatchWorkItem) {
      guard let (block, back) = order(isBarrier: RaceBlock.isBarrier(item)) else {
        return original.sync(execute: item)
      }
      original.sync(flags: block.isBarrier ? .barrier : []) { block.perform(item) }
      RaceOrder.acquire(RaceOrder.key(back))
    }

    /// Runs `work` on the queue and returns what it returns; equals `DispatchQueue.sync(execute:)`
    /// with a result.
    @inline(never) public func sync<T>(execute work: () throws -> T) rethrows -> T {
      let frame = hck_frame()
      guard let slot = recordingSlot(syncWord) else { return try run(nil, work) }
      let before = enter(slot, syncWord, frame)
      defer { leave(slot, before) }
      return try run(nil, work)
    }

    /// Runs `work` on the queue, as a barrier if `flags` say so, and returns what it returns;
    /// equals `DispatchQueue.sync(flags:execute:)`.
    @inline(never) public func sync<T>(
      flags: DispatchWorkItemFlags, execute work: () throws -> T
    ) rethrows -> T {
      let frame = hck_frame()
      let wanted = flags.contains(.barrier) ? word : syncWord
      guard let slot = recordingSlot(wanted) else {
        return try run(flags, work)
      }
      if flags.contains(.barrier) { checkBarrier(frame) }
      let before = enter(slot, wanted, frame)
      defer { leave(slot, before) }
      return try run(flags, work)
    }

    @inline(__always) private func run<T>(
      _ flags: DispatchWorkItemFlags?, _ work: () throws -> T
    ) rethrows -> T {
      guard let (block, back) = order(isBarrier: flags?.contains(.barrier) ?? false) else {
        // With flags the original goes another way.
        guard let flags else { return try original.sync(execute: work) }
        return try original.sync(flags: flags, execute: work)
      }
      defer { RaceOrder.acquire(RaceOrder.key(back)) }
      return try original.sync(flags: flags ?? []) { try block.run(work) }
    }

    /// To and fro: the main queue's blocks run on the main thread, whoever waits for them.
    @inline(__always) private func order(isBarrier: Bool) -> (RaceBlock, back: Handoff)? {
      guard RaceOrder.isOn else { return nil }
      var block = RaceBlock(on: orderedObject, isBarrier: isBarrier)
      let back = Handoff()
      block.before = RaceOrder.key(back)
      return (block, back)
    }

    @inline(__always)
    private func enter(
      _ slot: Slot, _ wanted: ResourceWord, _ frame: UnsafeRawPointer
    ) -> ResourceWord {
      if let object, hck_queue_runs_on(object, slot.pointee.tid) != 0 { ownedAlready(frame) }
      let before = beginWait(slot, wanted, in: frame)
      acquired(slot, wanted, frame)
      return before
    }

    @inline(__always)
    private func leave(_ slot: Slot, _ before: ResourceWord) {
      released(slot, word)
      endWait(slot, before)
    }

    @inline(never) private func ownedAlready(_ frame: UnsafeRawPointer) {
      raise(HCK_ALARM_SYNC_SELF, word, waits: true, frame)
    }

    /// A barrier on a global queue is none.
    @inline(never) func checkBarrier(_ frame: UnsafeRawPointer) {
      guard let object, hck_queue_is_root(object) != 0 else { return }
      raise(HCK_ALARM_BARRIER_ON_GLOBAL, word, frame)
    }
  }
#endif
