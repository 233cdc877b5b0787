import HangReport

/// `hangcheck explain KIND`: what a finding means, why it comes about, how to fix it and what it
/// cannot tell.
struct Explanation: Sendable {
  var means: String
  var why: String
  var fix: String
  var limits: String
}

enum Explanations {
  static func page(for kind: Finding.Kind) -> String {
    let entry = entry(for: kind)
    return """
      \(kind.rawValue)

      What it means
      \(paragraph(entry.means))
      Why it happens
      \(paragraph(entry.why))
      How to fix it
      \(paragraph(entry.fix))
      What it cannot tell
      \(paragraph(entry.limits))
      """
  }

  /// Indented lines of at most 80 columns, and an empty one.
  private static func paragraph(_ text: String) -> String {
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
      if !line.isEmpty && line.count + 1 + word.count > 76 {
        lines.append(line)
        line = ""
      }
      line += line.isEmpty ? word : " " + word
    }
    lines.append(line)
    return lines.map { "  " + $0 + "\n" }.joined()
  }

  private static func entry(for kind: Finding.Kind) -> Explanation {
    switch kind {
    case .deadlock: deadlock
    case .potentialDeadlock: potentialDeadlock
    case .hang: hang
    case .longWait: longWait
    case .priorityInversion: priorityInversion
    case .unbalancedGroup: unbalancedGroup
    case .semaphoreMisuse: semaphoreMisuse
    case .lockMisuse: lockMisuse
    case .queueMisuse: queueMisuse
    case .conditionMisuse: conditionMisuse
    case .continuationMisuse: continuationMisuse
    case .poolExhaustion: poolExhaustion
    case .livelock: livelock
    case .dataRace: dataRace
    }
  }
}
