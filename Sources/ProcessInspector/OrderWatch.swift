internal import CHangcheck
internal import HangReport
internal import WaitForGraph

/// Watches one process's log of lock orders for cycles. Confined to one thread.
final class OrderWatch {
  /// A cycle in the log's numbers.
  struct Cycle {
    struct Step {
      var occurrence: RecordedOrders.Occurrence
      var holds: RecordedOrders.Node
      var holdsLock: RecordedOrders.Lock
      var wants: RecordedOrders.Node
      var wantsLock: RecordedOrders.Lock
      /// The queue whose block it was, where it is one.
      var queue: RecordedOrders.Lock?
    }
    var steps: [Step]
    var isOfOneThread: Bool
    var identity: [UInt32] { steps.flatMap { [$0.holds.site, $0.wants.site] } }
    /// Queues that Foundation keeps for itself: by whom they are asked for is mostly not kept.
    var isOfFoundation: Bool {
      steps.allSatisfy { step in
        ["org.swift.", "URLSession<"].contains { step.wantsLock.label.hasPrefix($0) }
      }
    }
    /// The addresses of its locks.
    var locks: Set<UInt64> { Set(steps.map(\.holdsLock.key.address)) }
  }

  private let arena: Arena
  private var analysed: UInt64 = 0
  private var analysedAt: UInt64 = 0
  private var cost: UInt64 = 0
  private var told: Set<[UInt32]> = []
  private var isComplete = true
  private var untold = 0
  /// Many locks nested in every way make thousands of cycles: what is mended for some is for all.
  static let mostTold = 32

  /// What was not looked for, or is not told, one sentence each.
  var limits: [String] {
    (isComplete ? [] : ["lock orders: not every cycle was looked for, there are too many orders"])
      + (untold == 0 ? [] : ["\(untold) more cycles of lock orders, of the same locks mostly"])
  }

  private var fingerprints: Set<String> = []
  /// The same functions in the same order, at other lines or by other callers, are told once.
  func isNews(_ finding: Finding) -> Bool { fingerprints.insert(finding.fingerprint).inserted }

  static let interval: UInt64 = 500_000_000
  /// Milliseconds that an order stands before it is told: what deadlocks by then is no prediction.
  static let patience: UInt32 = 1500

  init(arena: Arena) { self.arena = arena }

  /// Cycles that are new since the last call. An analysis takes a twentieth of the time at most;
  /// the last one, when the process has ended, is always made. `now`: CLOCK_MONOTONIC, nanoseconds.
  func tick(now: UInt64, isLast: Bool = false) -> [Cycle] {
    guard isLast || now &- analysedAt >= max(Self.interval, 20 &* cost) else { return [] }
    let changes = arena.orderChanges
    guard changes != analysed else { return [] }
    analysed = changes
    let begun = hck_monotonic_ns()
    defer {
      analysedAt = now
      cost = hck_monotonic_ns() &- begun
    }
    let cycles = cycles(of: arena.recordedOrders()).filter {
      !told.contains($0.identity) && !$0.isOfFoundation
    }
    let ripe = cycles.filter { cycle in
      isLast
        || cycle.steps.allSatisfy { arena.clock &- $0.occurrence.time >= Self.patience }
    }
    if ripe.count < cycles.count { analysed = 0 }
    for cycle in ripe { told.insert(cycle.identity) }
    let room = max(0, Self.mostTold - (told.count - ripe.count))
    untold += max(0, ripe.count - room)
    return Array(ripe.prefix(room))
  }

  private func cycles(of recorded: RecordedOrders) -> [Cycle] {
    let orders = recorded.sorted()
    let analysis = LockOrderAnalysis(orders.record)
    isComplete = isComplete && analysis.isComplete
    return analysis.potentialDeadlocks.map { found in
      Cycle(
        steps: found.steps.map { step in
          let occurrence = orders.occurrences[step.occurrence]
          let wants = orders.nodes[orders.record.occurrences[step.occurrence].node]
          let holds = orders.nodes[step.held]
          return Cycle.Step(
            occurrence: occurrence, holds: holds, holdsLock: orders.locks[holds.lock],
            wants: wants, wantsLock: orders.locks[wants.lock],
            queue: queue(under: step.held, orders))
        }, isOfOneThread: found.isOfOneThread)
    }
  }

  /// The queue that an asynchronous block ran on.
  private func queue(under node: Int, _ orders: SortedOrders) -> RecordedOrders.Lock? {
    var root = node
    while let parent = orders.record.nodes[root].parent { root = parent }
    let lock = orders.locks[orders.nodes[root].lock]
    let isQueue = lock.key.kind == HCK_QUEUE.rawValue
    return !orders.nodes[root].isRequest && isQueue ? lock : nil
  }
}

/// The log as the analysis takes it, and what its indices stand for.
struct SortedOrders {
  var record = LockOrderRecord()
  var locks: [RecordedOrders.Lock]
  var nodes: [RecordedOrders.Node]
  var occurrences: [RecordedOrders.Occurrence]
}

extension RecordedOrders {
  /// Parents before their children, occurrences in the order of time.
  func sorted() -> SortedOrders {
    let highest = nodes.map(\.number).max() ?? 0
    var parents = [UInt32](repeating: 0, count: Int(highest) + 1)
    for node in nodes { parents[Int(node.number)] = node.parent }
    var depths = [Int](repeating: 0, count: parents.count)
    for node in nodes where depths[Int(node.number)] == 0 {
      var path: [UInt32] = []
      var at = node.number
      while at != 0, depths[Int(at)] == 0, path.count <= nodes.count {
        path.append(at)
        at = parents[Int(at)]
      }
      var depth = at == 0 ? 0 : depths[Int(at)]
      for number in path.reversed() {
        depth += 1
        depths[Int(number)] = depth
      }
    }
    var result = SortedOrders(
      locks: locks, nodes: nodes.sorted { depths[Int($0.number)] < depths[Int($1.number)] },
      occurrences: occurrences.sorted { ($0.component, $0.epoch) < ($1.component, $1.epoch) })
    var indices = [Int](repeating: -1, count: parents.count)
    for (index, node) in result.nodes.enumerated() { indices[Int(node.number)] = index }
    result.record.locks = locks.map { lock in
      let kind = ResourceKind(recorded: lock.key.kind)
      // Sites tell patterns apart; where a lock was made is not known of most.
      return .init(
        kind: kind, blocksReaders: lock.prefersWriters, classID: Int(lock.key.kind))
    }
    result.record.nodes = result.nodes.map { node in
      .init(
        parent: node.parent == 0 ? nil : indices[Int(node.parent)], lock: node.lock,
        mode: node.isShared ? .shared : .exclusive, isRequest: node.isRequest,
        site: Int(node.site))
    }
    for occurrence in result.occurrences {
      result.record.clocks.append(occurrence.clock)
      result.record.occurrences.append(
        .init(
          node: indices[Int(occurrence.node)], thread: Int(occurrence.context),
          component: occurrence.component, start: occurrence.start, epoch: occurrence.epoch,
          clock: result.record.clocks.count - 1))
    }
    return result
  }
}
