extension DispatchMemory {
  /// Something that waits in a queue's list for its turn.
  struct Item: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
      case block, workItem, function
      /// A thread blocked in a synchronous call.
      case syncWaiter(KernelThreadID)
      /// An item of a concurrent queue that was handed on to its target, and waits for a thread
      /// there; it counts as running there.
      case redirect(queue: UInt64)
      /// A queue that targets this one and has items of its own.
      case queue
      case source
      case groupNotify
      /// The library's own.
      case other
    }
    var address: UInt64
    var kind: Kind
    var isBarrier: Bool
    /// The group that this leaves when it has run.
    var group: UInt64?
    /// Of a work item: its waiters sleep on this group, which it leaves too.
    var ownGroup: UInt64?
    /// Of a notification: where it is to run.
    var queue: UInt64?
    /// What runs, to be named: a block's own function, or the function that was submitted; 0 where
    /// it cannot be told.
    var function: UInt64
    /// The function that the block forwards to, where the block is a Swift closure's.
    var closure: UInt64?
    var block: UInt64?
    var context: UInt64
  }

  /// What waits in a queue's list, the next one first. Nil where the address is no queue's.
  ///
  /// The list may change meanwhile: what two reads agree on is given, up to the first thing that is
  /// no item. Of a queue whose owner is blocked that is all, up to `limit`.
  func items(of queue: UInt64, limit: Int = 200) -> [Item]? {
    guard isQueue(queue), kind(of: queue) != .source else { return nil }
    return settled { self.rawItems(of: queue, limit: limit) }.map { item($0, isNotify: false) }
  }

  /// The list's records, unread for meaning.
  func rawItems(of queue: UInt64, limit: Int) -> [RemoteBytes] {
    guard let copy = RemoteBytes(memory, queue, DispatchLayout.queueBytes),
      copy.word(DispatchLayout.tail) != 0
    else { return [] }
    let head = copy.word(DispatchLayout.head)
    // Empty, or a root queue's head is being taken.
    guard head != 0, head != .max else { return [] }
    return walk(from: head, limit: limit)
  }

  func walk(from first: UInt64, limit: Int) -> [RemoteBytes] {
    var result: [RemoteBytes] = []
    var seen: Set<UInt64> = []
    var address = first
    while address != 0, result.count < limit, seen.insert(address).inserted,
      let copy = continuation(address), isItem(copy)
    {
      result.append(copy)
      address = copy.word(DispatchLayout.next)
    }
    return result
  }

  private func isItem(_ copy: RemoteBytes) -> Bool {
    guard copy.address % 8 == 0 else { return false }
    let flags = copy.word(0)
    if flags < 0x1000 { return flags & ~0x3ff == 0 && flags & 0x101 != 0 }
    return layout.continuationTables.contains(flags) || layout.kinds[flags] != nil
  }

  /// The beginning on which two reads agree.
  func settled(_ read: () -> [RemoteBytes]) -> [RemoteBytes] {
    let first = read()
    if first.isEmpty { return [] }
    let second = read()
    let agreed = zip(first, second).prefix { a, b in
      a.address == b.address && a.word(0) == b.word(0) && a.word(0x20) == b.word(0x20)
        && a.word(0x28) == b.word(0x28)
    }
    return agreed.map(\.1)
  }

  func item(_ copy: RemoteBytes, isNotify: Bool) -> Item {
    let flags = copy.word(0)
    var item = Item(
      address: copy.address, kind: .other, isBarrier: false, function: 0,
      context: copy.word(0x28))
    if flags >= 0x1000 {
      if let kind = layout.kinds[flags] {
        item.kind = kind == .source ? .source : .queue
        item.context = copy.word(DispatchLayout.context)
        if kind == .source, let handler = handler(ofSource: copy.address) {
          item.function = handler.function
          item.closure = handler.closure
          item.block = handler.block
        }
      } else if isQueue(copy.word(0x30)), let real = continuation(copy.word(0x38)),
        real.word(0) < 0x1000, isItem(real)
      {
        item = self.item(real, isNotify: false)
        item.address = copy.address
        item.kind = .redirect(queue: copy.word(0x30))
      }
      return item
    }
    item.isBarrier = flags & 2 != 0
    if flags & 1 != 0, let context = syncContext(at: copy.address) {
      let (code, block) = code(of: context)
      item.kind = .syncWaiter(KernelThreadID(Int32(truncatingIfNeeded: context.word32(0x64))))
      item.context = context.word(0x48)
      item.block = block
      item.function = code.function
      item.closure = code.closure
      return item
    }
    let code = code(flags: flags, function: copy.word(0x20), context: copy.word(0x28))
    item.function = code.function
    item.closure = code.closure
    item.block = flags & 0x10 != 0 ? copy.word(0x28) : nil
    item.kind = flags & 0x20 != 0 ? .workItem : flags & 0x10 != 0 ? .block : .function
    if flags & 8 != 0, kind(of: copy.word(0x30)) == .group { item.group = copy.word(0x30) }
    if flags & 0x20 != 0 { item.ownGroup = workItem(copy.word(0x28))?.group }
    if isNotify {
      item.kind = .groupNotify
      item.queue = isQueue(copy.word(0x30)) ? copy.word(0x30) : nil
    }
    return item
  }

  /// What an item runs: a block's function rather than the library's, which calls it.
  func code(flags: UInt64, function: UInt64, context: UInt64) -> (
    function: UInt64, closure: UInt64?
  ) {
    guard flags & 0x10 != 0 else { return (isCode(function) ? function : 0, nil) }
    var block = context
    if flags & 0x20 != 0 || isWorkItem(block) {
      // What `DispatchWorkItem` makes holds the program's block.
      guard let inner = self.block(inItem: block) else { return (0, nil) }
      block = inner
    }
    guard let literal = RemoteBytes(memory, block, 0x30), isCode(literal.word(0x10)) else {
      return (0, nil)
    }
    // A Swift closure that is passed as a block is captured by a block made for it: its function
    // and context, nothing else.
    let size = memory.word(literal.word(0x18) &+ 8)
    let closure = size == 0x30 && isCode(literal.word(0x20)) ? literal.word(0x20) : nil
    return (literal.word(0x10), closure)
  }

  /// What `DispatchWorkItem` keeps with its block.
  struct WorkItem: Hashable, Sendable {
    /// Its waiters sleep on this group.
    var group: UInt64?
    /// Where it was submitted; nil again once it is waited for.
    var queue: UInt64?
    var isCancelled: Bool
    var hasRun: Bool
    /// The thread that ran it by `perform` or `sync` last. Who runs it for a queue is not kept.
    var runner: KernelThreadID?
  }

  func workItem(_ block: UInt64) -> WorkItem? {
    guard let copy = RemoteBytes(memory, block, 0x68), copy.word(0x20) == 0xd159_b10c else {
      return nil
    }
    let group = copy.word(0x50)
    let queue = copy.word(0x58)
    let runner = Int32(truncatingIfNeeded: copy.word32(0x60))
    return WorkItem(
      group: kind(of: group) == .group ? group : nil, queue: isQueue(queue) ? queue : nil,
      isCancelled: copy.word32(0x30) & 1 != 0, hasRun: copy.word32(0x34) != 0,
      runner: runner > 0 ? KernelThreadID(runner) : nil)
  }

  func isWorkItem(_ block: UInt64) -> Bool { memory.word(block &+ 0x20) == 0xd159_b10c }

  /// Queues that have items and can be reached: the main queue, those on the lists of the pool, and
  /// what the given threads run on.
  func pendingQueues(pthreads: some Sequence<UInt64> = []) -> [UInt64] {
    var result: [UInt64] = []
    var seen: Set<UInt64> = []
    var open = [layout.mainQueue] + layout.roots
    for pthread in pthreads { open += queuesOfThread(pthread: pthread) }
    while let queue = open.popLast(), seen.count < 4096 {
      guard seen.insert(queue).inserted, isQueue(queue), kind(of: queue) != .source else {
        continue
      }
      let items = rawItems(of: queue, limit: 500)
      if items.isEmpty { continue }
      result.append(queue)
      for item in items where item.word(0) >= 0x1000 {
        // A queue itself, or one whose item was handed on.
        open.append(
          layout.continuationTables.contains(item.word(0)) ? item.word(0x30) : item.address)
      }
    }
    return result
  }
}
