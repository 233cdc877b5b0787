import Foundation
import HangReport
import Testing
import WaitForGraph

/// What a scenario of SwapFixture is to come to.
struct Expectation: CustomTestStringConvertible, Sendable {
  enum End: Sendable { case hangs, whole, traps }
  var scenario: String
  /// Of all findings.
  var kind: Finding.Kind
  var count: Int
  var end: End
  /// Edges of its cycle, where it has one.
  var length: Int?
  var testDescription: String { scenario }

  init(
    _ scenario: String, _ kind: Finding.Kind, _ end: End, length: Int? = nil, count: Int = 1
  ) {
    self.scenario = scenario
    self.kind = kind
    self.count = count
    self.end = end
    self.length = length
  }

  func check() throws {
    let run = try Fixture.run([scenario], until: end == .hangs ? 1 : .max, limit: 30)
    let finding = try #require(run.findings.first, "\(run.output) \(run.errors)")
    #expect(run.findings.map(\.kind) == Array(repeating: kind, count: count))
    if let length { #expect(finding.cycle.count == length) }
    switch end {
    case .hangs: #expect(run.status == nil && run.signal == nil)
    case .whole: #expect(run.isWhole)
    // What the original does: after the report.
    case .traps: #expect(run.signal == SIGILL)
    }
    #expect(!run.output.contains("unreachable"))
  }
}

extension Expectation {
  /// What is said about locks as a graph of threads.
  static let deadlocks: [Expectation] = [
    .init("conditions", .deadlock, .hangs, length: 2),
    .init("conditionSelf", .deadlock, .hangs, length: 1),
    .init("conditionNamed", .deadlock, .hangs, length: 2),
    .init("conditionLocks", .deadlock, .hangs, length: 2),
    .init("readWrite", .deadlock, .hangs, length: 2),
    .init("upgrade", .deadlock, .hangs, length: 1),
    .init("synchronized", .deadlock, .hangs, length: 2),
    .init("fourLocks", .deadlock, .hangs, length: 4),
    .init("onces", .deadlock, .hangs, length: 2),
    .init("onceAndLock", .deadlock, .hangs, length: 2),
    .init("lazies", .deadlock, .hangs, length: 2),
  ]

  /// What only the futex word of a mutex, the permits of a semaphore or a standstill shows.
  static let otherDeadlocks: [Expectation] = [
    .init("mutexes", .deadlock, .traps, length: 2),
    .init("mutexSelf", .deadlock, .traps, length: 1),
    .init("mutexAndLock", .deadlock, .hangs, length: 2),
    .init("unfair", .deadlock, .hangs, length: 2),
    .init("semaphores", .deadlock, .hangs, length: 2),
    .init("semaphoreTwice", .deadlock, .hangs),
    .init("semaphoreNever", .deadlock, .hangs),
    .init("conditionOuter", .deadlock, .hangs),
    .init("conditionNever", .deadlock, .hangs),
    .init("conditionLockNever", .deadlock, .hangs),
    .init("fourKinds", .deadlock, .hangs, length: 4),
  ]

