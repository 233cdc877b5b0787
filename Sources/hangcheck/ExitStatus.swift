import HangReport
import ProcessInspector

/// The exit status of `hangcheck run`.
enum ExitStatus {
  static let finding: Int32 = 66
  static let nothingToInspect: Int32 = 69
  static let timeout: Int32 = 124

  static func of(
    _ end: RunEnd, findings: [Finding], failOn: Options.FailOn, timedOut: Bool
  ) -> Int32 {
    if findings.contains(where: { fails($0.severity, failOn) }) { return finding }
    if timedOut { return timeout }
    switch end {
    case .status(let status): return status
    case .signal(let signal): return 128 + signal
    }
  }

  static func fails(_ severity: Finding.Severity, _ failOn: Options.FailOn) -> Bool {
    switch failOn {
    case .never: false
    case .note: true
    case .warning: severity != .note
    case .error: severity == .error
    }
  }
}
