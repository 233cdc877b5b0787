import Foundation
import HangReport
import Testing
import WaitForGraph

/// Programs of the zoo that were started without hangcheck and are attached to when they hang.
@Suite("Zoo attached") struct AttachZooTests {
  @Test("faults are found afterwards", arguments: Fixture.attached.filter { !$0.isHealthy })
  func faulty(_ fixture: Fixture) async throws {
    let program = try await Builder.shared.program(fixture)
    let (result, states) = try await Gate.shared.pass {
      let target = try Target(Watched.command(fixture, program))
      defer { target.end() }
      usleep(fixture.patience)
      // Where the machine is busy, the program may not have come to its fault yet.
      var result = try Attached.run(fixture.attachOptions + ["\(target.pid)"])
      for _ in 0..<3 where result.report.map({ fixture.matching($0).isEmpty }) ?? true {
        guard target.status == nil else { break }
        usleep(fixture.patience)
        result = try Attached.run(fixture.attachOptions + ["\(target.pid)"])
      }
      return (result, target.states)
    }
    let outcome = result.outcome
    let words = "\(outcome.status): \(outcome.errorText.suffix(500))"
    #expect(outcome.status == .exited(66), "\(words)")
    #expect(result.unreadable == nil)
    #expect(states.isDisjoint(with: ["t", "T"]), "it was left stopped: \(states)")
    let report = try #require(result.report, "no report; \(words)")
    #expect(report.mode == .attach)
    let matching = fixture.matching(report)
    let described = report.findings.map { "\($0.severity) \($0.kind): \($0.message)" }
      .joined(separator: "\n")
    try #require(!matching.isEmpty, "expected \(fixture.expected), found \(described)")
    #expect(fixture.strangers(report).isEmpty, "found besides: \(described)")
    #expect(fixture.problems(report).isEmpty, "\(fixture.problems(report)); \(described)")
    guard !fixture.cycles.isEmpty else { return }
    let found = matching.map { report.names(ofCycle: $0) }
    let at = try #require(
      found.firstIndex { fixture.cycles.contains($0) },
      "expected a cycle of \(fixture.cycles), found \(found); \(described)")
    let kinds = matching[at].cycle.compactMap { edge in
      report.resources.first { $0.id == edge.waitsFor }?.kind.rawValue
    }
    if !fixture.resources.isEmpty { #expect(Set(kinds) == fixture.resources, "\(described)") }
    let missing = missingWaits(matching[at], Set(found[at]), report, fixture)
    #expect(missing.isEmpty, "the evidence does not show these lines")
  }

  /// Where a lock was taken is on record alone; where a thread waits is on its stack.
  private func missingWaits(
    _ finding: Finding, _ names: Set<String>, _ report: HangReport, _ fixture: Fixture
  ) -> [String] {
    guard fixture.hasLines else { return [] }
    return names.flatMap { name -> [String] in
      let ids = Set(report.threads.filter { report.name(of: $0) == name }.map(\.id))
      let frames = finding.evidence.filter { $0.thread.map { ids.contains($0) } ?? true }
        .flatMap(\.stack)
      let marks = fixture.marks(of: name).filter { $0.role == .waits }
      return marks.filter { mark in
        !frames.contains { frame in
          frame.line == mark.line
            && frame.file.map { URL(filePath: $0).lastPathComponent } == mark.file
        }
      }.map { "\(name) at \($0.file):\($0.line)" }
    }
  }

  @Test(
    "healthy programs stay as they are, however often they are looked at",
    arguments: Fixture.attached.filter(\.isHealthy))
  func healthy(_ fixture: Fixture) async throws {
    let program = try await Builder.shared.program(fixture)
    let (loud, looks, status, output) = try await Gate.shared.pass {
      let target = try Target(Watched.command(fixture, program))
      defer { target.end() }
      var loud: [String] = []
      var looks = 0
      for _ in 0..<20 where target.status == nil {
        let result = try Attached.run(fixture.attachOptions + ["\(target.pid)"])
        if result.report != nil { looks += 1 }
        loud += result.loud.map(\.message)
      }
      return (loud, looks, target.wait(seconds: 45), target.outputText)
    }
    #expect(loud.isEmpty)
    let alone = try await Gate.shared.pass { try Watched.alone(fixture, program) }
    // On a busy machine a short one is over before the first look.
    #expect(looks > 0 || alone.seconds < 2)
    #expect(status == alone.status)
    #expect(output == alone.outputText)
  }
}
