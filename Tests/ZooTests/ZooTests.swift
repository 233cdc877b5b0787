import Foundation
import HangReport
import Testing
import WaitForGraph

/// Programs with known faults and programs without, run as processes under `hangcheck`.
///
/// `ZOO=mutex-,near-signals` picks cases by the beginnings of their names.
@Suite("Zoo") struct ZooTests {
  @Test("faults are found", arguments: Fixture.run.filter { !$0.isHealthy })
  func faulty(_ fixture: Fixture) async throws {
    let program = try await Builder.shared.program(fixture)
    let result = try await Gate.shared.pass { try Watched.run(fixture, program) }
    check(result, fixture)
    let report = try #require(
      result.report, "no report; \(result.outcome.status), \(result.outcome.errorText)")
    let matching = fixture.matching(report)
    #expect(!matching.isEmpty, "expected \(fixture.expected), found \(describe(report))")
    let strangers = fixture.strangers(report)
    #expect(strangers.isEmpty, "found besides: \(describe(report))")
    let problems = fixture.problems(report)
    #expect(problems.isEmpty, "\(describe(report))")
    for finding in matching where finding.kind == .deadlock {
      #expect(fixture.isSureEnough(finding))
      #expect(!finding.message.isEmpty && !finding.fingerprint.isEmpty)
    }
    guard !fixture.cycles.isEmpty else { return }

