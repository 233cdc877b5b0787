import Glibc
import HangReport
import ProcessInspector
import Testing
import WaitForGraph

@testable import hangcheck

/// A watch that finds what its script says: each entry is a moment and the findings to add.
private final class ScriptedWatch: RunWatch {
  struct Line: Codable, Sendable {
    /// Ticks after the start; -1 for the time-out's report, -2 for the end.
    var tick: Int
    var kind: Finding.Kind
    var severity: Finding.Severity
    var mainThreadIsStuck: Bool
  }

  private let setup: RunSetup
  private var script: [Line]
  private var ticks = 0
  private var findings: [Finding] = []
  let connections: [Int32] = []

  init(_ setup: RunSetup, _ script: [Line]) {
    self.setup = setup
    self.script = script
  }

  func accept(_ connection: Int32, peer: Peer) { close(connection) }
  func readable(_ connection: Int32) -> [RunEvent] { [] }

  private func take(_ tick: Int) -> RunEvent? {
    let lines = script.filter { $0.tick == tick }
    guard !lines.isEmpty else { return nil }
    findings += lines.map {
      Finding(
        kind: $0.kind, severity: $0.severity, certainty: .certain,
        message: "finding \(findings.count + 1)", threads: [ThreadID(1)])
    }
    return .report(report(nil), mainThreadIsStuck: lines.contains { $0.mainThreadIsStuck })
  }

  private func report(_ exit: WatchedProcess.Exit?) -> HangReport {
    HangReport(
      tool: setup.tool, mode: .run,
      process: WatchedProcess(
        pid: setup.pid, executable: setup.executable, arguments: setup.arguments, exit: exit),
      findings: findings,
      threads: [Thread(id: ThreadID(1), tid: setup.pid, name: "main", state: .blocked)])
  }

  func tick(now: UInt64) -> [RunEvent] {
    ticks += 1
    return take(ticks).map { [$0] } ?? []
  }
  func timeoutReport(now: UInt64) -> RunEvent? { take(-1) }
  func finish(exit: RunEnd) -> HangReport {
    _ = take(-2)
    switch exit {
    case .status(let status): return report(.init(status: status))
    case .signal(let signal): return report(.init(signal: signal))
    }
  }
}

/// What hangcheck does about findings. Each run is a process of its own: the supervisor takes over
/// the signals of the process that it is in.
@Suite struct WatchedRunTests {
  struct Case: Codable, Sendable, CustomTestStringConvertible {
    var name: String
    var options: [String]
    var program: [String]
    var script: [ScriptedLine]
    var testDescription: String { name }

    /// Runs it in this process; the exit status is the result.
    func run() -> Never {
      // The program would inherit what the test's thread blocks.
      var none = sigset_t()
      sigemptyset(&none)
      sigprocmask(SIG_SETMASK, &none, nil)
      do {
        let invocation = try Invocation.parse(options + ["--"] + program)
        let script = script.map {
          ScriptedWatch.Line(
            tick: $0.tick, kind: $0.kind, severity: $0.severity, mainThreadIsStuck: $0.stuck)
        }
        let command = RunCommand(
          options: invocation.options, firstWord: 0, makeWatch: { ScriptedWatch($0, script) },
          replacedWords: program)
        exit(command.run())
      } catch {
        exit(99)
      }
    }
  }

  struct ScriptedLine: Codable, Sendable {
    var tick: Int
    var kind = Finding.Kind.deadlock
    var severity = Finding.Severity.error
    var stuck = false
  }

