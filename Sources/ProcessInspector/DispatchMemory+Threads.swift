extension DispatchMemory {
  /// Every queue that a thread runs on now, innermost first: the one whose item it runs, the ones
  /// outside of nested synchronous calls, and the targets of each, since those are held with it.
  /// A thread that never ran an item has none; the first thread has the main queue from its start.
  ///
  /// A global queue is listed only where the thread drains it.
  func queuesOfThread(pthread: UInt64) -> [UInt64] { threadFrames(pthread: pthread).queues }

  /// The same, and whose work it does, where it runs another thread's `sync` in its stead: a block
  /// for the main queue.
  func threadFrames(pthread: UInt64) -> (queues: [UInt64], onBehalfOf: KernelThreadID?) {
    var result: [UInt64] = []
    guard let data = threadData(pthread), data.word32(0) != 0 else { return ([], nil) }
    func add(_ queue: UInt64, isInner: Bool) {
      for (index, member) in targetChain(queue).enumerated()
      where !result.contains(member) && (index == 0 && !isInner || !layout.isRoot(member)) {
        result.append(member)
      }
    }
    var queue = data.word(8)
    var frame = data.word(16)
    var steps = 0
    while queue != 0, isQueue(queue), steps < 256 {
      steps += 1
      if frame == 0 {
        add(queue, isInner: false)
        return (result, nil)
      }
      // apply runs on the global queue in the midst of others.
      add(queue, isInner: true)
      if let context = syncContext(at: frame &- 0x50) {
        return (result, KernelThreadID(Int32(truncatingIfNeeded: context.word32(0x64))))
      }
      guard let outer = RemoteBytes(memory, frame, 16) else { break }
      queue = outer.word(0)
      frame = outer.word(8)
    }
    return (result, nil)
  }

  /// Whether a thread runs queued items at this moment: one of the pool, or the first thread, which is
  /// on the main queue from its start without running any. A thread of the program's own in a
  /// synchronous call runs that call's block and no other.
  func runsItems(pthread: UInt64, isMain: Bool) -> Bool {
    guard let data = threadData(pthread), data.word32(0) != 0, data.word(8) != 0 else {
      return false
    }
    if isMain && data.word(16) != 0 { return true }
    return queuesOfThread(pthread: pthread).contains(where: layout.isRoot)
  }

  /// Whether an address lies on the outermost frames of a thread's stack, which ends below its
  /// descriptor and its thread-locals.
  func endOfStack(pthread: UInt64, mentions address: UInt64) -> Bool {
    let bytes = 16 << 10
    guard pthread > UInt64(bytes), let end = RemoteBytes(memory, pthread &- UInt64(bytes), bytes)
    else { return false }
    return (0..<end.words).contains { end.word($0 * 8) == address }
  }

  /// libdispatch's thread-local block of a thread: its id, the queue, the frame.
  private func threadData(_ pthread: UInt64) -> RemoteBytes? {
    // The thread's vector of thread-local blocks: 16 bytes each, the first holds its length.
    guard let head = RemoteBytes(memory, pthread, 24), head.word(16) == pthread,
      let block = memory.word(head.word(8) &+ 16 &* layout.tlsModule), block != 0, block != .max
    else { return nil }
    return RemoteBytes(memory, block &+ layout.tlsOffset, 24)
  }

  func isManager(_ tid: KernelThreadID) -> Bool {
    queue(layout.managerQueue)?.owner == tid
  }

  /// A thread of the pool that has nothing to do sleeps there, and goes by itself some time later.
  func isIdleWorker(futex address: UInt64) -> Bool { layout.idleWords.contains(address) }

  /// What a thread waits for that is blocked in a synchronous call.
  struct SyncWait: Hashable, Sendable {
    /// Whose turn it waits for: the queue that was asked for, or a target of it.
    var queue: UInt64
    /// The queue that the program named.
    var topQueue: UInt64
    var isBarrier: Bool
    /// `asyncAndWait`, whose block runs on the queue's own thread.
    var isAsyncAndWait: Bool
    var function: UInt64
    var block: UInt64?
    /// The function that the block forwards to, where the block is a Swift closure's.
    var closure: UInt64?
    var waiterTid: KernelThreadID
  }

  /// The call of a thread that sleeps at `address`; nil where that is no synchronous call's word.
  func syncWait(futex address: UInt64, tid: KernelThreadID) -> SyncWait? {
    guard let context = syncContext(at: address &- UInt64(DispatchLayout.syncWord)),
      context.word32(0x64) == UInt32(bitPattern: tid.rawValue)
    else { return nil }
    let top = context.word(0x38)
    guard isQueue(top) else { return nil }
    let flags = context.word(0)
    let (code, block) = code(of: context)
    return SyncWait(
      queue: awaited(context.address, top) ?? top, topQueue: top, isBarrier: flags & 2 != 0,
      isAsyncAndWait: flags & 0x80 != 0, function: code.function, block: block,
      closure: code.closure, waiterTid: tid)
  }

  /// A synchronous call's record on its thread's stack.
  func syncContext(at address: UInt64) -> RemoteBytes? {
    guard address % 8 == 0, let copy = RemoteBytes(memory, address, DispatchLayout.syncBytes),
      copy.word(0) & ~0x3ff == 0, copy.word(0) & 1 != 0, copy.word(0x28) == address,
      layout.syncInvoke == nil || copy.word(0x20) == layout.syncInvoke
    else { return nil }
    return copy
  }

  /// What a synchronous call runs. On its way to a target queue it loses the mark of a block.
  func code(of context: RemoteBytes) -> (code: (function: UInt64, closure: UInt64?), block: UInt64?)
  {
    let function = context.word(0x40)
    let argument = context.word(0x48)
    let isBlock =
      context.word(0) & 0x10 != 0
      || (isCode(function) && memory.word(argument &+ 0x10) == function)
    return (
      code(flags: isBlock ? 0x10 : 0, function: function, context: argument),
      isBlock ? argument : nil
    )
  }

  /// On whose list a synchronous call stands.
  private func awaited(_ context: UInt64, _ top: UInt64) -> UInt64? {
    let chain = targetChain(top)
    if chain.filter({ !layout.isRoot($0) }).count == 1 { return top }
    return chain.first { rawItems(of: $0, limit: 500).contains { $0.address == context } }
  }
}
