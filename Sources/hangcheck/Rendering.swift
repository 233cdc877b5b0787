import HangReport

/// The only place that knows how a report becomes characters.
enum Rendering {
  static func text(_ report: HangReport, color: Bool) -> String {
    TextRenderer(options: .init(color: color)).render(report)
  }

  static func json(_ report: HangReport, pretty: Bool) throws -> String {
    String(decoding: try report.json(pretty: pretty), as: UTF8.self) + "\n"
  }
}
