import Foundation
import HangReport
import InstrumentedLocks
import Testing

@testable import Watchdog

@Suite(.serialized) struct WatchdogTests {
  @Test func handlersAreToldInTurn() throws {
    let run = try Fixture.run(["closure"])
    #expect(run.status == 3)
    #expect(run.output == "inProcess [\"deadlock\"] 4\n")
    #expect(run.errors == "hangcheck: a report's handler failed: no, thank you\n")
  }

  @Test func aHandlerThatBlocksHurtsNobody() throws {
    let run = try Fixture.run(["blocking"])
    #expect(run.isWhole)
  }

  @Test func stopsAndStartsAgain() throws {
    let run = try Fixture.run(["stop"])
    #expect(run.output == "quiet so far\nDONE\n")
    #expect(run.findings.count == 1)
  }

  @Test func takesANewConfiguration() throws {
    let run = try Fixture.run(["reconfigured"])
    #expect(run.output == "told the second\nDONE\n")
    #expect(run.reports.isEmpty)
    #expect(run.errors.isEmpty)
  }

  @Test(arguments: [("terminate", SIGTERM), ("core", SIGABRT)])
  func endsTheProcess(choice: String, signal: Int32) throws {
    let chosen = try Fixture.run(["ending", choice])
    #expect(chosen.signal == signal)
    #expect(chosen.errors.contains("DEADLOCK"))
    let asked = try Fixture.run(["abba"], options: "on-deadlock=\(choice)")
    #expect(asked.signal == signal)
    #expect(asked.findings.count == 1)
  }

  @Test func unwatchedIsSilent() throws {
    let run = try Fixture.run(["unwatched"])
    #expect(run.isWhole && run.errors.isEmpty && run.reports.isEmpty)
  }

  @Test func aForkedChildBeginsAnew() throws {
    let run = try Fixture.run(["fork"])
    #expect(run.output == "child 7\nDONE\n")
    let report = try #require(run.reports.first)
    #expect(run.reports.count == 1)
    #expect(report.threads.count == 3)
    #expect(report.threads.allSatisfy { $0.holds.allSatisfy { $0.stack.place != nil } })
    #expect(!report.resources.contains { $0.name == "held" || $0.name == "free" })
  }

  @Test(arguments: ["abba", "named", "with"])
  func underTheToolItSpeaksOnce(scenario: String) throws {
    let tool = [Fixture.path("hangcheck"), "--timeout", "2s"]
    let run = try Fixture.run([scenario], under: tool)
    #expect(run.reports.count == 1)
    let report = try #require(run.reports.first)
    #expect(report.mode == .run)
    #expect(report.findings.map(\.kind) == [.deadlock])
    #expect(!report.threads.contains { $0.name == "hangcheck" })
    #expect(run.errors.components(separatedBy: "DEADLOCK").count == 2)
    let alone = try #require(try Fixture.run([scenario], until: 1).reports.first)
    // The same names and places through both doors, hence the same fingerprint.
    #expect(Set(report.resources.map(\.name)) == Set(alone.resources.map(\.name)))
    func holds(_ report: HangReport) -> Set<String?> {
      Set(report.threads.flatMap { $0.holds.map(\.stack.place) })
    }
    #expect(holds(report) == holds(alone))
    #expect(report.findings[0].fingerprint == alone.findings[0].fingerprint)
  }

  @Test func trapsWhereTheOriginalTraps() throws {
    let run = try Fixture.run(["trap"])
    #expect(run.signal == SIGILL)
  }
}

@Suite struct OptionTests {
  @Test func readsTheCommandLinesKeys() {
    let (configuration, problems) = Watchdog.Configuration.parse(
      environment:
        " log=/tmp/a.jsonl hang-threshold=50ms\twait-threshold=1.5s predict=on stacks=site\n"
        + "on-deadlock=core color=never quiet verbose=off no-follow output=x format=json")
    #expect(problems.isEmpty)
    #expect(configuration.handlers.count == 2)
    #expect(configuration.hangThreshold == .milliseconds(50))
    #expect(configuration.waitThreshold == .milliseconds(1500))
    #expect(configuration.predictsDeadlocks)
    #expect(configuration.stacks == .site)
    #expect(configuration.onDeadlock == .core)
    #expect(configuration.color == .never)
    #expect(!configuration.dumpsOnQuit)
  }

