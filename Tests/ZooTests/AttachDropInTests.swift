import Foundation
import HangReport
import Testing

/// A program that uses the drop-ins has their record in its memory: `hangcheck attach` reads it.
@Suite("Attach to drop-ins") struct AttachDropInTests {
  /// Beside the bundle of these tests.
  private static let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent().appending(path: "SwapFixture").path

  private func looked(_ scenario: String) async throws -> Watched.Result {
    try await Gate.shared.pass {
      let target = try Target(
        [Self.program, scenario], adding: ["HANGCHECK_OPTIONS": "log=/dev/null"])
      defer { target.end() }
      usleep(2_000_000)
      return try Attached.run(["\(target.pid)"])
    }
  }

  @Test("names, where locks were taken, and since when")
  func record() async throws {
    let result = try await looked("named")
    #expect(result.outcome.status == .exited(66))
    let report = try #require(result.report)
    let found = try #require(result.loud.first { $0.kind == .deadlock })
    #expect(report.mode == .attach)
    #expect(report.names(ofCycle: found) == ["cancel", "submit"])
    let names = found.cycle.compactMap { edge in
      report.resources.first { $0.id == edge.waitsFor }?.name
    }
    #expect(Set(names) == ["accounts", "journal"])
    #expect(report.limits?.contains { $0.contains("where locks were taken") } != true)
    #expect(!report.threads.contains { $0.name == "hangcheck" && $0.waitsFor != nil })
  }

  @Test("the line that took each lock")
  func sites() async throws {
    let report = try #require(try await looked("abba").report)
    let source = Fixture.root.appending(path: "Tests/SwapFixture/Scenarios.swift")
    let lines = try String(contentsOf: source, encoding: .utf8).components(separatedBy: "\n")
    for (name, lock) in [("cancel", "a.lock()"), ("submit", "b.lock()")] {
      let thread = try #require(report.threads.first { $0.name == name })
      let function = try #require(lines.firstIndex { $0.contains("func \(name)(") })
      let line = try #require(lines[function...].firstIndex { $0.contains(lock) }) + 1
      let hold = try #require(thread.holds.first)
      #expect(hold.stack.first { !$0.runtime && $0.file != nil }?.line == line)
      #expect((hold.seconds ?? 0) > 0.5)
      #expect((thread.waitsFor?.seconds ?? 0) > 0.5)
    }
  }
}
