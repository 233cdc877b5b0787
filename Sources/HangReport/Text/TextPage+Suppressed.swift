extension TextPage {
  /// How many findings do not count, by the rule or baseline that says so.
  mutating func writeSuppressed() {
    guard let suppressed = report.suppressed, !suppressed.isEmpty else { return }
    var groups: [(finding: SuppressedFinding, count: Int)] = []
    for finding in suppressed {
      if let index = groups.firstIndex(where: {
        $0.finding.source == finding.source && $0.finding.rule == finding.rule
          && $0.finding.kind == finding.kind
      }) {
        groups[index].count += 1
      } else {
        groups.append((finding, 1))
      }
    }
    for (finding, count) in groups {
      let whose =
        finding.rule.map { "by \(finding.source): \(finding.reason ?? $0)" }
        ?? "by the baseline \(finding.source)"
      let findings = "\(count) finding\(count == 1 ? "" : "s") (\(finding.kind.rawValue))"
      line("hangcheck: \(findings) suppressed \(cleaned(whose))")
    }
  }
}
