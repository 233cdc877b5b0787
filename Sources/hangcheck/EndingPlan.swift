import Glibc

/// The steps by which hangcheck ends the program, each with its time. A value: the supervisor asks
/// what is due and does it.
struct EndingPlan: Sendable, Hashable {
  struct Step: Sendable, Hashable {
    var at: UInt64
    var signal: Int32
    /// To the program and all its descendants, or else to the processes of the deadlock.
    var toAll: Bool
  }

  private(set) var steps: [Step]
  private static let second: UInt64 = 1_000_000_000

  static func timeout(now: UInt64) -> EndingPlan {
    EndingPlan(
      steps: [
        Step(at: now, signal: SIGTERM, toAll: true),
        Step(at: now + 2 * second, signal: SIGKILL, toAll: true),
      ])
  }

  static func terminate(now: UInt64) -> EndingPlan {
    EndingPlan(
      steps: [
        Step(at: now, signal: SIGTERM, toAll: true),
        Step(at: now + second, signal: SIGKILL, toAll: true),
      ])
  }

  /// Swift's own crash reporter swallows the first SIGABRT of a process: a second one follows.
  static func core(now: UInt64) -> EndingPlan {
    EndingPlan(
      steps: [
        Step(at: now, signal: SIGABRT, toAll: false),
        Step(at: now + second, signal: SIGABRT, toAll: false),
        Step(at: now + 2 * second, signal: SIGKILL, toAll: true),
      ])
  }

  /// Takes out the steps whose time has come.
  mutating func due(now: UInt64) -> [Step] {
    let result = steps.prefix { $0.at <= now }
    steps.removeFirst(result.count)
    return Array(result)
  }

  /// A core is being written: what would cut it short waits.
  mutating func postpone(until time: UInt64) {
    for index in steps.indices { steps[index].at = max(steps[index].at, time) }
  }

  /// When the last step is due.
  var end: UInt64? { steps.last?.at }
}
