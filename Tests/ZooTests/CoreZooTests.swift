import Foundation
import HangReport
import Testing
import WaitForGraph

/// Programs of the zoo that hang, and the core files that a debugger and the kernel make of them.
@Suite("Zoo cores") struct CoreZooTests {
  @Test("a core tells what an attach tells", arguments: Fixture.cored)
  func same(_ fixture: Fixture) async throws {
    let program = try await Builder.shared.program(fixture)
    let (live, past, outcome) = try await Gate.shared.pass {
      let cores = try CoreFolder()
      defer { cores.remove() }
      let target = try Target(Watched.command(fixture, program))
      defer { target.end() }
      usleep(2_000_000)
      var live = try Attached.run(["\(target.pid)"])
      // On a busy machine it may not be there yet.
      for _ in 0..<2 where live.loud.isEmpty { live = try Attached.run(["\(target.pid)"]) }
      let core = try cores.debuggersCore(of: target.pid)
      target.end()
      let past = try Cored.run([core])
      return (live, past, past.outcome)
    }
    let words = "\(outcome.status): \(outcome.errorText.suffix(500))"
    let report = try #require(past.report, "no report; \(words)")
    #expect(report.mode == .core)
    #expect(Cored.digest(report) == Cored.digest(try #require(live.report)), "\(words)")
    #expect(outcome.status == live.outcome.status)
    let standstill = past.loud.contains { $0.certainty == .possible }
    #expect(!standstill || report.limits?.contains { $0.contains("a core has nothing") } == true)
  }
}

/// A folder for the cores of one test.
struct CoreFolder {
  let url: URL
  init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "cores-\(UUID())")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }
  func remove() { try? FileManager.default.removeItem(at: url) }

  /// By gdb's gcore, which leaves the process alive.
  func debuggersCore(of pid: pid_t) throws -> String {
    let made = try Child.run(
      ["/usr/bin/gcore", "-o", url.appending(path: "gcore").path, "\(pid)"], limit: 60)
    guard made.status == .exited(0) else {
      throw Child.Failure(description: "gcore: \(made.status) \(made.errorText.suffix(300))")
    }
    return url.appending(path: "gcore.\(pid)").path
  }
}

/// `hangcheck core`, with its report.
enum Cored {
  static func run(_ arguments: [String], limit: Double = 30) throws -> Watched.Result {
    try Attached.run("core", arguments, limit: limit)
  }

  /// What a report finds, by what a core has too: no names, no certainty that nobody else could help.
  static func digest(_ report: HangReport) -> Set<String> {
    let tids = Dictionary(uniqueKeysWithValues: report.threads.map { ($0.id, $0.tid) })
    let addresses = Dictionary(uniqueKeysWithValues: report.resources.map { ($0.id, $0.address) })
    return Set(
      report.findings.filter { $0.severity != .note }.map { finding in
        let cycle = Set(
          finding.cycle.map { edge in
            "\(tids[edge.thread] ?? 0) waits for \(addresses[edge.waitsFor].map { "\($0)" } ?? "")"
          })
        return "\(finding.kind): \(cycle.sorted())"
      })
  }
}