  @Test func autoEndsAProgramWhoseMainThreadIsStuck() async throws {
    await #expect(processExitsWith: .exitCode(66)) {
      Case(
        name: "", options: ["--quiet"], program: ["sleep", "60"],
        script: [.init(tick: 3, stuck: true)]
      ).run()
    }
    // Another thread's deadlock leaves the program to itself.
    await #expect(processExitsWith: .exitCode(66)) {
      Case(
        name: "", options: [], program: ["sh", "-c", "sleep 0.3; exit 5"],
        script: [.init(tick: 3)]
      ).run()
    }
    await #expect(processExitsWith: .exitCode(5)) {
      Case(
        name: "", options: ["--fail-on", "never"], program: ["sh", "-c", "sleep 0.3; exit 5"],
        script: [.init(tick: 3)]
      ).run()
    }
  }

  @Test func deadlockActionsEndTheProgramAsAsked() async throws {
    await #expect(processExitsWith: .exitCode(143)) {
      Case(
        name: "", options: ["--fail-on=never", "--on-deadlock=terminate"],
        program: ["sleep", "60"],
        script: [.init(tick: 3)]
      ).run()
    }
    // It ignores TERM: killed a second later.
    await #expect(processExitsWith: .exitCode(137)) {
      Case(
        name: "", options: ["--fail-on=never", "--on-deadlock=terminate"],
        program: ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"], script: [.init(tick: 9)]
      ).run()
    }
    await #expect(processExitsWith: .exitCode(134)) {
      Case(
        name: "", options: ["--fail-on=never", "--on-deadlock=core"], program: ["sleep", "60"],
        script: [.init(tick: 3)]
      ).run()
    }
    // The first ABRT is swallowed, as Swift's crash reporter does.
    await #expect(processExitsWith: .exitCode(134)) {
      Case(
        name: "", options: ["--fail-on=never", "--on-deadlock=core"],
        program: ["sh", "-c", "trap 'trap - ABRT' ABRT; while :; do sleep 0.1; done"],
        script: [.init(tick: 60)]
      ).run()
    }
    await #expect(processExitsWith: .exitCode(4)) {
      Case(
        name: "", options: ["--fail-on=never", "--on-deadlock=continue"],
        program: ["sh", "-c", "sleep 0.3; exit 4"], script: [.init(tick: 3, stuck: true)]
      ).run()
    }
  }

  /// A suppressed deadlock is no finding, but what it stops for ever is ended.
  @Test func suppressedDeadlocksDoNotCount() async throws {
    let scratch = try Scratch()
    try scratch.write("x", "kind:deadlock\n", mode: 0o600)
    let rules = ["--suppressions", scratch.path + "/x"]
    let soon = rules + ["--wait-threshold", "200ms"]
    // The end comes after what was found meanwhile.
    let found = Case(
      name: "", options: soon, program: ["sleep", "60"],
      script: [.init(tick: 2, stuck: true), .init(tick: 9, kind: .lockMisuse)])
    await #expect(processExitsWith: .exitCode(66)) { [found = found as Case] in found.run() }
    let alone = Case(
      name: "", options: soon, program: ["sleep", "60"], script: [.init(tick: 2, stuck: true)])
    let result = await #expect(
      processExitsWith: .exitCode(143), observing: [\.standardErrorContent]
    ) { [alone = alone as Case] in alone.run() }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("a suppressed deadlock keeps a main thread for ever"))
    #expect(text.hasSuffix("1 finding (deadlock) suppressed by \(rules[1]):1: kind:deadlock\n"))
    #expect(!text.contains("finding 1") && !text.contains("DEADLOCK"))
    let elsewhere = Case(
      name: "", options: soon + ["--on-deadlock", "terminate"],
      program: ["sh", "-c", "sleep 0.5; exit 5"], script: [.init(tick: 2)])
    await #expect(processExitsWith: .exitCode(5)) { [elsewhere = elsewhere as Case] in
      elsewhere.run()
    }
    let left = Case(
      name: "", options: soon + ["--on-deadlock", "continue"],
      program: ["sh", "-c", "sleep 0.5; exit 5"], script: [.init(tick: 2, stuck: true)])
    await #expect(processExitsWith: .exitCode(5)) { [left = left as Case] in left.run() }
    let timed = Case(
      name: "", options: rules + ["--timeout", "200ms"], program: ["sleep", "60"],
      script: [.init(tick: 2, stuck: true)])
    await #expect(processExitsWith: .exitCode(124)) { [timed = timed as Case] in timed.run() }
  }

  @Test func timeoutReportsFirst() async throws {
    await #expect(processExitsWith: .exitCode(66)) {
      Case(
        name: "", options: ["--timeout", "200ms"], program: ["sleep", "60"],
        script: [.init(tick: -1, stuck: true)]
      ).run()
    }
    await #expect(processExitsWith: .exitCode(124)) {
      Case(
        name: "", options: ["--timeout", "200ms"], program: ["sleep", "60"],
        script: [.init(tick: -1, kind: .longWait, severity: .note)]
      ).run()
    }
  }

  @Test func textGoesOutAtOnceAndOnlyOnce() async throws {
    let result = await #expect(
      processExitsWith: .exitCode(66), observing: [\.standardErrorContent]
    ) {
      Case(
        name: "", options: [],
        program: ["sh", "-c", "sleep 0.3; echo between >&2; sleep 0.3"],
        script: [
          .init(tick: 3), .init(tick: 45, kind: .longWait, severity: .note), .init(tick: -2),
        ]
      ).run()
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    let order = ["finding 1", "between", "finding 2", "finding 3"].map { words in
      text.ranges(of: words).map { text.distance(from: text.startIndex, to: $0.lowerBound) }
    }
    #expect(order.allSatisfy { $0.count == 1 }, "\(text)")
    #expect(order.flatMap(\.self) == order.flatMap(\.self).sorted(), "\(text)")
  }

  @Test func filesHoldTheWholeAndLogsTheNews() async throws {
    let scratch = try Scratch()
    let one = Case(
      name: "", options: ["--output", scratch.path + "/out", "--log", scratch.path + "/log"],
      program: [
        "sh", "-c",
        "cat \(scratch.path)/out; sleep 0.3; cp \(scratch.path)/out \(scratch.path)/early; sleep 0.3",
      ],
      script: [.init(tick: 3), .init(tick: -2)])
    try scratch.write("log", "{}\n", mode: 0o600)
    await #expect(processExitsWith: .exitCode(66)) { [one = one as Case] in
      one.run()
    }
    let early = try scratch.text("early")
    let late = try scratch.text("out")
    #expect(early.contains("finding 1") && !early.contains("finding 2"))
    #expect(late.contains("finding 1") && late.contains("finding 2"))
    let lines = try scratch.text("log").split(separator: "\n")
    #expect(lines.count == 3 && lines[0] == "{}")
    #expect(lines[1].contains("finding 1") && !lines[1].contains("finding 2"))
    #expect(!lines[2].contains("finding 1") && lines[2].contains("finding 2"))
  }
}
