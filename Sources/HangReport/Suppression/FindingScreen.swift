internal import WaitForGraph

/// Keeps findings out of a report that a suppression file or a baseline has something against, and
/// remembers what it has used of them.
///
/// A value, confined to whoever owns it. A finding costs one match of each rule against its frames.
public struct FindingScreen: Sendable {
  private let rules: [SuppressionRule]
  private let rulesFile: String
  private let known: Set<String>
  private let baselineFile: String
  /// ISO 8601.
  private let today: String
  /// Indices of the rules that have matched, or would have.
  private var used: Set<Int> = []
  private var verdicts: [SuppressedFinding?] = []

  /// `rulesFile` and `baselineFile` are what their findings are told to come from. `today`: ISO
  /// 8601 in UTC, of which the date counts.
  public init(
    rules: [SuppressionRule] = [], rulesFile: String = "", baseline: [HangReport] = [],
    baselineFile: String = "", today: String = UTCTime.now()
  ) {
    self.rules = rules
    self.rulesFile = rulesFile
    self.baselineFile = baselineFile
    self.today = today
    known = Set(baseline.flatMap(\.baselineFingerprints))
  }

  /// Splits a report's findings into those that count and those that do not. What was suppressed
  /// in it before stays so.
  ///
  /// Where nothing is left that counts, neither are the threads and resources that it needed.
  public mutating func screened(_ report: HangReport) -> HangReport {
    split(report, report.findings.map { verdict(on: $0, of: report) })
  }

  /// The same for a report that grows at its end: each finding is judged once, when it comes.
  public mutating func screened(growing report: HangReport) -> HangReport {
    for finding in report.findings.dropFirst(verdicts.count) {
      verdicts.append(verdict(on: finding, of: report))
    }
    return split(report, verdicts)
  }

  private func split(_ report: HangReport, _ verdicts: [SuppressedFinding?]) -> HangReport {
    let suppressed = verdicts.compactMap { $0 }
    guard !suppressed.isEmpty else { return report }
    var result = report
    result.findings = zip(report.findings, verdicts).filter { $0.1 == nil }.map(\.0)
    result.suppressed = (report.suppressed ?? []) + suppressed
    if result.findings.isEmpty {
      result.threads = []
      result.resources = []
    }
    return result
  }

  private mutating func verdict(
    on finding: Finding, of report: HangReport
  ) -> SuppressedFinding? {
    var result: SuppressedFinding?
    let resources = Dictionary(report.resources.map { ($0.id, $0) }) { first, _ in first }
    for (index, rule) in rules.enumerated() where rule.matches(finding, resources: resources) {
      used.insert(index)
      guard result == nil, !rule.isExpired(today: today) else { continue }
      result = SuppressedFinding(
        finding, rule: rule.text, source: "\(rulesFile):\(rule.line)", reason: rule.reason)
    }
    if result == nil, known.contains(finding.fingerprint) {
      result = SuppressedFinding(finding, source: baselineFile)
    }
    return result
  }

  /// A line on each rule that has expired, and on each that has matched nothing so far.
  public var remarks: [String] {
    rules.enumerated().compactMap { index, rule in
      let place = "\(rulesFile):\(rule.line)"
      if let until = rule.until, rule.isExpired(today: today) {
        let would = used.contains(index) ? "it would have matched" : "it would have matched nothing"
        return "\(place): the suppression has expired on \(until), \(would): \(rule.text)"
      }
      return used.contains(index)
        ? nil : "\(place): the suppression has matched nothing: \(rule.text)"
    }
  }
}

extension HangReport {
  /// The fingerprints that a later run need not tell again: what counted here, and what an earlier
  /// baseline had. Not what a rule suppressed: it counts again when the rule goes or expires.
  var baselineFingerprints: [String] {
    findings.map(\.fingerprint)
      + (suppressed ?? []).filter { $0.rule == nil }.map(\.fingerprint)
  }
}
