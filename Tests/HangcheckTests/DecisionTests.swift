import Glibc
import HangReport
import ProcessInspector
import Testing

@testable import hangcheck

/// The values that decide, without a process.
@Suite struct DecisionTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var number: Int32
    var fromKernel: Bool
    var shares = true
    var leader = false
    var watched = false
    var verdict: SignalPolicy.Verdict
    var testDescription: String { name }
  }

  @Test(arguments: [
    Case(name: "Ctrl-C", number: SIGINT, fromKernel: true, verdict: .init(action: .leave)),
    Case(
      name: "Ctrl-C, the program left the group", number: SIGINT, fromKernel: true, shares: false,
      verdict: .init(action: .pass)),
    Case(name: "kill -INT", number: SIGINT, fromKernel: false, verdict: .init(action: .pass)),
    Case(
      name: "kill 0 by the program", number: SIGTERM, fromKernel: false, watched: true,
      verdict: .init(action: .leave)),
    Case(
      name: "Ctrl-Z", number: SIGTSTP, fromKernel: true,
      verdict: .init(action: .leave, stops: true)),
    Case(
      name: "kill -TSTP", number: SIGTSTP, fromKernel: false,
      verdict: .init(action: .pass, stops: true)),
    Case(
      name: "the program stops its group", number: SIGTSTP, fromKernel: false, watched: true,
      verdict: .init(action: .leave, stops: true)),
    Case(name: "hangup", number: SIGHUP, fromKernel: true, verdict: .init(action: .leave)),
    Case(
      name: "hangup of the leader", number: SIGHUP, fromKernel: true, leader: true,
      verdict: .init(action: .pass)),
    Case(name: "inherited alarm", number: SIGALRM, fromKernel: true, verdict: .init(action: .pass)),
    Case(name: "window size", number: SIGWINCH, fromKernel: true, verdict: .init(action: .leave)),
    Case(name: "go on", number: SIGCONT, fromKernel: false, verdict: .init(action: .resume)),
    Case(name: "child", number: SIGCHLD, fromKernel: false, verdict: .init(action: .look)),
    Case(name: "real-time", number: 40, fromKernel: false, verdict: .init(action: .pass)),
  ])
  func signal(_ one: Case) {
    let arrival = SignalIntake.Arrival(
      number: one.number, code: one.fromKernel ? 0x80 : 0, sender: one.fromKernel ? 0 : 1)
    let context = SignalPolicy.Context(
      childSharesGroup: one.shares, isSessionLeader: one.leader, senderIsWatched: one.watched)
    #expect(SignalPolicy.verdict(arrival, context) == one.verdict)
  }

  @Test func stopsFollowed() {
    #expect(SignalPolicy.followsStop(by: SIGTSTP, requested: true, foreground: false))
    #expect(SignalPolicy.followsStop(by: SIGTSTP, requested: false, foreground: true))
    #expect(!SignalPolicy.followsStop(by: SIGTSTP, requested: false, foreground: false))
    #expect(!SignalPolicy.followsStop(by: SIGSTOP, requested: false, foreground: true))
    #expect(SignalPolicy.followsStop(by: SIGSTOP, requested: true, foreground: true))
  }

  @Test func endingStepsComeInTime() {
    let second: UInt64 = 1_000_000_000
    var plan = EndingPlan.timeout(now: 5)
    #expect(plan.due(now: 5).map(\.signal) == [SIGTERM])
    #expect(plan.due(now: 5 + 2 * second - 1).isEmpty)
    #expect(plan.due(now: 5 + 2 * second).map(\.signal) == [SIGKILL])
    #expect(plan.due(now: .max).isEmpty)
    plan = .core(now: 0)
    #expect(plan.due(now: 3 * second).map(\.signal) == [SIGABRT, SIGABRT, SIGKILL])
    plan = .core(now: 0)
    plan.postpone(until: 9 * second)
    #expect(plan.due(now: 9 * second - 1).isEmpty)
    plan = .terminate(now: 0)
    #expect(plan.due(now: second).map(\.signal) == [SIGTERM, SIGKILL])
  }

  @Test func exitStatuses() {
    func status(
      _ end: RunEnd, _ severities: [Finding.Severity], _ failOn: Options.FailOn = .error,
      timedOut: Bool = false
    ) -> Int32 {
      let findings = severities.map {
        Finding(kind: .longWait, severity: $0, certainty: .certain, message: "")
      }
      return ExitStatus.of(end, findings: findings, failOn: failOn, timedOut: timedOut)
    }
    #expect(status(.status(3), []) == 3)
    #expect(status(.signal(SIGKILL), []) == 137)
    #expect(status(.status(3), [.warning]) == 3)
    #expect(status(.status(3), [.note, .error]) == 66)
    #expect(status(.status(3), [.warning], .warning) == 66)
    #expect(status(.status(3), [.note], .warning) == 3)
    #expect(status(.status(3), [.note], .note) == 66)
    #expect(status(.status(3), [.error], .never) == 3)
    #expect(status(.signal(SIGTERM), [], timedOut: true) == 124)
    #expect(status(.signal(SIGTERM), [.error], timedOut: true) == 66)
    #expect(status(.signal(SIGTERM), [.error], .never, timedOut: true) == 124)
  }
}
