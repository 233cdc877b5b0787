import Foundation
import HangReport
import Testing

/// What ThreadSanitizer prints stays where it was, and becomes a finding beside.
@Suite("ThreadSanitizer") struct SanitizerTests {
  private static func program() async throws -> URL {
    let fixture = try #require(Fixture.all.first { $0.name == "race-threads" })
    return try await Builder.shared.program(fixture)
  }

  /// A scenario of races.swift, with options for ThreadSanitizer in its environment.
  private static func run(_ scenario: String, _ options: String? = nil) async throws
    -> Watched.Result
  {
    let program = try await program().path
    let set = options.map { ["TSAN_OPTIONS=\($0)"] } ?? ["-u", "TSAN_OPTIONS"]
    return try await Gate.shared.pass {
      try Watched.run([], ["env"] + set + [program, scenario])
    }
  }

  private static func races(_ result: Watched.Result) -> [Finding] {
    result.report?.findings.filter { $0.kind == .dataRace } ?? []
  }

  @Test(
    "a race is one finding, and names both places",
    arguments: ["two-threads", "two-queues", "two-locks", "two-readers", "two-globals"])
  func places(_ scenario: String) async throws {
    let result = try await Self.run(scenario)
    let races = Self.races(result)
    try #require(races.count == 1, "\(result.outcome.errorText)")
    let source = Fixture.folder.appending(path: "races.swift")
    let text = try String(contentsOf: source, encoding: .utf8)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    for evidence in races[0].evidence.prefix(2) {
      let frame = try #require(evidence.stack.first { !$0.runtime })
      let line = try #require(frame.line)
      #expect(lines[line - 1].hasSuffix("// RACES"), "\(frame)")
      #expect(frame.symbol?.contains("in two") == true)
      #expect(evidence.thread != nil)
    }
    #expect(races[0].severity == .error)
    #expect(races[0].certainty == .certain)
    if scenario == "two-globals" { #expect(races[0].message.contains("the global counter")) }
    if scenario == "two-threads" {
      #expect(races[0].message.contains("\"ann\"") && races[0].message.contains("\"ben\""))
      #expect(races[0].evidence.contains { $0.label.contains("was started here by main thread") })
    }
  }

  @Test("fingerprints are the same in every run")
  func fingerprints() async throws {
    let first = Self.races(try await Self.run("two-threads"))
    let second = Self.races(try await Self.run("two-threads"))
    #expect(!first.isEmpty && first.map(\.fingerprint) == second.map(\.fingerprint))
  }

  @Test("its text is on the program's standard error, as ever")
  func text() async throws {
    let result = try await Self.run("two-threads")
    #expect(result.outcome.errorText.contains("WARNING: ThreadSanitizer: "))
    #expect(result.outcome.errorText.contains("SUMMARY: ThreadSanitizer: "))
  }

  @Test("it goes where the user's own options send it")
  func logPath() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "tsan-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let result = try await Self.run("two-threads", "log_path=\(folder.path)/log")
    #expect(!result.outcome.errorText.contains("WARNING: ThreadSanitizer"))
    let logs = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(logs.count == 1)
    #expect(Self.races(result).count == 1)
  }

  @Test(
    "the program finds its own options", arguments: [nil, "exitcode=3", "exitcode=3:verbosity=0"])
  func environment(_ options: String?) async throws {
    let result = try await Self.run("environment", options)
    #expect(result.outcome.outputText == "\(options ?? "none")\nDONE\n")
    #expect(result.outcome.errorText == "")
  }

  @Test(
    "without symbols of its own, ours name the places",
    arguments: ["symbolize=0", "print_summary=0"])
  func unsymbolized(_ options: String) async throws {
    let races = Self.races(try await Self.run("two-threads", options))
    try #require(races.count == 1)
    #expect(races[0].message.contains("in twoThreads()"))
  }
}
