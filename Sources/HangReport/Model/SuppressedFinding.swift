/// A finding that was made and does not count: enough to recognise it, and whose word it was.
public struct SuppressedFinding: Codable, Sendable, Equatable {
  public var kind: Finding.Kind
  public var severity: Finding.Severity
  public var message: String
  public var fingerprint: String
  /// The rule as it was written; absent where the finding stands in a baseline.
  public var rule: String?
  /// The rule's file and line, `hangs.supp:3`, or the baseline's file.
  public var source: String
  /// The rule's reason.
  public var reason: String?

  public init(
    _ finding: Finding, rule: String? = nil, source: String, reason: String? = nil
  ) {
    kind = finding.kind
    severity = finding.severity
    message = finding.message
    fingerprint = finding.fingerprint
    self.rule = rule
    self.source = source
    self.reason = reason
  }
}
