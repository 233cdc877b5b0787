import WaitForGraph

/// Records as large as programs may make them, straight from their nodes.
struct LargeLockOrders {
  private var record = LockOrderRecord()
  private var nodes: [[Int]: Int] = [:]

  /// A thread takes locks, each inside those before; every request past the first occurs.
  private mutating func take(_ thread: Int, _ stack: [Int]) {
    var parent: Int?
    for lock in stack {
      let key = [parent ?? -1, lock]
      let node = nodes[key] ?? record.nodes.count
      if nodes[key] == nil {
        nodes[key] = node
        record.nodes.append(
          .init(parent: parent, lock: lock, mode: .exclusive, site: record.nodes.count))
      }
      if parent != nil {
        record.occurrences.append(
          .init(node: node, thread: thread, component: thread, start: 1, epoch: 1))
      }
      parent = node
    }
  }

  private mutating func addLocks(_ count: Int, ofOneClass: Bool = false) {
    record.locks = (0..<count).map { .init(kind: .mutex, classID: ofOneClass ? 0 : $0) }
  }

  /// As many threads as locks; each takes its own inside the one before.
  static func ring(of count: Int) -> LockOrderRecord {
    var large = LargeLockOrders()
    large.addLocks(count)
    for lock in 0..<count { large.take(lock, [lock, (lock + 1) % count]) }
    return large.record
  }

  /// One thread holds them all, and another takes the first inside the last.
  static func tower(of count: Int) -> LockOrderRecord {
    var large = LargeLockOrders()
    large.addLocks(count)
    large.take(0, Array(0..<count))
    large.take(1, [count - 1, 0])
    return large.record
  }

  /// Pairs of locks in one order everywhere, by eight threads.
  static func orderly(edges: Int) -> LockOrderRecord {
    var large = LargeLockOrders()
    large.addLocks(1000)
    var source = SplitMix(state: 7)
    for edge in 0..<edges {
      let pair = (0..<2).map { _ in Int.random(in: 0..<1000, using: &source) }
      if pair[0] != pair[1] { large.take(edge % 8, pair.sorted()) }
    }
    return large.record
  }

  /// Pairs in any order; of one class, or each for itself.
  static func wild(edges: Int, locks: Int, threads: Int, ofOneClass: Bool) -> LockOrderRecord {
    var large = LargeLockOrders()
    large.addLocks(locks, ofOneClass: ofOneClass)
    var source = SplitMix(state: 7)
    for edge in 0..<edges {
      let pair = (0..<2).map { _ in Int.random(in: 0..<locks, using: &source) }
      if pair[0] != pair[1] { large.take(edge % threads, pair) }
    }
    if ofOneClass { for index in large.record.nodes.indices { large.record.nodes[index].site = 0 } }
    return large.record
  }

  /// Two orders, each taken by ever new contexts, of which no two are concurrent; or all are.
  static func contexts(_ count: Int, areOrdered: Bool) -> LockOrderRecord {
    var recorder = OrderRecorder(locks: (0..<2).map { .init(kind: .mutex, classID: $0) })
    recorder.start(0)
    for context in 1...count {
      recorder.start(context, knowing: recorder.handOver(0))
      for lock in context.isMultiple(of: 2) ? [0, 1] : [1, 0] {
        recorder.take(context, lock, site: lock)
      }
      if areOrdered { recorder.learn(0, recorder.end(context)) }
    }
    return recorder.record
  }
}
