import Foundation
import HangReport
import Testing

/// Hangs of small programs that watch themselves. What is asserted of time leaves room for a machine
/// with much else to do.
@Suite(.serialized) struct HangTests {
  private func hangs(_ run: RunResult) -> [Finding] { run.findings.filter { $0.kind == .hang } }

  /// Opened once, closed once, and in between perhaps told again; all under one name.
  private func checkLife(_ findings: [Finding], subject: String) throws {
    let messages = findings.map(\.message)
    let first = try #require(messages.first)
    #expect(first.hasPrefix("\(subject) has made no progress for "), "\(messages)")
    let last = try #require(messages.last)
    #expect(last.hasPrefix("\(subject) made no progress for "), "\(messages)")
    #expect(last.contains(" and goes on again "))
    #expect(messages.count { $0.contains(" goes on again ") } == 1)
    #expect(Set(findings.map(\.fingerprint)).count == 1)
    #expect(findings.allSatisfy { $0.severity == .warning && $0.certainty == .certain })
  }

  /// Seconds as the last message tells them.
  private func duration(_ findings: [Finding]) throws -> Double {
    let message = try #require(findings.last).message
    let match = try #require(message.firstMatch(of: #/made no progress for (\d+\.\d) s/#))
    return try #require(Double(match.output.1))
  }

  @Test(
    arguments: [
      ("computes", "crunch(_:)", ["main thread computing", "main thread ready to run"]),
      ("sleeps", "sleepAbout(_:)", ["main thread in clock_nanosleep"]),
      ("reads", "readPipe(_:)", ["main thread in read (descriptor "]),
      ("locks", "waitForLock(_:)", ["main thread waiting for mutex "]),
      ("foreign", "waitForForeignLock(_:)", ["main thread waiting for mutex "]),
    ], ["0.3", "2"])
  func ofTheMainRunLoop(
    way: (name: String, function: String, words: [String]), seconds: String
  ) throws {
    let run = try Fixture.run(["hang-loop", way.name, seconds])
    #expect(run.isWhole, "\(run.errors)")
    let found = hangs(run)
    // A short one is over before a machine that is busy elsewhere has looked at it.
    if found.isEmpty && seconds == "0.3" { return }
    try checkLife(found, subject: "the main run loop")
    let told = try duration(found)
    #expect(told >= 0.3 && (seconds == "2" ? told >= 1.9 : true), "\(told)")
    let opened = found[0]
    #expect(opened.message.contains(" in \(way.function)"), "\(opened.message)")
    // What a short one did may be over before it is looked at.
    guard seconds == "2" else { return }
    #expect(way.words.contains(where: opened.message.contains), "\(opened.message)")
    #expect(opened.evidence.first?.stack.contains { $0.symbol == way.function } ?? false)
    if way.name == "locks" || way.name == "foreign" {
      let holder = way.name == "locks" ? "holder" : "stranger"
      let last = try #require(found.last)
      let words = (
        way.name == "locks" ? "mutex \"cache\" at 0x" : "mutex 0x", "held by \"\(holder)\""
      )
      #expect(
        last.message.contains(words.0) && last.message.contains(words.1),
        "\(last.message)")
      #expect(opened.threads.count == 2 && opened.resources.count == 1)
    }
    #expect(run.findings.count == found.count, "\(run.findings.map(\.message))")
  }

  @Test(arguments: [
    ("hang-thread", "run loop \"looper\"", "crunch(_:)"),
    ("hang-queue", "queue \"images\"", "crunch(_:)"),
    ("hang-heartbeat", "heartbeat \"server loop\"", "crunch(_:)"),
    ("hang-pool", "the cooperative pool", "sleepAbout(_:)"),
    ("hang-stopped-watch", "the main run loop", "crunch(_:)"),
  ]) func ofOthers(scenario: String, subject: String, function: String) throws {
    let run = try Fixture.run([scenario])
    #expect(run.isWhole, "\(run.errors)")
    try checkLife(hangs(run), subject: subject)
    #expect(hangs(run).last?.message.contains(" in \(function)") ?? false)
  }

  @Test func ofTheMainActor() throws {
    let run = try Fixture.run(["hang-actor"])
    #expect(run.isWhole)
    #expect(hangs(run).contains { $0.message.hasPrefix("the main actor has made no progress") })
    #expect(hangs(run).contains { $0.message.contains("goes on again") })
  }

  @Test(arguments: [
    "idle-loop", "never-run-loop", "other-mode", "busy-loop", "suspended-queue", "busy-queue",
    "expect-nothing", "beating", "busy-pool", "idle-pool", "stopped",
  ]) func whatIsNoHang(scenario: String) throws {
    let run = try Fixture.run([scenario], options: patience(scenario))
    #expect(run.isWhole, "\(run.errors)")
    #expect(run.reports.isEmpty && run.errors.isEmpty, "\(run.errors)")
  }

  /// What does work must not be held up for the threshold by a machine with much else to do.
  private func patience(_ scenario: String) -> String {
    ["busy-loop", "busy-queue", "beating"].contains(scenario) ? "hang-threshold=750ms" : ""
  }

  @Test func theThresholdIsTheConfigurations() throws {
    let patient = try Fixture.run(["hang-loop", "sleeps", "0.5"], options: "hang-threshold=5s")
    #expect(patient.isWhole && patient.reports.isEmpty)
    let eager = try Fixture.run(["hang-loop", "sleeps", "0.5"], options: "hang-threshold=50ms")
    #expect(!hangs(eager).isEmpty)
  }

  private static let strace = "/usr/bin/strace"

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: strace)))
  func aTracedProgramIsSpokenOfOnce() throws {
    let run = try Fixture.run(
      ["hang-loop", "sleeps", "1"], under: [Self.strace, "-f", "-o", "/dev/null"])
    #expect(run.output.hasSuffix("DONE\n") && run.reports.isEmpty)
    #expect(run.errors.components(separatedBy: " traces this one: no hang is told").count == 2)
  }

  @Test func suppressed() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    try "kind:hang symbol:sleepAbout*".write(toFile: path, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let run = try Fixture.run(["hang-loop", "sleeps", "1.5"], options: "suppressions=\(path)")
    #expect(run.isWhole && run.reports.isEmpty && run.errors.isEmpty, "\(run.errors)")
  }

  @Test func underTheToolTheWatchIsLeftToIt() throws {
    let tool = [Fixture.path("hangcheck"), "--timeout", "20s"]
    let run = try Fixture.run(["hang-heartbeat"], under: tool)
    #expect(run.isWhole)
    #expect(!run.findings.contains { $0.message.contains("heartbeat") })
  }
}
