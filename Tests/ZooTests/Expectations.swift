import HangReport
import WaitForGraph

extension HangReport {
  /// A thread's own name; the main thread's is `main`.
  func name(of thread: WatchedThread) -> String {
    thread.tid == thread.pid ?? process.pid ? "main" : thread.name
  }

  func name(of id: ThreadID) -> String {
    threads.first { $0.id == id }.map(name) ?? "?"
  }

  /// Sorted.
  func names(ofCycle finding: Finding) -> [String] {
    finding.cycle.map { name(of: $0.thread) }.sorted()
  }
}

extension Finding {
  var isLoud: Bool { severity == .warning || severity == .error }
}

extension Fixture {
  /// The findings that this program is there for.
  func matching(_ report: HangReport) -> [Finding] {
    report.findings.filter { finding in
      finding.isLoud && expected.contains(finding.kind.rawValue)
        || finding.severity == .note && noted.contains(finding.kind.rawValue)
    }
  }

  /// Findings that nothing in this program calls for.
  func strangers(_ report: HangReport) -> [Finding] {
    // A main thread in a deadlock may hang for a while before that is certain.
    let besides = expected.contains("deadlock") ? besides.union(["hang"]) : besides
    return report.findings.filter { finding in
      finding.isLoud && !expected.union(noted).union(besides).contains(finding.kind.rawValue)
    }
  }

  /// What is wrong with what was found: whom and what it is about, and whom it blames.
  func problems(_ report: HangReport) -> [String] {
    let matching = matching(report)
    var problems: [String] = []
    let threads = Set(
      matching.flatMap { $0.threads + $0.cycle.map(\.thread) }.map { report.name(of: $0) })
    let missing = named.subtracting(threads)
    if !missing.isEmpty { problems.append("says nothing of \(missing.sorted())") }
    // Without a cycle everybody that it names is blamed.
    let blamed = Set(
      matching.flatMap { $0.cycle.isEmpty ? $0.threads : $0.cycle.map(\.thread) }
        .map { report.name(of: $0) })
    let wronged = innocent.intersection(blamed)
    if !wronged.isEmpty { problems.append("blames \(wronged.sorted())") }
    let ids = Set(matching.flatMap { $0.resources + $0.cycle.map(\.waitsFor) })
    let kinds = Set(report.resources.filter { ids.contains($0.id) }.map(\.kind.rawValue))
    let lacking = about.subtracting(kinds)
    if !lacking.isEmpty { problems.append("names no \(lacking.sorted()), but \(kinds.sorted())") }
    return problems
  }
}
