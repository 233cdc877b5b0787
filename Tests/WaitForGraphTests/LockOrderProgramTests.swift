import Foundation
import Testing
import WaitForGraph

@Suite struct LockOrderProgramTests {
  /// What `LockOrderAnalysis` states of its reports: which can be reached, and what is missed.
  @Test("one run of random programs against all runs")
  func random() {
    let seed = Seed.value
    print("seed \(seed)")
    var source = SplitMix(state: seed)
    var tally: [String: Int] = [:]
    for round in 0..<3000 {
      let program = randomProgram(&source)
      guard let (reachable, states) = program.reachableDeadlocks(atMost: 4000) else {
        tally["too many states", default: 0] += 1
        continue
      }
      tally["states", default: 0] += states
      let runs = completeRuns(program, &source)
      guard let run = runs.first else {
        tally["never completes", default: 0] += 1
        continue
      }
      let context = "seed \(seed), round \(round): \(program.contexts)"
      for deadlock in run.record.potentialDeadlocks() where !deadlock.isOfOneThread {
        let isReachable = reachable.contains(canonical(run.record.pattern(deadlock)))
        let limits = run.limits(of: deadlock)
        #expect(!run.areOrdered(deadlock), "\(deadlock) \(context)")
        #expect(isReachable || !limits.isEmpty, "\(deadlock) \(context)")
        let word = limits.isEmpty ? "sure" : limits.map { "\($0)" }.sorted().joined(separator: " ")
        tally["\(word), \(isReachable ? "reached" : "false")", default: 0] += 1
      }
      let patterns = runs.map(patterns)
      for pattern in reachable {
        let isMade = pattern.allSatisfy { run.hasMade($0[1]) && run.hasMade($0[2]) }
        let finder = patterns.firstIndex { $0.contains { isPart($0, of: pattern) } }
        switch finder {
        case 0?: tally["found \(pattern.count)", default: 0] += 1
        case 1?: tally["missed, component", default: 0] += 1
        case 2?: tally["missed, semaphore", default: 0] += 1
        default:
          tally["missed, not made", default: 0] += 1
          #expect(!isMade, "missed \(pattern) \(context)")
        }
      }
    }
    print(tally.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n"))
    for word in ["sure, reached", "found 1", "found 2", "found 3"] {
      #expect(tally[word, default: 0] > 0, "\(word)")
    }
  }

  private func patterns(_ run: OrderRun) -> [NaiveLockOrder.Pattern] {
    run.record.potentialDeadlocks().filter { !$0.isOfOneThread || $0.steps.count == 1 }
      .map(run.record.pattern)
  }

  /// One schedule as it is recorded; with components used again only where that tells nothing
  /// wrong; and then without what semaphores handed over in this run.
  private func completeRuns(_ program: OrderProgram, _ source: inout SplitMix) -> [OrderRun] {
    for _ in 0..<20 {
      let start = source
      let runs = [(true, false), (true, true), (false, true)].compactMap { sees, exact in
        source = start
        return OrderRun(program, seesSemaphores: sees, exact: exact, using: &source)
      }
      if !runs.isEmpty { return runs }
    }
    return []
  }
}

/// `HANGCHECK_SEED=…` tries other programs than the usual ones.
private enum Seed {
  static var value: UInt64 {
    ProcessInfo.processInfo.environment["HANGCHECK_SEED"].flatMap { UInt64($0) } ?? 2026_1130
  }
}
