import FoundationEssentials
import HangReport

/// The only place that knows how a report becomes characters.
enum Rendering {
  static func text(_ report: HangReport, color: Bool) -> String {
    // Stands in for TextRenderer(options:).render(report).
    let program = "\(report.process.executable) (pid \(report.process.pid))"
    var lines = report.findings.map { finding in
      let severity =
        color ? "\u{1b}[1m\(finding.severity.rawValue)\u{1b}[0m" : finding.severity.rawValue
      return "hangcheck: \(severity): \(finding.kind.rawValue): \(finding.message)"
    }
    if lines.isEmpty { lines = ["hangcheck: no finding in \(program)"] }
    lines += (report.limits ?? []).map { "hangcheck: not seen: \($0)" }
    return lines.joined(separator: "\n") + "\n"
  }

  static func json(_ report: HangReport, pretty: Bool) throws -> String {
    // Stands in for report.json(pretty:).
    let encoder = JSONEncoder()
    encoder.outputFormatting =
      pretty
      ? [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      : [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(report), as: UTF8.self) + "\n"
  }

  /// Reads what `json` wrote; the error says what is wrong with it.
  static func report(from bytes: [UInt8]) throws -> HangReport {
    try JSONDecoder().decode(HangReport.self, from: Data(bytes))
  }

  static func schema(of bytes: [UInt8]) throws -> String {
    struct Header: Decodable { var schema: String }
    return try JSONDecoder().decode(Header.self, from: Data(bytes)).schema
  }
}