    let found = matching.map { report.names(ofCycle: $0) }
    let index = found.firstIndex { fixture.cycles.contains($0) }
    let at = try #require(index, "expected a cycle of \(fixture.cycles), found \(found)")
    check(matching[at], names: found[at], in: report, of: fixture)
  }

  @Test("healthy programs stay as they are", arguments: Fixture.run.filter(\.isHealthy))
  func healthy(_ fixture: Fixture) async throws {
    let program = try await Builder.shared.program(fixture)
    let result = try await Gate.shared.pass { try Watched.run(fixture, program) }
    check(result, fixture)
    let strangers = result.report.map(fixture.strangers) ?? []
    #expect(strangers.isEmpty, "\(result.report.map(describe) ?? "")")
    guard fixture.ending == .same else { return }
    let alone = try await Gate.shared.pass { try Watched.alone(fixture, program) }
    // With a finding that is allowed, hangcheck's own status stands in the place of the program's.
    if !result.loud.contains(where: { $0.severity == .error }) {
      #expect(result.outcome.status == asShell(alone.status))
    }
    #expect(result.outcome.output == alone.output, "\(difference(result.outcome, alone))")
    // What cannot be watched is said in a line of hangcheck's own.
    let isBlind = fixture.variant == "static" && fixture.source.hasSuffix(".c")
    if isBlind {
      #expect(result.outcome.errorText.contains("cannot be watched"))
    } else {
      #expect(result.outcome.errors == alone.errors, "\(difference(result.outcome, alone))")
    }
  }

  /// What must hold of every run.
  private func check(_ result: Watched.Result, _ fixture: Fixture) {
    let outcome = result.outcome
    let words = "\(outcome.status) after \(outcome.seconds) s\n\(outcome.errorText.suffix(1500))"
    #expect(result.unreadable == nil)
    #expect(outcome.status != .overdue, "\(words)")
    #expect(!outcome.leftOvers, "processes were left behind")
    let done = outcome.outputText.contains("DONE\n")
    switch fixture.ending {
    case .ended:
      #expect(outcome.status == .exited(66), "\(words)")
      #expect(!done)
    case .done:
      #expect(outcome.status == .exited(66), "\(words)")
      #expect(done)
    case .status(let status):
      #expect(outcome.status == .exited(status), "\(words)")
      #expect(done)
    case .trap:
      let isError = result.loud.contains { $0.severity == .error }
      let own = [SIGILL, SIGTRAP, SIGABRT].map { Child.Status.exited(128 + $0) }
      #expect(isError ? outcome.status == .exited(66) : own.contains(outcome.status), "\(words)")
      #expect(!done)
    case .timeout: #expect(outcome.status == .exited(124), "\(words)")
    case .any: if !fixture.isHealthy { #expect(outcome.status == .exited(66), "\(words)") }
    case .same: break
    }
    // A deadlock is told at once, not when the time is up.
    if !fixture.isHealthy && fixture.ending != .timeout {
      #expect(outcome.seconds < 20, "it was not told before the time was up")
    }
  }

  /// The cycle's resources, message and evidence.
  private func check(
    _ finding: Finding, names: [String], in report: HangReport, of fixture: Fixture
  ) {
    let kinds = finding.cycle.compactMap { edge in
      report.resources.first { $0.id == edge.waitsFor }?.kind.rawValue
    }
    if !fixture.resources.isEmpty { #expect(Set(kinds) == fixture.resources) }
    #expect(kinds.count == finding.cycle.count, "a resource of the cycle is not in the report")
    for (edge, next) in zip(finding.cycle, finding.cycle.dropFirst() + finding.cycle.prefix(1)) {
      #expect(edge.ownedBy == next.thread, "the cycle does not close")
    }
    if names.count <= 6 {
      // An odd name may be written with escapes.
      for name in names where name != "main" && !name.contains(where: "\"\\".contains) {
        #expect(finding.message.contains(name), "the message does not name \(name)")
      }
    }
    guard fixture.hasLines else {
      let lines = finding.evidence.flatMap(\.stack).filter { !$0.runtime }.compactMap(\.line)
      if fixture.variant == "stripped" { #expect(lines.isEmpty) }
      return
    }
    var missing: [String] = []
    for name in Set(names) {
      let ids = Set(report.threads.filter { report.name(of: $0) == name }.map(\.id))
      let frames = finding.evidence.filter { $0.thread.map { ids.contains($0) } ?? true }
        .flatMap(\.stack)
      for mark in fixture.marks(of: name) {
        let shown = frames.contains { frame in
          frame.line == mark.line
            && frame.file.map { URL(filePath: $0).lastPathComponent } == mark.file
        }
        if !shown { missing.append("\(mark.role.rawValue)(\(name)) at \(mark.file):\(mark.line)") }
      }
    }
    #expect(missing.isEmpty, "the evidence does not show these lines")
  }

  private func describe(_ report: HangReport) -> String {
    report.findings.map { "\($0.severity) \($0.kind): \($0.message)" }.joined(separator: "\n")
  }

  /// As a shell says it, and as hangcheck does.
  private func asShell(_ status: Child.Status) -> Child.Status {
    if case .signalled(let signal) = status { return .exited(128 + signal) }
    return status
  }

  private func difference(_ watched: Child.Outcome, _ alone: Child.Outcome) -> String {
    func first(_ a: String, _ b: String) -> String {
      let a = a.split(separator: "\n", omittingEmptySubsequences: false)
      let b = b.split(separator: "\n", omittingEmptySubsequences: false)
      for i in 0..<max(a.count, b.count) {
        let (x, y) = (i < a.count ? a[i] : "(end)", i < b.count ? b[i] : "(end)")
        if x != y { return "line \(i + 1): '\(x)' where alone it is '\(y)'" }
      }
      return ""
    }
    let out = first(watched.outputText, alone.outputText)
    return out.isEmpty ? first(watched.errorText, alone.errorText) : out
  }
}

/// The fixtures themselves: those with a fault hang, the others end. `ZOO_ALONE=1` asks for it, since
/// it says nothing about hangcheck.
@Suite("Zoo alone", .enabled(if: ProcessInfo.processInfo.environment["ZOO_ALONE"] != nil))
struct ZooAloneTests {
  @Test("every fixture does what its line says", arguments: Fixture.run)
  func alone(_ fixture: Fixture) async throws {
    let program = try await Builder.shared.program(fixture)
    let hangs = !fixture.isHealthy && (fixture.ending == .ended || fixture.ending == .any)
    let limit = hangs ? (fixture.name.contains("crowd") ? 3 : 1.2) : 45
    let traps = [SIGILL, SIGTRAP, SIGABRT].map { Child.Status.signalled($0) }
    let once = try await Gate.shared.pass { try Watched.alone(fixture, program, limit: limit) }
    if hangs {
      let isCut = fixture.ending == .any && traps.contains(once.status)
      #expect(
        once.status == .overdue || isCut,
        "\(once.status): \(once.outputText)\(once.errorText)")
    } else if fixture.ending == .trap {
      #expect(traps.contains(once.status), "\(once.status): \(once.outputText)")
    } else if fixture.ending == .done || fixture.ending == .status(0) {
      #expect(once.status == .exited(0) && once.outputText.contains("DONE\n"))
    } else if fixture.ending == .same {
      let again = try await Gate.shared.pass { try Watched.alone(fixture, program) }
      #expect(once.status == again.status)
      #expect(once.output == again.output)
      #expect(once.errors == again.errors)
      #expect(!once.leftOvers)
      let cut = [
        "around-exit-7", "around-killed", "around-aborts", "around-terminated",
        "near2-conditionlock-trap",
      ]
      if !cut.contains(fixture.name) && fixture.name != "around-shell" {
        #expect(once.status == .exited(0), "\(once.errorText)")
        #expect(once.outputText.contains("DONE\n"))
      }
    }
  }
}

@Suite("Zoo's table") struct ZooTableTests {
  @Test("every line is read, names are unique, and each cycle's threads are marked")
  func table() throws {
    let file = Fixture.folder.appending(path: "fixtures.tsv")
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    #expect(Fixture.table.count == lines.count { !$0.hasPrefix("#") })
    #expect(Set(Fixture.table.map(\.name)).count == Fixture.table.count)
    for fixture in Fixture.table {
      #expect(!fixture.expected.union(fixture.noted).isEmpty)
      #expect(!fixture.doors.isEmpty)
      for name in fixture.cycles.first ?? [] {
        #expect(!fixture.marks(of: name).isEmpty, "\(fixture.name): no line is marked for \(name)")
      }
    }
  }
}
