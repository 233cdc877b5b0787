import Glibc
import HangReport
import ProcessInspector

/// Where the reports of one run go, and what has gone there.
///
/// | target | text | JSON |
/// | --- | --- | --- |
/// | regular file of `--output` | whole, at each report and at the end | the same |
/// | stderr, FIFO, terminal | the new findings, at once | whole, once at the end |
/// | `--log` | | the new findings as one line, at once |
final class RunOutput {
  private let options: Options
  private let target: Sink
  private let log: Sink?
  private let colors: Bool
  /// What has been told of each of the report's findings.
  private var told: [Finding] = []

  /// Opens everything, so that nothing is started where a report could not be written.
  init(options: Options) throws(LaunchError) {
    self.options = options
    if let output = options.output {
      target = try RunOutput.open(output, option: "output", appends: false)
    } else {
      target = Sink(shared: 2, name: "standard error")
    }
    log =
      if let file = options.log {
        try RunOutput.open(file, option: "log", appends: true)
      } else {
        nil
      }
    colors = RunOutput.usesColor(options.color, isTerminal: target.isTerminal)
  }

  static func usesColor(_ choice: Options.Color, isTerminal: Bool) -> Bool {
    switch choice {
    case .always: return true
    case .never: return false
    case .auto:
      let refused = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
      let isDumb = getenv("TERM").map { String(cString: $0) == "dumb" } ?? false
      return isTerminal && !refused && !isDumb
    }
  }

  private static func open(
    _ path: String, option: String, appends: Bool
  ) throws(LaunchError) -> Sink {
    do { return try Sink(path: path, appends: appends) } catch {
      throw LaunchError(
        status: 64,
        message: "--\(option) \(path): cannot be written: \(error); nothing was started")
    }
  }

  /// A descriptor on which a report waits for room, or nil.
  var waitingDescriptor: Int32? { target.isWaiting ? target.descriptor : nil }
  func flush() { target.flush() }

  /// A report that came while the program runs.
  func tell(_ report: HangReport) {
    let news = news(in: report)
    let text = shortened(news)
    told = report.findings
    if !news.findings.isEmpty { writeLog(news) }
    if target.kind == .regularFile {
      replace(with: report)
    } else if options.format == .text,
      !news.findings.isEmpty || report.findings.isEmpty && report.suppressed == nil
    {
      target.append(Rendering.text(text, options, color: colors))
    }
  }

  /// The last report. `always`: say so even where there is no finding. `again`: indices of findings
  /// that have changed since they were told.
  func finish(_ report: HangReport, always: Bool, again: Set<Int> = []) {
    let news = news(in: report, again: again)
    let isSuppressed = report.suppressed != nil
    let isSilent =
      report.findings.isEmpty
      && (options.quiet || (options.output == nil && !always && !isSuppressed))
    if !news.findings.isEmpty { writeLog(news) }
    if options.format == .json {
      if target.kind == .regularFile { replace(with: report) } else { writeJSON(report) }
    } else if target.kind == .regularFile {
      if !isSilent { replace(with: report) }
    } else {
      if !news.findings.isEmpty || (report.findings.isEmpty && !isSilent && !isSuppressed) {
        target.append(Rendering.text(shortened(news), options, color: colors))
      }
      if !options.quiet { target.append(TextRenderer().renderSuppressed(report)) }
    }
    told = report.findings
  }

  /// What has not been told, or not as it is by now; how many were suppressed is told at the end.
  private func news(in report: HangReport, again: Set<Int> = []) -> HangReport {
    var news = report
    news.findings = report.findings.enumerated().filter { index, finding in
      index >= told.count || told[index].message != finding.message || again.contains(index)
    }.map(\.element)
    news.suppressed = nil
    return news
  }

  /// Of a hang that goes on where it was, or has ended, the sentence is enough for whoever has read
  /// the rest.
  private func shortened(_ news: HangReport) -> HangReport {
    var short = news
    var isShort = !news.findings.isEmpty
    for index in short.findings.indices {
      let finding = short.findings[index]
      let before = told.first {
        $0.kind == .hang && $0.fingerprint == finding.fingerprint && $0.threads == finding.threads
      }
      guard let before, finding.kind == .hang, before.resources == finding.resources else {
        isShort = false
        continue
      }
      short.findings[index].evidence = []
    }
    if isShort { short.threads = [] }
    return short
  }

  private func replace(with report: HangReport) {
    switch options.format {
    case .json: encoded(report, pretty: true).map(target.replace)
    default: target.replace(with: Rendering.text(report, options, color: colors))
    }
  }

  private func writeJSON(_ report: HangReport) {
    encoded(report, pretty: true).map(target.append)
  }

  private func writeLog(_ report: HangReport) {
    guard let log else { return }
    encoded(report, pretty: false).map(log.appendLine)
  }

  private func encoded(_ report: HangReport, pretty: Bool) -> String? {
    do { return try Rendering.json(report, pretty: pretty) } catch {
      Tool.say("the report cannot be written as JSON: \(error)")
      return nil
    }
  }
}
