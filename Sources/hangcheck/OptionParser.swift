import HangReport

/// A command line that was understood.
struct Invocation: Sendable, Hashable {
  var command: Command
  var options: Options

  /// Parses the arguments behind the tool's own name. `environment` is the value of
  /// HANGCHECK_OPTIONS; the command line wins over it.
  static func parse(
    _ arguments: [String], environment: String? = nil
  ) throws(UsageError) -> Invocation {
    var options = Options()
    if let environment { try options.apply(environment: environment) }
    var parser = OptionParser(arguments: arguments, options: options)
    let command = try parser.parse()
    return Invocation(command: command, options: parser.options)
  }
}

/// Walks over the arguments once.
private struct OptionParser {
  static let subcommands = ["run", "attach", "core", "report", "explain"]

  let arguments: [String]
  var options: Options
  private var index = 0
  /// The first option given that belongs to one subcommand.
  private var special: OptionEntry?

  init(arguments: [String], options: Options) {
    self.arguments = arguments
    self.options = options
  }

  mutating func parse() throws(UsageError) -> Command {
    var subcommand: String?
    var operands: [String] = []
    var optionsEnded = false
    while index < arguments.count {
      let word = arguments[index]
      if !optionsEnded && word == "--" {
        optionsEnded = true
        index += 1
      } else if !optionsEnded && word.hasPrefix("-") && word != "-" {
        if let command = try takeOption(word) { return command }
      } else if subcommand == nil && !optionsEnded && Self.subcommands.contains(word) {
        subcommand = word
        index += 1
      } else if subcommand == nil || subcommand == "run" {
        // All that follows belongs to the program.
        try checkSpecial("run")
        return .run(programAt: index)
      } else {
        operands.append(word)
        index += 1
      }
    }
    try checkSpecial(subcommand ?? "run")
    return try command(subcommand, operands)
  }

  private func checkSpecial(_ subcommand: String) throws(UsageError) {
    guard let special, let owner = special.subcommand, owner != subcommand else { return }
    throw UsageError(
      "--\(special.name) belongs to hangcheck \(owner) and means nothing to \(subcommand)")
  }

  private func command(
    _ name: String?, _ operands: [String]
  ) throws(UsageError) -> Command {
    func check(_ least: Int, _ most: Int, _ what: String) throws(UsageError) {
      let name = name ?? "run"
      if operands.count < least {
        throw UsageError("\(name): \(what) is missing")
      }
      if operands.count > most {
        throw UsageError("\(name): '\(operands[most])' is one argument too many")
      }
    }
    switch name {
    case "attach":
      if options.all {
        try check(0, 0, "")
        return .attach(pid: nil)
      }
      try check(1, 1, "the process's id (PID)")
      guard let pid = Int32(operands[0]), pid > 0 else {
        throw UsageError(
          "attach: '\(operands[0])' is no process id; find it with `pgrep -f NAME`")
      }
      return .attach(pid: pid)
    case "core":
      try check(1, 2, "the core file (CORE)")
      return .core(operands[0], executable: operands.count > 1 ? operands[1] : nil)
    case "report":
      try check(1, 1, "the saved report (FILE)")
      return .report(operands[0])
    case "explain":
      let names = Finding.Kind.allCases.map(\.rawValue)
      try check(1, 1, "the kind of finding, one of \(names.joined(separator: ", ")),")
      guard let kind = Finding.Kind(rawValue: operands[0]) else {
        let hint =
          nearest(to: operands[0], in: names).map { "did you mean \($0)?" }
          ?? "it is one of \(names.joined(separator: ", "))"
        throw UsageError("explain: '\(operands[0])' is no kind of finding; \(hint)")
      }
      return .explain(kind)
    default:
      throw UsageError("the program to run is missing")
    }
  }

  /// Takes the option at `index` and its value; a command where the option is one by itself.
  private mutating func takeOption(_ word: String) throws(UsageError) -> Command? {
    index += 1
    if word == "--help" || word == "-h" { return .help }
    if word == "--version" { return .version }
    guard word.hasPrefix("--") else {
      throw UsageError(
        "unknown option \(word): options are written with two dashes; the program's own options"
          + " belong behind the program")
    }
    let body = word.dropFirst(2)
    let equals = body.firstIndex(of: "=")
    let name = String(equals.map { body[..<$0] } ?? body)
    guard let entry = OptionEntry.named(name) else {
      throw UsageError("unknown option --\(name)\(Options.hint(name, prefix: "--"))")
    }
    if entry.subcommand != nil, special == nil { special = entry }
    let inline = equals.map { String(body[body.index(after: $0)...]) }
    switch entry.action {
    case .flag(let set):
      if inline != nil { throw UsageError("--\(name) takes no value; write it alone") }
      set(true, &options)
    case .value(let kind, let set):
      guard let value = inline ?? (index < arguments.count ? arguments[index] : nil) else {
        throw UsageError("--\(name) needs a value: --\(name) \(kind)")
      }
      if inline == nil { index += 1 }
      do { try set(value, &options) } catch {
        throw UsageError("--\(name): '\(value)' \(error.message)")
      }
    }
    return nil
  }
}

extension Options {
  /// Applies `key=value` words separated by white space; a flag is its key alone, or `=on`, `=off`.
  mutating func apply(environment: String) throws(UsageError) {
    for word in environment.split(whereSeparator: \.isWhitespace) {
      let equals = word.firstIndex(of: "=")
      let key = String(equals.map { word[..<$0] } ?? word)
      guard let entry = OptionEntry.named(key) else {
        let name = key.hasPrefix("--") ? String(key.dropFirst(2)) : key
        throw UsageError(
          "HANGCHECK_OPTIONS: unknown key '\(key)'\(Options.hint(name, prefix: ""))")
      }
      let value = equals.map { String(word[word.index(after: $0)...]) }
      switch entry.action {
      case .flag(let set):
        guard value == nil || value == "on" || value == "off" else {
          throw UsageError("HANGCHECK_OPTIONS: \(key) is a switch; write \(key) alone")
        }
        set(value != "off", &self)
      case .value(let kind, let set):
        guard let value else {
          throw UsageError("HANGCHECK_OPTIONS: \(key) needs a value: \(key)=\(kind)")
        }
        do { try set(value, &self) } catch {
          throw UsageError("HANGCHECK_OPTIONS: \(key): '\(value)' \(error.message)")
        }
      }
    }
  }

  fileprivate static func hint(_ name: String, prefix: String) -> String {
    let names = OptionEntry.all.map(\.name) + (prefix.isEmpty ? [] : ["help", "version"])
    guard let near = nearest(to: name, in: names) else { return "; see hangcheck --help" }
    return ", did you mean \(prefix)\(near)?"
  }
}
