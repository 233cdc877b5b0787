import Testing
import WaitForGraph

@Suite struct NaiveLockOrderTests {
  @Test("random records against the naive model")
  func random() {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("seed \(seed)")
    var source = SplitMix(state: seed)
    var reports: [Int: Int] = [:]
    for round in 0..<3000 {
      let record = randomRecord(&source)
      let naive = NaiveLockOrder(record: record)
      let analysis = LockOrderAnalysis(record)
      let context = "seed \(seed), round \(round)"
      #expect(analysis.isComplete, "\(context)")
      for isOfOneThread in [false, true] {
        let found = analysis.potentialDeadlocks.filter { $0.isOfOneThread == isOfOneThread }
        let patterns = found.map(record.pattern)
        #expect(patterns == patterns.map(canonical), "\(context)")
        #expect(Set(patterns).count == patterns.count, "\(context)")
        #expect(Set(patterns) == naive.patterns()[isOfOneThread], "\(context)")
        for deadlock in found {
          check(deadlock, naive, context)
          reports[isOfOneThread ? -deadlock.steps.count : deadlock.steps.count, default: 0] += 1
        }
      }
    }
    print("reports by length, negative for one thread: \(reports)")
    // The test would be worth nothing if there were nothing to find.
    for length in [-3, -2, -1, 2, 3, 4] { #expect(reports[length, default: 0] > 0, "\(reports)") }
  }

  /// The report's own steps make its cycle, and not just some of that pattern.
  private func check(_ deadlock: PotentialDeadlock, _ naive: NaiveLockOrder, _ context: String) {
    let steps = deadlock.steps
    guard steps.count > 1 else { return }
    for (index, step) in steps.enumerated() {
      let next = steps[(index + 1) % steps.count]
      #expect(naive.blocker(of: step.occurrence, at: next.occurrence) == next.held, "\(context)")
      for other in steps.map(\.occurrence) where other != step.occurrence {
        #expect(!naive.areGated(step.occurrence, other), "\(context)")
        let threads = [step.occurrence, other].map { naive.record.occurrences[$0].thread }
        #expect((threads[0] == threads[1]) == deadlock.isOfOneThread, "\(context)")
        if !deadlock.isOfOneThread {
          #expect(!naive.happensBefore(step.occurrence, other), "\(context)")
          #expect(naive.record.areConcurrent(step.occurrence, other), "\(context)")
        }
      }
    }
  }
}

/// Threads that do anything at all: what they take is given back in any order, and what they tell
/// each other has no reason.
private func randomRecord(_ source: inout SplitMix) -> LockOrderRecord {
  let lockCount = Int.random(in: 2...6, using: &source)
  let classCount = Bool.random(using: &source) ? lockCount : 2
  let siteCount = Int.random(in: 1...4, using: &source)
  let isSimple = Bool.random(using: &source)
  var recorder = OrderRecorder(
    locks: (0..<lockCount).map { lock in
      .init(
        kind: .rwlock, blocksReaders: Bool.random(using: &source), classID: lock % classCount)
    })
  // Each lock inside the one before: long cycles, which chance alone rarely makes.
  let isRing = isSimple && Bool.random(using: &source)
  let mayTell = Bool.random(using: &source)
  var held = Array(repeating: [Int](), count: Int.random(in: 1...6, using: &source))
  var told: OrderRecorder.Clock = []
  // Contexts 0, 1, … of each thread, one after another.
  var contexts = held.indices.map { $0 }
  var contextCount = contexts.count
  for context in contexts { recorder.start(context) }
  for _ in 0..<Int.random(in: 10...50, using: &source) {
    let thread = held.indices.randomElement(using: &source)!
    let context = contexts[thread]
    switch Int.random(in: mayTell ? 0..<20 : 3..<20, using: &source) {
    case 0: told = joinOf(told, recorder.handOver(context))
    case 1: recorder.learn(context, told)
    case 2:
      let last = recorder.end(context)
      if Bool.random(using: &source) { told = joinOf(told, last) }
      contexts[thread] = contextCount
      recorder.start(contextCount, thread: thread, knowing: Bool.random(using: &source) ? last : [])
      contextCount += 1
      held[thread] = []
    case 3..<8:
      guard let lock = held[thread].randomElement(using: &source) else { continue }
      recorder.give(context, lock)
      held[thread].remove(at: held[thread].lastIndex(of: lock)!)
    default:
      guard held[thread].count < (isSimple ? 2 : 4) else { continue }
      var lock = Int.random(in: 0..<lockCount, using: &source)
      if isRing, let last = held[thread].last { lock = (last + 1) % lockCount }
      let isShared = !isSimple && Bool.random(using: &source)
      recorder.take(
        context, lock, isShared ? .shared : .exclusive,
        isRequest: Int.random(in: 0..<5, using: &source) != 0,
        site: Int.random(in: 0..<siteCount, using: &source))
      held[thread].append(lock)
    }
  }
  return recorder.record
}
