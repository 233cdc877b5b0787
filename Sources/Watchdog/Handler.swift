public import HangReport

extension Watchdog {
  /// What a handler is told; `hangcheck/1` when encoded. Its module is no product of this package,
  /// so this is how a program names it.
  public typealias Report = HangReport

  /// Somebody who is told of findings, under no lock of ours.
  ///
  /// Each has a thread, made for its first report, on which all signals but those of its own faults
  /// are blocked. It is told one report after the other, in their order, and the handlers of a
  /// configuration in theirs. One that throws is named on standard error. One that keeps a report
  /// for five seconds is left behind, and named once: the other handlers, later reports and the
  /// program go on, and up to 16 reports wait until it comes back. The program's exit waits for
  /// handlers only where it waits for what is being told, two seconds at most.
  public struct Handler: Sendable {
    private enum Action: Sendable {
      case standardError
      case jsonLines(LineFile)
      case systemLog(SystemLog)
      case journal(Journal)
      case closure(@Sendable (HangReport) throws -> Void)
    }
    private let action: Action

    /// The report as text for a person.
    public static let standardError = Handler(action: .standardError)

    /// The report's JSON as one line at the end of a file, which is made where there is none. A
    /// line is written whole or not at all, also by several processes at once and where the disk is
    /// full; the file is opened for each, so that it may be moved away. Fails where it cannot be
    /// opened or written.
    public static func jsonLines(_ path: String) -> Handler {
      Handler(action: .jsonLines(LineFile(path: path)))
    }

    /// The same, and the file is put aside before a line would make it longer than `bytes`: it
    /// becomes `path.1`, that one `path.2` and so on; `count` older files are kept. Several
    /// processes may write and put aside the same file, if all are given the same numbers. A file
    /// that cannot be renamed grows on, and that is said.
    public static func jsonLines(
      _ path: String, rotatingAt bytes: Int, keeping count: Int
    ) -> Handler {
      let rotation = LineFile.Rotation(size: max(1, bytes), kept: max(0, count))
      return Handler(action: .jsonLines(LineFile(path: path, rotation: rotation)))
    }

    /// A line for each finding to the system's log (`/dev/log`): what is the matter in one sentence
    /// of at most 2048 bytes, as `user.err`, `user.warning` or `user.notice`. Does not wait for the
    /// daemon; that it is not there, or takes nothing, is said once.
    public static let syslog = Handler(action: .systemLog(SystemLog()))

    /// An entry for each finding to systemd's journal: MESSAGE, PRIORITY and SYSLOG_IDENTIFIER, and
    /// HANGCHECK_KIND, HANGCHECK_SEVERITY, HANGCHECK_CERTAINTY, HANGCHECK_FINGERPRINT and
    /// HANGCHECK_REPORT, which is JSON. Does not wait for the journal; that it is not there, or
    /// takes nothing, is said once.
    public static let journald = Handler(action: .journal(Journal()))

    /// The report as a value. Deadlocked threads still hold their locks: a closure that takes one of
    /// these waits for ever, and is left behind.
    public static func closure(_ body: @escaping @Sendable (HangReport) throws -> Void) -> Handler {
      Handler(action: .closure(body))
    }

    /// What is handed over: findings, or all threads of a program in which nothing need be wrong.
    enum Content: Sendable {
      case report(HangReport)
      case picture(HangReport)
    }

    func take(_ content: Content, color: Color) throws {
      switch (content, action) {
      case (_, .standardError):
        let renderer = TextRenderer(options: .init(color: StandardError.hasColors(color)))
        switch content {
        case .report(let report): StandardError.write(renderer.render(report))
        case .picture(let picture): StandardError.write(renderer.renderPicture(picture))
        }
      case (.report(let report), .jsonLines(let file)):
        try file.append(report.json() + [UInt8(ascii: "\n")])
      case (.report(let report), .systemLog(let log)): try log.take(report)
      case (.report(let report), .journal(let journal)): try journal.take(report)
      case (.report(let report), .closure(let body)): try body(report)
      case (.picture, _): break
      }
    }

    var writesText: Bool {
      if case .standardError = action { true } else { false }
    }

    /// Whether it runs code of the program's.
    var isProgram: Bool {
      if case .closure = action { true } else { false }
    }

    /// What it is called on standard error.
    var name: String {
      switch action {
      case .standardError: "the handler for standard error"
      case .jsonLines(let file): "the handler for \(file.path)"
      case .systemLog: "the handler for the system's log"
      case .journal: "the handler for the journal"
      case .closure: "a handler that is a closure"
      }
    }
  }
}
