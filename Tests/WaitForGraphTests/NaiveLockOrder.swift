import WaitForGraph

/// The rules of `LockOrderAnalysis`, said as simply as possible: every sequence of occurrences is
/// tried.
struct NaiveLockOrder {
  typealias Pattern = [[Int]]
  let record: LockOrderRecord

  /// Innermost first.
  func ancestors(_ node: Int) -> [Int] {
    guard let parent = record.nodes[node].parent else { return [] }
    return [parent] + ancestors(parent)
  }

  func node(_ occurrence: Int) -> LockOrderRecord.Node {
    record.nodes[record.occurrences[occurrence].node]
  }

  func keepsOut(_ held: LockOrderRecord.Node, _ wanted: LockOrderRecord.Node) -> Bool {
    held.lock == wanted.lock
      && (held.mode == .exclusive || wanted.mode == .exclusive
        || record.locks[held.lock].blocksReaders)
  }

  func blocker(of waiter: Int, at holder: Int) -> Int? {
    ancestors(record.occurrences[holder].node).last {
      keepsOut(record.nodes[$0], node(waiter))
    }
  }

  func areGated(_ a: Int, _ b: Int) -> Bool {
    ancestors(record.occurrences[a].node).contains { inA in
      ancestors(record.occurrences[b].node).contains { inB in
        let (held, other) = (record.nodes[inA], record.nodes[inB])
        return held.lock == other.lock && (held.mode == .exclusive || other.mode == .exclusive)
      }
    }
  }

  func happensBefore(_ a: Int, _ b: Int) -> Bool {
    let (first, second) = (record.occurrences[a], record.occurrences[b])
    if (first.component, first.start) == (second.component, second.start) {
      return first.epoch <= second.epoch
    }
    guard let clock = second.clock else { return false }
    let known = record.clocks[clock]
    return first.component < known.count && first.epoch <= known[first.component]
  }

  func holdsWanted(_ occurrence: Int) -> Bool {
    ancestors(record.occurrences[occurrence].node).contains {
      record.nodes[$0].lock == node(occurrence).lock
    }
  }

  /// Patterns of all reports, by whether they are of one thread.
  func patterns() -> [Bool: Set<Pattern>] {
    var reports: [Bool: Set<Pattern>] = [false: [], true: []]
    var all: [Pattern] = []
    let requests = record.occurrences.indices.filter {
      node($0).isRequest && node($0).parent != nil
    }
    for isOfOneThread in [false, true] {
      var candidates: [Pattern] = isOfOneThread ? requests.compactMap(repeatedRead) : []
      extend([], requests.filter { !holdsWanted($0) }, isOfOneThread, &candidates)
      for length in Set(candidates.map(\.count)).sorted() {
        let new = Set(candidates.filter { $0.count == length }).filter { pattern in
          !all.contains { $0 == pattern || ($0.count < length && isPart($0, of: pattern)) }
        }
        reports[isOfOneThread]?.formUnion(new)
        all += new
      }
    }
    return reports
  }

  private func repeatedRead(_ occurrence: Int) -> Pattern? {
    let wanted = node(occurrence)
    let own = ancestors(record.occurrences[occurrence].node).filter {
      record.nodes[$0].lock == wanted.lock
    }
    guard wanted.mode == .shared, record.locks[wanted.lock].blocksReaders, let first = own.last,
      own.allSatisfy({ record.nodes[$0].mode == .shared })
    else { return nil }
    return [element(occurrence, first)]
  }

  private func element(_ occurrence: Int, _ held: Int) -> [Int] {
    let wanted = node(occurrence)
    return [record.locks[wanted.lock].classID, wanted.site, record.nodes[held].site]
  }

  private func extend(
    _ path: [Int], _ requests: [Int], _ isOfOneThread: Bool, _ found: inout [Pattern]
  ) {
    if path.count > 1, let pattern = pattern(path) { found.append(pattern) }
    for next in requests where next > path.first ?? -1 {
      if let last = path.last, blocker(of: last, at: next) == nil { continue }
      let fits = path.allSatisfy { other in
        let isSameThread = record.occurrences[other].thread == record.occurrences[next].thread
        return other != next && !areGated(other, next) && isSameThread == isOfOneThread
          && (isOfOneThread || !happensBefore(other, next) && !happensBefore(next, other))
      }
      if fits { extend(path + [next], requests, isOfOneThread, &found) }
    }
  }

  /// Nil when it is no cycle, or when fewer of its steps are one.
  private func pattern(_ path: [Int]) -> Pattern? {
    var sequence: Pattern = []
    for (index, step) in path.enumerated() {
      for (otherIndex, other) in path.enumerated() {
        let isNext = otherIndex == (index + 1) % path.count
        if (blocker(of: step, at: other) != nil) != isNext { return nil }
      }
      let before = path[(index + path.count - 1) % path.count]
      guard let held = blocker(of: before, at: step) else { return nil }
      sequence.append(element(step, held))
    }
    return canonical(sequence)
  }
}

/// Its least rotation.
func canonical(_ pattern: NaiveLockOrder.Pattern) -> NaiveLockOrder.Pattern {
  let rotations = pattern.indices.map { Array(pattern[$0...] + pattern[..<$0]) }
  return rotations.min { a, b in a.flatMap { $0 }.lexicographicallyPrecedes(b.flatMap { $0 }) }!
}

func isPart(_ part: NaiveLockOrder.Pattern, of whole: NaiveLockOrder.Pattern) -> Bool {
  var rest = whole
  for element in part {
    guard let place = rest.firstIndex(of: element) else { return false }
    rest.remove(at: place)
  }
  return true
}

extension LockOrderRecord {
  /// The pattern of a report, in the order of its steps.
  func pattern(_ deadlock: PotentialDeadlock) -> NaiveLockOrder.Pattern {
    deadlock.steps.map { step in
      let wanted = nodes[occurrences[step.occurrence].node]
      return [locks[wanted.lock].classID, wanted.site, nodes[step.held].site]
    }
  }
}
