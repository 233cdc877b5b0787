import Foundation
import HangReport
import Testing

/// Suppressions over real programs: what the tool prints suppresses what it was printed for, and a
/// recompilation with other things changed makes no difference.
@Suite("Suppressions") final class SuppressionTests {
  private let folder = FileManager.default.temporaryDirectory.appending(path: "supp-\(UUID())")

  init() throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }
  deinit { try? FileManager.default.removeItem(at: folder) }

  private func program(_ name: String, _ source: String) async throws -> URL {
    let file = folder.appending(path: name)
    try source.write(to: file, atomically: true, encoding: .utf8)
    return try await Builder.shared.program(file, variant: "debug")
  }

  private func run(_ options: [String], _ command: [String]) async throws -> Watched.Result {
    try await Gate.shared.pass {
      try Watched.run(["--on-deadlock", "terminate", "--timeout", "8s"] + options, command)
    }
  }

  private static let original = """
    import Foundation
    let left = NSLock(), right = NSLock()
    final class Account {
      func pay() { left.lock(); usleep(200_000); right.lock() }
      func draw() { right.lock(); usleep(200_000); left.lock() }
    }
    let account = Account()
    Thread { account.pay() }.start()
    Thread { account.draw() }.start()
    sleep(20)
    """

  @Test(
    "a fingerprint survives a recompilation with unrelated edits",
    arguments: [
      ("lines", "import Foundation", "// A comment.\n\n\nimport Foundation\n\n"),
      ("functions", "let account", "func unrelated(_ n: Int) -> Int { n * 2 }\nlet account"),
      (
        "members", "func pay()",
        "var balance = 0\n  func balanceNow() -> Int { balance }\n  func pay()"
      ),
      ("types", "final class", "struct Other { let lock = NSLock() }\nfinal class"),
      ("statements", "usleep(200_000)", "usleep(100_000); usleep(100_000)"),
      ("order", "Thread { account.pay() }.start()\n", ""),
    ])
  func recompiled(_ name: String, _ old: String, _ new: String) async throws {
    let before = try await run([], [program("before.swift", Self.original).path])
    var source = Self.original.replacing(old, with: new)
    if name == "order" { source = source.replacing("sleep(20)", with: old + "sleep(20)") }
    let after = try await run([], [program("after.swift", source).path])
    let fingerprints = [before, after].map { $0.loud.map(\.fingerprint) }
    #expect(fingerprints[0].count == 1)
    #expect(fingerprints[0] == fingerprints[1])
  }

  @Test("of two deadlocks the rule shown for one suppresses that one")
  func shownRules() async throws {
    let both = try #require(Fixture.table.first { $0.name == "mutex-two-cycles" })
    let program = try await Builder.shared.program(both)
    let command = Watched.command(both, program)
    let all = try await run(["--on-deadlock", "continue", "--timeout", "2s"], command)
    let fingerprints = all.loud.map(\.fingerprint)
    try #require(Set(fingerprints).count == 2, "\(all.outcome.errorText)")
    for finding in all.loud {
      let file = folder.appending(path: finding.fingerprint)
      try SuppressionRule.line(for: finding).write(to: file, atomically: true, encoding: .utf8)
      let rest = try await run(
        ["--suppressions", file.path, "--on-deadlock", "continue", "--timeout", "2s"], command)
      #expect(rest.loud.map(\.fingerprint) == fingerprints.filter { $0 != finding.fingerprint })
      #expect(rest.report?.suppressed?.map(\.fingerprint) == [finding.fingerprint])
      #expect(rest.outcome.status == .exited(66))
    }
    // A report that had suppressions is a baseline for what it told.
    let base = folder.appending(path: "base.json")
    try Data(try #require(all.report).json()).write(to: base)
    let known = try await run(
      ["--baseline", base.path, "--on-deadlock", "continue", "--timeout", "2s"], command)
    #expect(known.loud.isEmpty)
    #expect(known.outcome.status == .exited(124))
  }
}
