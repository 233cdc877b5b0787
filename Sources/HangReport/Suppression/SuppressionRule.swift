internal import WaitForGraph

/// One line of a suppression file: the findings that all its conditions match do not count.
public struct SuppressionRule: Sendable, Hashable {
  enum Key: String, Sendable, CaseIterable {
    case kind, symbol, file, image, resource, fingerprint
  }
  struct Condition: Sendable, Hashable {
    var key: Key
    var pattern: Wildcard
  }

  var conditions: [Condition]
  /// The line as it stands in the file, without the space around it.
  public internal(set) var text: String
  /// Counted from 1.
  public internal(set) var line: Int
  /// Why it is there, in the words of who wrote it.
  public internal(set) var reason: String?
  /// The last day on which it applies, `2027-01-31`, in UTC.
  public internal(set) var until: String?

  /// `today`: ISO 8601, of which the date counts.
  func isExpired(today: String) -> Bool {
    // Dates of this form sort as texts.
    until.map { $0 < today.prefix($0.count) } ?? false
  }

  /// `resources`: those of the finding's report.
  func matches(_ finding: Finding, resources: [ResourceID: Resource]) -> Bool {
    conditions.allSatisfy { condition in
      let pattern = condition.pattern
      func anyFrame(_ isIt: (Frame) -> Bool) -> Bool {
        finding.evidence.contains { $0.stack.contains(where: isIt) }
      }
      switch condition.key {
      case .kind: return pattern.matches(finding.kind.rawValue)
      case .fingerprint: return pattern.matches(finding.fingerprint)
      case .symbol: return anyFrame { $0.symbol.map { pattern.matches($0) } ?? false }
      case .file: return anyFrame { $0.file.map(pattern.matches(path:)) ?? false }
      case .image: return anyFrame { pattern.matches(path: $0.image) }
      case .resource:
        return (finding.resources + finding.cycle.map(\.waitsFor)).contains {
          resources[$0]?.name.map { pattern.matches($0) } ?? false
        }
      }
    }
  }

  /// The rule that suppresses this finding, and others only where they have the same fingerprint.
  public static func line(for finding: Finding) -> String {
    "kind:\(finding.kind.rawValue) fingerprint:\(finding.fingerprint)"
  }
}
