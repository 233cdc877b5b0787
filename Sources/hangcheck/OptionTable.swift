import HangReport
import ProcessInspector

/// One option: its name without dashes, and what its value does.
struct OptionEntry: Sendable {
  enum Action: Sendable {
    case value(String, @Sendable (String, inout Options) throws(UsageError) -> Void)
    case flag(@Sendable (Bool, inout Options) -> Void)
  }
  var name: String
  var action: Action
  /// The only subcommand that it means something to; nil for several.
  var subcommand: String?

  /// Every option of the command line, which are the keys of HANGCHECK_OPTIONS as well.
  static let all: [OptionEntry] = [
    choice("format") { $0.format = $1 },
    file("output") { $0.output = $1 },
    file("log") { $0.log = $1 },
    duration("hang-threshold") { $0.hangThreshold = $1 },
    duration("wait-threshold") { $0.waitThreshold = $1 },
    duration("inversion-threshold") { $0.inversionThreshold = $1 },
    choice("on-deadlock") { $0.onDeadlock = $1 },
    duration("timeout") { $0.timeout = $1 },
    choice("fail-on") { $0.failOn = $1 },
    file("suppressions") { $0.suppressions = $1 },
    file("baseline") { $0.baseline = $1 },
    choice("predict") { (options, value: Switch) in options.predict = value == .on },
    flag("predict-semaphores") { $0.predictSemaphores = $1 },
    flag("confirm") { $0.confirm = $1 },
    OptionEntry(
      name: "steer",
      action: .value("PLAN") { (text, options) throws(UsageError) in
        do throws(SteeringPlan.Fault) { options.steer = try SteeringPlan(text) } catch {
          throw UsageError(error.message)
        }
      }),
    choice("stacks") { $0.stacks = $1 },
    flag("no-follow") { $0.follow = !$1 },
    choice("color") { $0.color = $1 },
    flag("quiet") { $0.quiet = $1 },
    flag("verbose") { $0.verbose = $1 },
    OptionEntry(
      name: "watch",
      action: .value("SECONDS") { (text, options) throws(UsageError) in
        options.watch = try Duration.parse(text.utf8.allSatisfy(isDigit) ? text + "s" : text)
      }, subcommand: "attach"),
    flag("all", of: "attach") { $0.all = $1 },
    flag("no-stop", of: "attach") { $0.stop = !$1 },
  ]

  static func named(_ name: String) -> OptionEntry? { all.first { $0.name == name } }

  private static func isDigit(_ byte: UInt8) -> Bool { byte >= 48 && byte <= 57 }

  private enum Switch: String, CaseIterable { case on, off }

  private static func choice<Value: RawRepresentable & CaseIterable & SendableMetatype>(
    _ name: String, _ set: @escaping @Sendable (inout Options, Value) -> Void
  ) -> OptionEntry where Value.RawValue == String {
    let names = Value.allCases.map(\.rawValue)
    return OptionEntry(
      name: name,
      action: .value(names.joined(separator: "|")) { (text, options) throws(UsageError) in
        guard let value = Value(rawValue: text) else {
          let hint = nearest(to: text, in: names).map { ", did you mean \($0)?" } ?? ""
          throw UsageError("is none of \(names.joined(separator: ", "))\(hint)")
        }
        set(&options, value)
      })
  }

  private static func file(
    _ name: String, _ set: @escaping @Sendable (inout Options, String) -> Void
  ) -> OptionEntry {
    OptionEntry(
      name: name,
      action: .value("FILE") { (text, options) throws(UsageError) in
        if text.isEmpty { throw UsageError("is empty; name a file") }
        set(&options, text)
      })
  }

  private static func duration(
    _ name: String, _ set: @escaping @Sendable (inout Options, Duration) -> Void
  ) -> OptionEntry {
    OptionEntry(
      name: name,
      action: .value("DURATION") { (text, options) throws(UsageError) in
        set(&options, try Duration.parse(text))
      })
  }

  private static func flag(
    _ name: String, of subcommand: String? = nil,
    _ set: @escaping @Sendable (inout Options, Bool) -> Void
  ) -> OptionEntry {
    OptionEntry(
      name: name, action: .flag { value, options in set(&options, value) },
      subcommand: subcommand)
  }
}
