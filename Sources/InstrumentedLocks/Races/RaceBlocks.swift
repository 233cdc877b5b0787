#if Detection
  internal import CHangcheck
  internal import Dispatch
  internal import Recorder

  /// What comes before a block runs, from where it is submitted.
  final class Handoff: Sendable {
    init() { RaceOrder.release(RaceOrder.key(self)) }
    deinit { RaceOrder.ends(RaceOrder.key(self)) }
  }

  /// Where a block runs and what its run is ordered with. Made where it is submitted, and only while
  /// there are checked values.
  struct RaceBlock: Sendable {
    private let handoff: Handoff?
    private let queue: UInt64
    let isBarrier: Bool
    /// What it comes after, and what its end is before; 0 for nothing.
    var after: UInt64 = 0
    var before: UInt64 = 0
    /// It comes after what was not seen, or its end is before what will not be.
    var beginsUnseen = false
    var endsUnseen = false
    private var isWorkItem = false

    /// `queue`: libdispatch's object.
    init(on queue: UnsafeRawPointer?, isBarrier: Bool = false, handoff: Handoff? = Handoff()) {
      self.handoff = handoff
      self.queue = UInt64(UInt(bitPattern: queue))
      self.isBarrier = isBarrier
    }

    func run<T>(_ work: () throws -> T) rethrows -> T {
      let outer = beginContext()
      begin()
      defer {
        end()
        endContext(outer)
      }
      return try work()
    }

    /// For lock orders: a block that no other one runs in is a context of its own.
    private func beginContext() -> OuterContext? {
      guard hck_learns_lock_orders() != 0, let slot = currentSlot() else { return nil }
      let outer = isAtItsBase(slot) ? beginBlock(slot, knowing: 0) : nil
      if let handoff { takeOver(slot, RaceOrder.key(handoff)) }
      if after != 0 { takeOver(slot, after) }
      if beginsUnseen { takeOverAll(slot) }
      return outer
    }

    private func endContext(_ outer: OuterContext?) {
      guard hck_learns_lock_orders() != 0, let slot = currentSlot() else { return }
      if before != 0 { handOver(slot, toObject: before) }
      if endsUnseen { handOverToAll(slot) }
      if let outer { endBlock(slot, outer) }
    }

    private func begin() {
      guard hck_is_racing() != 0,
        let thread = hck_race_thread_get() ?? RaceThreads.enroll(isKnown: !beginsUnseen)
      else { return }
      if beginsUnseen { RaceThreads.joinAll(thread) }
      thread.pointee.depth += 1
      if let handoff { SyncClocks.acquire(RaceOrder.key(handoff), thread) }
      if after != 0 { SyncClocks.acquire(after, thread) }
      forEachQueue { RaceOrder.tookNow($0) }
      guard isWorkItem else { return }
      thread.pointee.unseen += 1
      RaceThreads.settle(thread)
    }

    private func end() {
      guard hck_is_racing() != 0, let thread = hck_race_thread_get() else { return }
      forEachQueue { RaceOrder.givesNow($0) }
      if isWorkItem { thread.pointee.unseen -= min(1, thread.pointee.unseen) }
      if before != 0 { RaceOrder.release(before, thread) }
      if endsUnseen { RaceOrder.releaseAll() }
      if thread.pointee.depth > 0 { thread.pointee.depth -= 1 }
    }

    /// The queue and those that it leads to, but for global ones, where blocks run as they come.
    private func forEachQueue(_ body: (ResourceWord) -> Void) {
      guard let first = UnsafeRawPointer(bitPattern: UInt(queue)) else { return }
      guard DispatchObjects.areKnown else { return body(resourceWord(first, HCK_QUEUE)) }
      var next = first
      // As deep as libdispatch itself looks, and more.
      for _ in 0..<64 {
        if hck_queue_is_root(next) != 0 { return }
        let isAlone = hck_queue_width(next) <= 1 || (isBarrier && next == first)
        body(resourceWord(next, HCK_QUEUE, isAlone ? 0 : sharedBit))
        guard let target = hck_queue_target(next) else { return }
        next = UnsafeRawPointer(target)
      }
    }
  }

  extension RaceBlock {
    typealias Work = @Sendable @convention(block) () -> Void

    /// The same block, with the order that it makes told.
    func wrapping(_ work: @escaping Work) -> Work { { run(work) } }

    /// The same of a block that need not be safe to hand over: libdispatch would run it elsewhere
    /// just so.
    func wrapping(
      once work: @escaping @convention(block) () -> Void
    ) -> @convention(block) () -> Void { { run(work) } }

    /// libdispatch's object, or what stands for it.
    static func object(_ queue: Dispatch.DispatchQueue) -> UnsafeRawPointer {
      UnsafeRawPointer(
        DispatchObjects.object(behind: queue) ?? Unmanaged.passUnretained(queue).toOpaque())
    }

    /// A block that runs a work item, which it cannot wrap: libdispatch knows items by their blocks.
    /// Who waits for the item is not seen.
    func performing(_ item: DispatchWorkItem) -> Work {
      nonisolated(unsafe) let item = item  // libdispatch would run it on that thread as well.
      return { perform(item) }
    }

    func perform(_ item: DispatchWorkItem) {
      var block = self
      block.isWorkItem = true
      block.run { item.perform() }
    }

    /// Whether an item was made as a barrier.
    static func isBarrier(_ item: DispatchWorkItem) -> Bool {
      // Right behind the header of a Swift object, as all that the overlay's classes keep.
      hck_block_is_barrier(
        Unmanaged.passUnretained(item).toOpaque().load(
          fromByteOffset: 16, as: UnsafeRawPointer?.self)
      ) != 0
    }
  }
#endif
