import HangReport

/// The only place that knows how a report becomes characters.
enum Rendering {
  static func text(_ report: HangReport, _ options: Options, color: Bool) -> String {
    var report = report
    if options.quiet { report.suppressed = nil }
    return TextRenderer(options: .init(color: color, showsRules: options.verbose)).render(report)
  }

  static func json(_ report: HangReport, pretty: Bool) throws -> String {
    String(decoding: try report.json(pretty: pretty), as: UTF8.self) + "\n"
  }
}