  @Test func readsItsOwnSwitches() {
    let (configuration, problems) = Watchdog.Configuration.parse(
      environment: "syslog journald=on log=/tmp/a.jsonl dump-on-quit")
    #expect(problems.isEmpty)
    // What may be a pipe that nobody reads comes last.
    #expect(configuration.handlers.map(\.writesText) == [false, false, false, true])
    #expect(configuration.dumpsOnQuit)
    let (off, _) = Watchdog.Configuration.parse(environment: "syslog=off dump-on-quit=off")
    #expect(off.handlers.count == 1 && !off.dumpsOnQuit)
  }

  @Test(arguments: [
    "hello", "log", "log=", "wait-threshold=3", "wait-threshold=-1s", "wait-threshold=s",
    "wait-threshold=999999999h", "wait-threshold=1e400s", "stacks=all", "predict", "=",
    "predict==on",
    "on-deadlock=die", "quiet=maybe", "syslog=/dev/log", "Log=/tmp/x", "--log=/tmp/x",
  ])
  func saysWhatIsWrong(word: String) {
    let (configuration, problems) = Watchdog.Configuration.parse(
      environment: "\(word) hang-threshold=1s")
    #expect(problems.count == 1)
    #expect(!problems[0].contains("\n"))
    #expect(configuration.hangThreshold == .seconds(1))
    #expect(configuration.handlers.count == 1)
  }

  @Test func badWordsAreNoTrap() throws {
    let run = try Fixture.run(["recursive"], options: "wait-threshold=soon bogus")
    #expect(run.isWhole)
    #expect(run.errors.split(separator: "\n").count == 2)
    #expect(run.errors.contains("HANGCHECK_OPTIONS: unknown key 'bogus' is ignored"))
  }

  @Test(arguments: ["/nonexistent/folder/log", "/", "/dev/full"])
  func aLogThatCannotBeWritten(path: String) throws {
    let run = try Fixture.run(["abba"], limit: 2, options: "log=\(path)")
    #expect(run.errors.contains("hangcheck: a report's handler failed: \(path): "))
    #expect(run.findings.count == 1)
    #expect(run.errors.contains("DEADLOCK"))
  }
}

/// Suppressions and baselines in process.
@Suite struct ScreenTests {
  private func file(_ text: String) throws -> String {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  @Test(arguments: ["kind:deadlock", "kind:hang", "kind:deadlock until:2020-01-01"])
  func suppressed(_ rule: String) throws {
    let rules = try file(rule)
    defer { try? FileManager.default.removeItem(atPath: rules) }
    let run = try Fixture.run(["abba"], limit: 2, options: "suppressions=\(rules)")
    #expect(run.findings.count == (rule == "kind:deadlock" ? 0 : 1))
    #expect(run.errors.contains("DEADLOCK") == (rule != "kind:deadlock"))
  }

  @Test func whatABaselineHasIsNotToldAndEndsNothing() throws {
    let first = try Fixture.run(["abba"], until: 1)
    let known = try file(String(decoding: try #require(first.reports.first).json(), as: UTF8.self))
    defer { try? FileManager.default.removeItem(atPath: known) }
    let run = try Fixture.run(
      ["abba"], limit: 2, options: "baseline=\(known) on-deadlock=terminate")
    #expect(run.reports.isEmpty && run.errors.isEmpty)
    #expect(run.status == nil)
  }

  @Test func unreadableFilesAreLeftOut() throws {
    let rules = try file("kind:deadlok")
    defer { try? FileManager.default.removeItem(atPath: rules) }
    let run = try Fixture.run(
      ["abba"], until: 1, options: "suppressions=\(rules) baseline=/nowhere")
    #expect(run.findings.count == 1)
    #expect(run.errors.contains("hangcheck: \(rules):1: 'deadlok' is no kind of finding; did you"))
    #expect(run.errors.contains("hangcheck: /nowhere: cannot be read: No such file or directory;"))
  }

  @Test func uselessRulesAreSaidAtTheEnd() throws {
    let rules = try file("kind:hang")
    defer { try? FileManager.default.removeItem(atPath: rules) }
    let run = try Fixture.run(["recursive"], options: "suppressions=\(rules)")
    #expect(run.isWhole)
    #expect(
      run.errors == "hangcheck: \(rules):1: the suppression has matched nothing: kind:hang\n")
  }
}
