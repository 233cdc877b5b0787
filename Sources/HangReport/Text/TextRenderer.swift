internal import WaitForGraph

/// Writes a report for a person who reads it top down: the verdict, the picture, the lines to
/// change, the rest.
///
/// Deterministic, and linear in the report: thousands of threads take a fraction of a second.
public struct TextRenderer: Sendable {
  public struct Options: Sendable {
    /// Writes colours as terminals understand them.
    public var color: Bool
    /// Writes every frame and every thread.
    public var verbose: Bool
    /// Writes below each finding the rule that would suppress it.
    public var showsRules: Bool
    /// Source lines and lists are cut at this many columns; sentences are left to the terminal.
    public var width: Int
    /// Shows the line of source under the first frame of each site.
    public var sourceLines: Bool
    /// Paths below this folder are written relative to it.
    public var folder: String?
    public var sources: any SourceReader
    public init(
      color: Bool = false, verbose: Bool = false, showsRules: Bool = false, width: Int = 100,
      sourceLines: Bool = true, folder: String? = FileSourceReader.currentFolder,
      sources: any SourceReader = FileSourceReader()
    ) {
      self.color = color
      self.verbose = verbose
      self.showsRules = showsRules
      self.width = width
      self.sourceLines = sourceLines
      self.folder = folder
      self.sources = sources
    }
  }

  public var options: Options
  public init(options: Options = Options()) { self.options = options }

  /// The whole report as text, with a line break at its end.
  public func render(_ report: HangReport) -> String {
    var page = TextPage(report: report, options: options)
    page.write()
    return page.text
  }

  /// Every thread of a report with what it waits for, what it holds and its stack, whether or not
  /// anything is wrong.
  public func renderPicture(_ report: HangReport) -> String {
    var options = options
    options.verbose = true
    var page = TextPage(report: report, options: options)
    page.writeWholePicture()
    return page.text
  }

  /// Only how many findings were suppressed, by what; nothing where none were.
  public func renderSuppressed(_ report: HangReport) -> String {
    var page = TextPage(report: report, options: options)
    page.writeSuppressed()
    return page.text
  }
}

/// A report while it is being written.
struct TextPage {
  let report: HangReport
  let options: TextRenderer.Options
  let names: Names
  let style: TextStyle
  var sources: SourceLines
  var text = ""

  init(report: HangReport, options: TextRenderer.Options) {
    self.report = report
    self.options = options
    names = Names(
      threads: report.threads, resources: report.resources, process: report.process,
      processes: report.processes ?? [])
    style = TextStyle(color: options.color)
    sources = SourceLines(reader: options.sourceLines ? options.sources : nil)
  }

  mutating func write() {
    let rank: [Finding.Severity: Int] = [.note: 0, .warning: 1, .error: 2]
    let findings = report.findings.enumerated().sorted {
      let (a, b) = (rank[$0.element.severity] ?? 0, rank[$1.element.severity] ?? 0)
      return (b, $0.offset) < (a, $1.offset)
    }
    for (position, finding) in findings.enumerated() {
      if position > 0 { line() }
      write(finding.element)
      if options.showsRules {
        line()
        line("To suppress it: " + SuppressionRule.line(for: finding.element))
      }
    }
    let isSuppressed = !(report.suppressed ?? []).isEmpty
    if findings.isEmpty && !isSuppressed { writeNoFinding() }
    let asked = options.verbose || report.mode == .attach || report.mode == .core
    if !findings.isEmpty || asked || hasPicture { writeOtherThreads() }
    writeLimits()
    if !findings.isEmpty && isSuppressed { line() }
    writeSuppressed()
  }

  /// A run without a finding carries threads only where somebody will ask for them.
  private var hasPicture: Bool { report.mode == .run && !report.threads.isEmpty }

  private mutating func writeNoFinding() {
    if report.mode == .attach || report.mode == .core { return writeStanding() }
    guard hasPicture else { return line(style.good("hangcheck: no finding.")) }
    if let signal = report.process.exit?.signal {
      line(
        "hangcheck: \(names.program) was ended by signal \(signal). No deadlock was seen before.")
    } else {
      line("hangcheck: \(names.program) has not ended in its time. No deadlock was seen.")
    }
  }

  private mutating func write(_ finding: Finding) {
    let cycle = CyclePage(finding: finding, names: names)
    if finding.kind == .deadlock, !finding.cycle.isEmpty {
      line(style.bad(verdict(cycle)))
      if cycle.words.isStandstill { writeLegend(cycle) } else { writePicture(cycle) }
      writeMembers(cycle)
      writeHistory(cycle)
      writeAdvice(cycle)
      writeVictims(cycle)
      return
    }
    if finding.kind == .potentialDeadlock { return writeOrders(finding) }
    let title = finding.kind.title + (finding.certainty == .possible ? " (possible)" : "")
    let head = "hangcheck: \(title) in \(names.program(of: finding.threads)): "
    line((finding.severity == .note ? style.plain : style.bad)(head + cleaned(finding.message)))
    if !finding.cycle.isEmpty { writePicture(cycle) }
    if finding.kind == .dataRace { writeRace(finding) } else { writeMisuse(finding) }
  }

  mutating func writeLimits() {
    guard let limits = report.limits, !limits.isEmpty else { return }
    line()
    line(style.heading("What could not be known"))
    for limit in limits { line("  - " + cleaned(limit)) }
  }

  mutating func line(_ words: String = "") {
    text += words
    text += "\n"
  }
}

extension Finding.Kind {
  /// `potentialDeadlock` as `POTENTIAL DEADLOCK`.
  var title: String {
    rawValue.reduce(into: "") { $0 += ($1.isUppercase ? " " : "") + $1.uppercased() }
  }
}

/// Colours, or none.
struct TextStyle {
  var color: Bool
  private func wrap(_ code: String, _ text: String) -> String {
    color && !text.isEmpty ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text
  }
  func plain(_ text: String) -> String { text }
  func bad(_ text: String) -> String { wrap("1;31", text) }
  func good(_ text: String) -> String { wrap("32", text) }
  func heading(_ text: String) -> String { wrap("1", text) }
  func thread(_ text: String) -> String { wrap("1;36", text) }
  func lock(_ text: String) -> String { wrap("1;33", text) }
  func faint(_ text: String) -> String { wrap("2", text) }
  func mark(_ text: String) -> String { wrap("1;31", text) }
}
