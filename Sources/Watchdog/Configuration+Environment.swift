extension Watchdog.Configuration {
  /// Reads `key=value` words, the keys being the command line's options, and switches that it does
  /// not have (`syslog`, `journald`, `dump-on-quit`). Those that only the
  /// command line can follow are checked as well and left alone; what is wrong is left out and
  /// told, a line each.
  static func parse(environment: String) -> (Self, problems: [String]) {
    var configuration = Self()
    var problems: [String] = []
    for word in environment.split(whereSeparator: \.isWhitespace) {
      let equals = word.firstIndex(of: "=")
      let key = String(equals.map { word[..<$0] } ?? word)
      let value = equals.map { String(word[word.index(after: $0)...]) }
      guard let kind = keys[key] else {
        problems.append(
          "unknown key '\(key)' is ignored; the keys are \(keys.keys.sorted().joined(separator: ", "))"
        )
        continue
      }
      if let fault = kind.fault(key, value) {
        problems.append("\(key): \(fault); it is ignored")
      } else {
        configuration.set(key, value ?? "on")
      }
    }
    return (configuration, problems)
  }

  private mutating func set(_ key: String, _ value: String) {
    switch key {
    // Before standard error, which may be a pipe that nobody reads.
    case "log": handlers.insert(.jsonLines(value), at: 0)
    case "syslog" where value == "on": handlers.insert(.syslog, at: 0)
    case "journald" where value == "on": handlers.insert(.journald, at: 0)
    case "dump-on-quit": dumpsOnQuit = value == "on"
    case "on-deadlock": onDeadlock = .init(rawValue: value) ?? .continue  // auto
    case "stacks": stacks = .init(rawValue: value) ?? stacks
    case "color": color = .init(rawValue: value) ?? color
    case "hang-threshold": hangThreshold = Self.duration(value) ?? hangThreshold
    case "inversion-threshold":
      inversionThreshold = Self.duration(value) ?? inversionThreshold
    case "wait-threshold": waitThreshold = Self.duration(value) ?? waitThreshold
    case "suppressions": suppressions = value
    case "baseline": baseline = value
    case "predict": predictsDeadlocks = value == "on"
    default: break
    }
  }

  private enum Kind {
    case duration, file, flag
    case choice([String])

    func fault(_ key: String, _ value: String?) -> String? {
      switch self {
      case .flag:
        return value == nil || value == "on" || value == "off"
          ? nil : "it is a switch; write \(key) alone"
      case .file: return value.map(\.isEmpty) ?? true ? "it needs a file: \(key)=FILE" : nil
      case .duration:
        guard let value else { return "it needs a duration: \(key)=50ms" }
        return Watchdog.Configuration.duration(value) == nil
          ? "'\(value)' is no duration; write a number and a unit, like 50ms, 2s or 1m" : nil
      case .choice(let words):
        guard let value else { return "it needs a value: \(key)=\(words.joined(separator: "|"))" }
        return words.contains(value)
          ? nil : "'\(value)' is none of \(words.joined(separator: ", "))"
      }
    }
  }

  private static let keys: [String: Kind] = [
    "format": .choice(["text", "json", "html", "sarif", "dot", "svg", "markdown"]),
    "output": .file, "log": .file, "hang-threshold": .duration, "wait-threshold": .duration,
    "inversion-threshold": .duration,
    "on-deadlock": .choice(["auto", "terminate", "core", "continue"]), "timeout": .duration,
    "fail-on": .choice(["error", "warning", "note", "never"]), "suppressions": .file,
    "baseline": .file, "predict": .choice(["on", "off"]), "predict-semaphores": .flag,
    "confirm": .flag, "stacks": .choice(["full", "site", "none"]), "no-follow": .flag,
    "color": .choice(["auto", "always", "never"]), "quiet": .flag, "verbose": .flag,
    "syslog": .flag, "journald": .flag, "dump-on-quit": .flag,
  ]

  /// `50ms`, `2s`, `1.5s`, `1m`, `1h`.
  private static func duration(_ text: String) -> Duration? {
    let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    let units: [String: Double] = ["ms": 1e3, "s": 1e6, "m": 6e7, "h": 3.6e9]
    guard let value = Double(digits), digits.first != ".", digits.last != ".",
      let unit = units[String(text.dropFirst(digits.count))]
    else { return nil }
    let microseconds = value * unit
    // At most a year, as on the command line.
    return microseconds >= 1 && microseconds <= 3.2e13 ? .microseconds(Int64(microseconds)) : nil
  }
}
