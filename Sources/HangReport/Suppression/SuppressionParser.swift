/// Why a suppression file cannot be used: the first line that is wrong, and what is wrong there.
public struct SuppressionError: Error, Sendable, Equatable {
  public var line: Int
  /// One line, with how to mend it.
  public var reason: String
}

extension SuppressionRule {
  /// Reads a suppression file; `docs/suppressions.md` describes its form.
  ///
  /// A byte order mark and carriage returns before line ends are left out. A file without a rule is
  /// no error: it suppresses nothing.
  public static func parse(_ bytes: [UInt8]) throws(SuppressionError) -> [SuppressionRule] {
    var rules: [SuppressionRule] = []
    let mark: [UInt8] = [0xef, 0xbb, 0xbf]
    let content = bytes.starts(with: mark) ? bytes[mark.count...] : bytes[...]
    var number = 0
    for var line in content.split(separator: 0x0a, omittingEmptySubsequences: false) {
      number += 1
      if line.last == 0x0d { line.removeLast() }
      do {
        if let rule = try LineParser.rule(in: line, number: number) { rules.append(rule) }
      } catch { throw SuppressionError(line: number, reason: error.reason) }
    }
    return rules
  }
}

/// Reads one line: words `key:value`, of which a value may be quoted.
private struct LineParser {
  struct Fault: Error { var reason: String }

  private var rest: Substring.UnicodeScalarView

  static func rule(in bytes: ArraySlice<UInt8>, number: Int) throws(Fault) -> SuppressionRule? {
    guard let line = String(validating: bytes, as: UTF8.self) else {
      throw Fault(reason: "this is no text in UTF-8; is it the right file?")
    }
    guard !line.unicodeScalars.contains(where: { $0.value < 0x20 && $0 != "\t" || $0 == "\u{7f}" })
    else { throw Fault(reason: "there is a control character in it; is it the right file?") }
    var parser = LineParser(rest: line[...].unicodeScalars)
    var rule = SuppressionRule(conditions: [], text: "", line: number)
    parser.skipSpace()
    let first = parser.rest.startIndex
    var last = first
    while let next = parser.rest.first, next != "#" {
      try parser.readWord(into: &rule)
      last = parser.rest.startIndex
      parser.skipSpace()
    }
    if first == last { return nil }
    rule.text = String(line[first..<last])
    guard !rule.conditions.isEmpty else {
      let keys = SuppressionRule.Key.allCases.map(\.rawValue).joined(separator: ", ")
      throw Fault(reason: "a rule needs a condition, one of \(keys)")
    }
    return rule
  }

  private mutating func skipSpace() { rest = rest.drop { Self.isSpace($0) } }
  private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }

  private mutating func readWord(into rule: inout SuppressionRule) throws(Fault) {
    let name = String(String.UnicodeScalarView(rest.prefix { $0 != ":" && !Self.isSpace($0) }))
    let after = rest.dropFirst(name.unicodeScalars.count)
    let known = SuppressionRule.Key.allCases.map(\.rawValue) + ["reason", "until"]
    guard after.first == ":" else {
      throw Fault(
        reason: known.contains(name)
          ? "\(name) needs a colon and a value: \(name):VALUE"
          : "'\(shortened(name))' is no condition; write KEY:VALUE, and values with spaces in \"\"")
    }
    guard known.contains(name) else {
      let hint =
        nearest(to: name, in: known).map { "did you mean \($0)?" }
        ?? "the keys are \(known.joined(separator: ", "))"
      throw Fault(reason: "unknown key '\(shortened(name))'; \(hint)")
    }
    rest = after.dropFirst()
    let pattern = try value(of: name)
    switch name {
    case "reason":
      guard rule.reason == nil else { throw Fault(reason: "there are two reasons; leave one out") }
      rule.reason = pattern.text
    case "until":
      guard rule.until == nil else { throw Fault(reason: "there are two dates; leave one out") }
      guard Self.isDate(pattern.text) else {
        throw Fault(
          reason: "'\(shortened(pattern.text))' is no date; write it like until:2027-01-31")
      }
      rule.until = pattern.text
    default:
      guard let key = SuppressionRule.Key(rawValue: name) else { return }
      try check(key, pattern)
      rule.conditions.append(.init(key: key, pattern: pattern))
    }
  }

  /// Up to the next space, or to the closing quote. A backslash takes the next character as it is.
  private mutating func value(of name: String) throws(Fault) -> Wildcard {
    var tokens: [Wildcard.Token] = []
    let isQuoted = rest.first == "\""
    if isQuoted { rest.removeFirst() }
    while let scalar = rest.first, isQuoted ? scalar != "\"" : !Self.isSpace(scalar) {
      rest.removeFirst()
      switch scalar {
      case "*": tokens.append(.any)
      case "?": tokens.append(.one)
      case "\\":
        guard let next = rest.popFirst() else {
          throw Fault(reason: "\(name) ends in a backslash; write \\\\ for one")
        }
        tokens.append(.scalar(next))
      default: tokens.append(.scalar(scalar))
      }
    }
    if isQuoted {
      guard rest.popFirst() != nil else {
        throw Fault(reason: "the quoted value of \(name) does not end; write \" behind it")
      }
      guard rest.first.map(Self.isSpace) ?? true else {
        throw Fault(reason: "something follows the quoted value of \(name); put a space between")
      }
    }
    guard !tokens.isEmpty else {
      throw Fault(reason: "\(name) has no value; write \(name):VALUE")
    }
    return Wildcard(tokens: tokens)
  }

  /// A kind or fingerprint that no finding can have is a slip of the pen.
  private func check(_ key: SuppressionRule.Key, _ pattern: Wildcard) throws(Fault) {
    let word = shortened(pattern.text)
    switch key {
    case .kind:
      let kinds = Finding.Kind.allCases.map(\.rawValue)
      guard !kinds.contains(where: { pattern.matches($0) }) else { return }
      let hint =
        pattern.isPlain
        ? nearest(to: pattern.text, in: kinds).map { "did you mean \($0)?" } : nil
      throw Fault(
        reason: "'\(word)' is no kind of finding; "
          + (hint ?? "it is one of \(kinds.joined(separator: ", "))"))
    case .fingerprint:
      let digits = pattern.tokens.allSatisfy { token in
        if case .scalar(let scalar) = token {
          return "0123456789abcdef".unicodeScalars.contains(scalar)
        }
        return true
      }
      guard digits, !pattern.isPlain || pattern.tokens.count == 16 else {
        throw Fault(
          reason: "'\(word)' is no fingerprint; it has 16 digits, 0 to f, as --verbose shows it")
      }
    default: break
    }
  }

  /// `2027-01-31`, and a day that there is.
  private static func isDate(_ text: String) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.map(\.utf8.count) == [4, 2, 2],
      text.utf8.allSatisfy({ $0 == 0x2d || (0x30...0x39).contains($0) }),
      let year = Int(parts[0]), let month = Int(parts[1]), let day = Int(parts[2])
    else { return false }
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return (1...12).contains(month) && (1...days[month - 1]).contains(day)
  }
}

private func shortened(_ text: String) -> String {
  text.count > 40 ? text.prefix(40) + "…" : text
}
