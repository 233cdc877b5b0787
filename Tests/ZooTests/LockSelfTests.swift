import Foundation
import HangReport
import Testing

/// The Linux kernel's lock self-test, case by case (`Tests/Fixtures/selftest.c` and `.tsv`).
@Suite("Lock self-test") struct LockSelfTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    /// Kinds of which one must be found, a note being enough; none where all must be silent.
    var expected: Set<String>
    var testDescription: String { name }
  }

  /// A line for each case: its name and, separated by a tab, `silent` or the kinds.
  static let cases: [Case] = {
    let file = Fixture.folder.appending(path: "selftest.tsv")
    let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { line in
      let columns = line.split(separator: "\t").map(String.init)
      guard columns.count == 2 else { return nil }
      let kinds = Set(columns[1].split(separator: ",").map(String.init))
      return Case(name: columns[0], expected: kinds.subtracting(["silent"]))
    }
  }()

  @Test("each case is flagged or silent as the kernel has it", arguments: cases)
  func flagged(_ one: Case) async throws {
    let program = try await Builder.shared.program(
      Fixture.folder.appending(path: "selftest.c"), variant: "debug")
    let result = try await Gate.shared.pass {
      try Watched.run(
        ["--on-deadlock", "terminate", "--timeout", "10s"], [program.path, one.name], limit: 20)
    }
    let report = try #require(result.report, "\(result.outcome.errorText)")
    let found = Set(report.findings.map(\.kind.rawValue))
    if one.expected.isEmpty {
      #expect(found.isEmpty, "\(report.findings.map(\.message))")
    } else {
      #expect(!found.isDisjoint(with: one.expected), "found \(found)")
      #expect(found.isSubset(of: one.expected), "found \(report.findings.map(\.message))")
    }
    // What is no real hang runs to its end.
    let isFatal = report.findings.contains { $0.severity == .error }
    if !found.contains("deadlock") { #expect(result.outcome.outputText.hasSuffix("DONE\n")) }
    #expect(result.outcome.status == .exited(isFatal ? 66 : 0))
  }

  @Test("the table is read, and every case is there once") func table() throws {
    let file = Fixture.folder.appending(path: "selftest.tsv")
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    #expect(Self.cases.count == lines.count { !$0.hasPrefix("#") })
    #expect(Set(Self.cases.map(\.name)).count == Self.cases.count)
    let known = Set(Finding.Kind.allCases.map(\.rawValue))
    for one in Self.cases { #expect(one.expected.isSubset(of: known), "\(one.name)") }
  }
}
