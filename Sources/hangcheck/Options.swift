import HangReport
import ProcessInspector

/// What the command line asks for.
struct Options: Sendable, Hashable {
  enum Format: String, CaseIterable, Sendable { case text, json, html, sarif, dot, svg, markdown }
  enum OnDeadlock: String, CaseIterable, Sendable { case auto, terminate, core, `continue` }
  enum FailOn: String, CaseIterable, Sendable { case error, warning, note, never }
  enum Stacks: String, CaseIterable, Sendable { case full, site, none }
  enum Color: String, CaseIterable, Sendable { case auto, always, never }

  var format = Format.text
  var output: String?
  var log: String?
  var hangThreshold = Duration.milliseconds(250)
  var waitThreshold = Duration.seconds(10)
  var inversionThreshold = Duration.milliseconds(100)
  var onDeadlock = OnDeadlock.auto
  var timeout: Duration?
  var failOn = FailOn.error
  var suppressions: String?
  var baseline: String?
  var predict = true
  var predictSemaphores = false
  var confirm = false
  /// Of the run itself, as --confirm has shown it.
  var steer: SteeringPlan?
  var stacks = Stacks.full
  var follow = true
  var color = Color.auto
  var quiet = false
  var verbose = false
  // Of attach.
  /// How long to look again until something is wrong.
  var watch: Duration?
  var all = false
  var stop = true

  /// The first option that is understood and cannot be obeyed, as one line.
  var unavailable: String? {
    if confirm, !predict {
      return "--confirm has nothing to confirm with --predict off; leave one of the two out"
    }
    if confirm, steer != nil { return "--confirm makes plans of its own; leave --steer out" }
    switch format {
    case .text, .json: return nil
    default:
      return "--format \(format.rawValue) is not available in this version; use text or json"
    }
  }
}

/// What is to be done.
enum Command: Sendable, Hashable {
  /// The index of the program in the arguments: they reach it as the bytes they are.
  case run(programAt: Int)
  /// Nil with --all.
  case attach(pid: Int32?)
  case core(String, executable: String?)
  case report(String)
  case explain(Finding.Kind)
  case help
  case version
}

/// What is wrong with the command line: what, where and how to mend it, in one line.
struct UsageError: Error, Hashable, Sendable {
  var message: String
  init(_ message: String) { self.message = message }
}

extension Duration {
  /// `50ms`, `2s`, `1.5s`, `1m`, `1h`: longer than nothing, and with its unit.
  static func parse(_ text: String) throws(UsageError) -> Duration {
    let example = "write a number and a unit, like 50ms, 2s or 1m"
    let digits = text.prefix { $0.isASCII && $0.isNumber || $0 == "." }
    let units: [String: Int64] = ["ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000]
    let unit = String(text.dropFirst(digits.count))
    guard let value = Double(digits), digits.first != ".", digits.last != "." else {
      throw UsageError("is no duration; \(example)")
    }
    guard !unit.isEmpty else { throw UsageError("has no unit; \(example)") }
    guard let micros = units[unit] else { throw UsageError("has no known unit; \(example)") }
    let total = value * Double(micros)
    guard total >= 1 else { throw UsageError("is no time at all; \(example)") }
    guard total <= 3.2e13 else { throw UsageError("is more than a year; \(example)") }
    return .microseconds(Int64(total))
  }
}
