/// Which deadlocks a program could have had, by the orders in which it took its locks: Goodlock
/// (Havelund, SPIN 2000; Bensalem & Havelund, 2005) with modes, gates and happens-before.
///
/// A cycle is reported when
/// 1. each step waits for a lock that the next one holds, in modes that keep each other out;
/// 2. its steps are of distinct threads and pairwise concurrent;
/// 3. no two steps hold one lock that one of them holds exclusively: such a state cannot exist;
/// 4. no fewer of its steps make a cycle, and it contains no shorter reported one's pattern
///    (`LockOrderPatterns`).
///
/// Cycles whose orders were all taken by one thread fulfil 1, 3 and 4, and are reported only where
/// no cycle of several threads has the pattern or a part of it. One step alone is a thread that
/// reads a lock again which keeps readers out behind a writer.
///
/// What it means. If threads do the same whatever the schedule, a cycle of several threads is
/// certain to happen in some run, unless
/// - passed: what must precede its requests includes taking a lock that another of the contexts
///   concerned had taken before, and still holds in the cycle's state. Locks then order what no
///   hand-over does. (The creator holds a lock over the creation and its request; the thread takes
///   and releases that lock, and then makes its own.)
/// - turns: a queue runs what was submitted first first, and so orders the requests;
/// - attempt: a trylock failed on the way, and would succeed in that run;
/// - reader: a reader waits for a reader, and no writer can come between at that time.
///
/// Where none of these holds the recorded run, cut down to what must precede the requests, is a run
/// that ends in the deadlock. Where one does, the cycle may be a false alarm.
/// `LockOrderProgramTests` compares this and the next statement with all runs of small programs.
///
/// What it misses. A deadlock over locks and queues alone, among requests that the run made, is
/// missed by a complete search only where the requests were ordered in this run and need not be in
/// another: by a semaphore, a group or the like, or by a component's new owner (`happensBefore`).
/// Requests that the run did not make (the body of a trylock that failed, another branch) are
/// unknown, and so are cycles through a wait for a thread, a group or a semaphore.
///
/// Time and space are linear in the nodes and occurrences while no lock order is cyclic. In a
/// strongly connected component of orders the shorter cycles are sought first, in all components,
/// with at most 7 million comparisons for one and 21 million for all (less than a second); then
/// `isComplete` is false, and longer cycles, or in huge components even short ones, may be missing.
/// That is a matter of counting, never of time: the same record gives the same result.
public struct LockOrderAnalysis: Sendable {
  /// Those of several threads first, then the shorter; each rotated to its least pattern.
  public private(set) var potentialDeadlocks: [PotentialDeadlock] = []
  /// No search was given up.
  public private(set) var isComplete = true
  /// Comparisons made, or what takes as long.
  package private(set) var work = 0

  private let record: LockOrderRecord
  private let workPerComponent: Int
  private let forest: LockOrderForest
  private var patterns = LockOrderPatterns()

  public init(_ record: LockOrderRecord) {
    self.init(record, workPerComponent: 7_000_000)
  }

  package init(_ record: LockOrderRecord, workPerComponent: Int) {
    self.record = record
    self.workPerComponent = workPerComponent
    forest = LockOrderForest(record)
    var occurs = Array(repeating: false, count: record.nodes.count)
    for occurrence in record.occurrences { occurs[occurrence.node] = true }
    let steps = record.nodes.indices.filter { occurs[$0] && forest.isStep($0) }
    let components = forest.components(of: steps)
    let places = Places(components, nodeCount: record.nodes.count)

    search(ofSeveralThreads(components, places), work: 2 * workPerComponent)
    reportRepeatedReads()
    search(ofOneThread(components, places), work: workPerComponent)
    potentialDeadlocks = patterns.inOrder()
  }

  private mutating func search(_ searches: [LockOrderSearch], work allowed: Int) {
    var searches = searches
    let end = work + allowed
    while !searches.isEmpty {
      for index in searches.indices {
        let before = searches[index].work
        let limit = min(workPerComponent, before + end - work)
        if !searches[index].advance(&patterns, limit: limit) { isComplete = false }
        work += searches[index].work - before
      }
      searches.removeAll(where: \.isOver)
    }
  }

  private func ofSeveralThreads(
    _ components: [LockOrderComponent], _ places: Places
  ) -> [LockOrderSearch] {
    struct Key: Hashable {
      var node: Int
      var component: Int
      var start: UInt32
    }
    var contexts = components.map { Array(repeating: [[Int]](), count: $0.steps.count) }
    var known: [Key: Int] = [:]
    for (index, occurrence) in record.occurrences.enumerated() {
      let node = occurrence.node
      guard let (component, step) = places.place(of: node) else { continue }
      let key = Key(node: node, component: occurrence.component, start: occurrence.start)
      if let context = known[key] {
        contexts[component][step][context].append(index)
      } else {
        known[key] = contexts[component][step].count
        contexts[component][step].append([index])
      }
    }
    return zip(components, contexts).map { component, contexts in
      LockOrderSearch(
        forest: forest, component: component,
        witness: LockOrderWitness(record: record, contexts: contexts), isOfOneThread: false)
    }
  }

  private func ofOneThread(
    _ components: [LockOrderComponent], _ places: Places
  ) -> [LockOrderSearch] {
    var occurrencesOfThread = components.map { _ in [Int: [Int: Int]]() }
    for (index, occurrence) in record.occurrences.enumerated() {
      guard let (component, _) = places.place(of: occurrence.node) else { continue }
      let known = occurrencesOfThread[component][occurrence.thread]?[occurrence.node]
      occurrencesOfThread[component][occurrence.thread, default: [:]][occurrence.node] =
        known ?? index
    }
    return occurrencesOfThread.flatMap { threads in
      threads.sorted { $0.key < $1.key }.flatMap { _, occurrences in
        forest.components(of: occurrences.keys.sorted()).map { component in
          LockOrderSearch(
            forest: forest, component: component,
            witness: LockOrderWitness(
              record: record, contexts: component.steps.map { [[occurrences[$0] ?? 0]] }),
            isOfOneThread: true)
        }
      }
    }
  }

  private mutating func reportRepeatedReads() {
    for (index, occurrence) in record.occurrences.enumerated() {
      guard let held = forest.firstRead(before: occurrence.node) else { continue }
      let pattern = [patterns.id(of: forest.element(occurrence.node, held))]
      guard !patterns.isKnown(pattern) else { continue }
      patterns.insert(
        pattern,
        PotentialDeadlock(steps: [.init(occurrence: index, held: held)], isOfOneThread: true))
    }
  }
}

extension LockOrderRecord {
  /// The cycles of lock orders in it; `LockOrderAnalysis` says which, and whether all.
  public func potentialDeadlocks() -> [PotentialDeadlock] {
    LockOrderAnalysis(self).potentialDeadlocks
  }
}

/// Where a node stands among the components; in one at most.
private struct Places {
  private var component: [Int]
  private var step: [Int]

  init(_ components: [LockOrderComponent], nodeCount: Int) {
    component = Array(repeating: -1, count: nodeCount)
    step = component
    for (index, value) in components.enumerated() {
      for (place, node) in value.steps.enumerated() {
        component[node] = index
        step[node] = place
      }
    }
  }

  func place(of node: Int) -> (component: Int, step: Int)? {
    component[node] < 0 ? nil : (component[node], step[node])
  }
}
