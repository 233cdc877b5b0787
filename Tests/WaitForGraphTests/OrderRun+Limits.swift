import WaitForGraph

/// Why a reported cycle need not be reachable. The list is what `LockOrderAnalysis` states.
enum OrderLimit: Hashable {
  /// What must precede one request includes another one, by the turns of a queue.
  case turns
  /// A trylock failed before; it might succeed in the run that ends in the cycle.
  case attempt
  /// On the way to its request somebody passed a lock that another had taken before to keep.
  case passed
  /// A reader waits for a reader: a writer must come between.
  case reader
}

extension OrderRun {
  /// The limits that apply to a reported cycle; none means that it can be reached, by this very run
  /// cut down to what must precede the requests.
  func limits(of deadlock: PotentialDeadlock) -> Set<OrderLimit> {
    var limits: Set<OrderLimit> = []
    for (index, step) in deadlock.steps.enumerated() {
      let before = deadlock.steps[(index + deadlock.steps.count - 1) % deadlock.steps.count]
      let wanted = record.nodes[record.occurrences[before.occurrence].node]
      if wanted.mode == .shared, record.nodes[step.held].mode == .shared {
        limits.insert(.reader)
      }
    }
    let counts = past(of: deadlock, withTurns: true)
    if isMade(counts, in: deadlock) { limits.insert(.turns) }
    for (context, count) in counts.enumerated() {
      let prefix = events[context].prefix(count)
      if prefix.contains(where: { isAttempt($0.operation) && $0.isInVain }) {
        limits.insert(.attempt)
      }
      guard let last = prefix.last, !last.isInVain else { continue }
      for hold in program.holds[context][last.place + 1] {
        let taken = events[context].first { $0.place == hold.site % 128 && !$0.isInVain }!
        if isPassed(hold, by: context, after: taken.time, counts) { limits.insert(.passed) }
      }
    }
    return limits
  }

  /// Whether hand-overs alone order its requests.
  func areOrdered(_ deadlock: PotentialDeadlock) -> Bool {
    isMade(past(of: deadlock, withTurns: false), in: deadlock)
  }

  /// By context: how many of its first events precede the requests.
  private func past(of deadlock: PotentialDeadlock, withTurns: Bool) -> [Int] {
    var counts = events.map { _ in 0 }
    for (context, index) in requests(deadlock) { counts[context] = index }
    close(&counts, withTurns: withTurns)
    return counts
  }

  /// Whether one of the requests is itself among those events.
  private func isMade(_ counts: [Int], in deadlock: PotentialDeadlock) -> Bool {
    requests(deadlock).contains { counts[$0.context] > $0.index }
  }

  private func requests(_ deadlock: PotentialDeadlock) -> [(context: Int, index: Int)] {
    deadlock.steps.map { step in
      let site = record.nodes[record.occurrences[step.occurrence].node].site
      let (context, place) = (site / 128, site % 128)
      return (context, events[context].firstIndex { $0.place == place }!)
    }
  }

  private func isAttempt(_ operation: OrderProgram.Operation) -> Bool {
    if case .attempt = operation { true } else { false }
  }

  private func isPassed(
    _ hold: OrderProgram.Hold, by holder: Int, after time: Int, _ counts: [Int]
  ) -> Bool {
    counts.enumerated().contains { context, count in
      context != holder
        && events[context].prefix(count).contains { event in
          guard event.time > time, !event.isInVain else { return false }
          switch event.operation {
          case .take(hold.lock, let mode), .attempt(hold.lock, let mode):
            return mode == .exclusive || hold.mode == .exclusive
          default: return false
          }
        }
    }
  }

  /// Adds what must precede what is counted, until nothing is missing.
  private func close(_ counts: inout [Int], withTurns: Bool) {
    var isClosed = false
    while !isClosed {
      isClosed = true
      func need(_ context: Int, _ count: Int) {
        if counts[context] < count {
          counts[context] = count
          isClosed = false
        }
      }
      for context in events.indices where counts[context] > 0 {
        for (maker, list) in events.enumerated() {
          for (index, event) in list.enumerated() where starts(event, context) {
            need(maker, index + 1)
          }
        }
        for event in events[context].prefix(counts[context]) where !event.isInVain {
          switch event.operation {
          case .join(let other): need(other, events[other].count)
          case .wait:
            for (other, list) in events.enumerated() {
              for (index, signal) in list.enumerated()
              where signal.operation == .signal && signal.time < event.time {
                need(other, index + 1)
              }
            }
          case .enter(let queue), .begin(let queue):
            guard withTurns else { continue }
            for (other, end) in earlierTurns(queue, before: event.time, counts) {
              need(other, end)
            }
          default: break
          }
        }
      }
    }
  }

  private func starts(_ event: Event, _ context: Int) -> Bool {
    switch event.operation {
    case .make(context), .submit(context, _): true
    default: false
    }
  }

  /// Those who left a queue before a time, and are in it by what is counted so far: they must have
  /// left it.
  private func earlierTurns(
    _ queue: Int, before time: Int, _ counts: [Int]
  ) -> [(context: Int, end: Int)] {
    var turns: [(Int, Int)] = []
    for (context, list) in events.enumerated() {
      for (index, event) in list.enumerated()
      where event.operation == .leave(queue) && event.time < time {
        let hasQueuedUp =
          list.prefix(counts[context]).contains {
            $0.operation == .enter(queue) && $0.time < event.time
          }
          || events.enumerated().contains { submitter, others in
            others.prefix(counts[submitter]).contains {
              $0.operation == .submit(context, to: queue)
            }
          }
        if hasQueuedUp { turns.append((context, index + 1)) }
      }
    }
    return turns
  }
}