  /// What threads say of themselves.
  static let misuse: [Expectation] = [
    .init("foreignUnlock", .lockMisuse, .whole),
    .init("foreignUnlockOfCondition", .lockMisuse, .whole),
    .init("foreignUnlockOfConditionLock", .lockMisuse, .whole),
    .init("foreignUnlockOfRecursive", .lockMisuse, .whole),
    // glibc leaves it locked: the next call is refused, and so it goes.
    .init("foreignUnlockOfWriter", .lockMisuse, .whole, count: 3),
    .init("foreignUnlockOfUnfair", .lockMisuse, .traps),
    .init("unlockOfUnlocked", .lockMisuse, .whole),
    .init("unlockOfUnlockedCondition", .lockMisuse, .whole),
    .init("unlockOfUnlockedConditionLock", .lockMisuse, .whole),
    .init("unlockOfUnlockedUnfair", .lockMisuse, .traps),
    .init("dropped", .lockMisuse, .whole),
    .init("droppedCondition", .lockMisuse, .whole),
    .init("droppedConditionLock", .lockMisuse, .whole),
    .init("droppedReadWrite", .lockMisuse, .whole),
    .init("conditionWithoutMutex", .conditionMisuse, .whole),
    .init("conditionOfAnother", .conditionMisuse, .whole),
    .init("writeTwice", .lockMisuse, .whole, count: 2),
    .init("identityChanged", .lockMisuse, .whole),
    .init("semaphoreLow", .semaphoreMisuse, .traps),
    .init("onceReentered", .deadlock, .traps),
    .init("lazyReentered", .deadlock, .traps),
    // A lock as a baton: it works, for a normal mutex, and no lock is meant for it.
    .init("handed", .lockMisuse, .whole, count: 2),
  ]
}

@Suite(.serialized) struct PrimitiveTests {
  @Test(arguments: Expectation.deadlocks) func deadlock(_ expected: Expectation) throws {
    try expected.check()
  }

  @Test(arguments: Expectation.otherDeadlocks) func otherDeadlock(_ expected: Expectation) throws {
    try expected.check()
  }

  @Test(arguments: Expectation.misuse) func misuse(_ expected: Expectation) throws {
    try expected.check()
  }

  @Test(arguments: [
    "synchronizing", "semaphoreSignals", "semaphoreBalanced", "mutexesInOrder", "mutexHeldLong",
    "mutexesCome", "onceContended", "readersMeet", "conditionLockTurns", "conditionIdle",
  ])
  func nearMiss(scenario: String) throws {
    let run = try Fixture.run([scenario])
    #expect(run.isWhole, "\(run.output) \(run.errors)")
    #expect(run.findings.isEmpty)
    #expect(run.errors.isEmpty)
    #expect(!run.output.contains("wrong") && !run.output.contains("twice"))
    if scenario == "synchronizing" || scenario == "mutexesInOrder" {
      #expect(run.output.hasPrefix("60000\n"))
    }
  }

  @Test func workLikeTheOriginals() throws {
    let swapped = try Fixture.run(["allParity"])
    #expect(swapped.isWhole && swapped.findings.isEmpty)
    #expect(swapped.output == "compared\nDONE\n")
    let originals = try Fixture.run([], program: "ParityFixture")
    #expect(originals.output == "compared\n" && originals.status == 0)
  }

  @Test(arguments: [
    "foreignUnlockOfUnfair", "unlockOfUnlockedUnfair", "mutexSelf", "semaphoreLow",
    "onceReentered", "lazyReentered",
  ])
  func trapsWhereTheOriginalTraps(scenario: String) throws {
    #expect(try Fixture.run([scenario]).signal == SIGILL)
  }

  @Test func refusesNil() throws {
    let run = try Fixture.run(["synchronizedNil"])
    #expect(run.signal == SIGILL)
    #expect(run.errors.contains("synchronized(nil) { } would lock nothing"))
    #expect(run.errors.contains("SwapFixture/MisuseScenarios.swift:"))
    #expect(run.output.isEmpty)
  }

  @Test(arguments: ["conditions", "conditionLocks", "readWrite", "synchronized", "onces"])
  func placesOfHoldsAndNames(scenario: String) throws {
    let report = try #require(try Fixture.run([scenario], until: 1).reports.first)
    let holders = report.threads.filter { !$0.holds.isEmpty }
    #expect(holders.count == 2)
    for holder in holders {
      let frames = try #require(holder.holds.first?.stack)
      // A call through the protocol has a frame of the protocol's between.
      if !scenario.hasPrefix("condition") { #expect(frames.first?.runtime == false) }
      #expect(frames.place != nil)
      #expect(holder.waitsFor?.stack.place != nil)
    }
    // A place where it has no name.
    for resource in report.resources where resource.name != "a" {
      #expect(resource.name?.hasPrefix("SwapFixture/PrimitiveScenarios.swift:") == true)
    }
  }
}
