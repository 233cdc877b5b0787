/// Finds the line of a value in a JSON text, and the first place where it is no JSON.
///
/// The decoder names the path of what it cannot use, but a person who edits the file wants a line.
struct JSONLocator {
  enum Step: Hashable {
    case key(String)
    case index(Int)
  }
  struct Place: Equatable {
    var line: Int
    /// The value as it stands there, shortened; of a list or an object only that it is one.
    var text: String
  }
  struct Fault: Equatable {
    var line: Int
    var reason: String
  }

  private let bytes: [UInt8]
  init(_ bytes: [UInt8]) { self.bytes = bytes }

  static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || (9...13).contains(byte) }

  static func describe(_ steps: [Step]) -> String {
    var path = ""
    for step in steps {
      switch step {
      case .key(let key): path += path.isEmpty ? key : ".\(key)"
      case .index(let index): path += "[\(index)]"
      }
    }
    return path
  }

  /// Where the value at the path stands; nil when the text has no such path.
  func place(of path: [Step]) -> Place? {
    var scanner = Scanner(bytes: bytes, target: path)
    scanner.scan()
    return scanner.found.map { range in
      let text =
        switch bytes[range.lowerBound] {
        case UInt8(ascii: "["): "a list"
        case UInt8(ascii: "{"): "an object"
        default: String(decoding: bytes[range].prefix(60), as: UTF8.self)
        }
      return Place(line: line(at: range.lowerBound), text: text)
    }
  }

  func firstFault() -> Fault? {
    var scanner = Scanner(bytes: bytes, target: nil)
    scanner.scan()
    return scanner.fault.map { Fault(line: line(at: $0.offset), reason: $0.reason) }
  }

  private func line(at offset: Int) -> Int {
    bytes[..<min(offset, bytes.count)].reduce(1) { $1 == 10 ? $0 + 1 : $0 }
  }
}

/// Walks a JSON text with a stack of its own, so that no nesting is too deep.
private struct Scanner {
  private struct Level {
    var isObject: Bool
    var count = 0
    /// How many steps of the target's path are matched outside of this level; nil when off the
    /// path.
    var matched: Int?
  }

  let bytes: [UInt8]
  let target: [JSONLocator.Step]?
  var found: Range<Int>?
  var fault: (offset: Int, reason: String)?
  private var at = 0
  private var levels: [Level] = []

  init(bytes: [UInt8], target: [JSONLocator.Step]?) {
    self.bytes = bytes
    self.target = target
  }

  mutating func scan() {
    var matched: Int? = target == nil ? nil : 0
    repeat {
      value(matched)
      while found == nil, fault == nil, closeIfDone() {}
      guard found == nil, fault == nil, !levels.isEmpty else { break }
      matched = nextStep()
    } while found == nil && fault == nil
    skipSpace()
    if found == nil, fault == nil, levels.isEmpty, at < bytes.count {
      fail("something follows the end of the report")
    }
  }

  /// Reads a scalar whole, or opens a level.
  private mutating func value(_ matched: Int?) {
    skipSpace()
    let start = at
    switch peek {
    case UInt8(ascii: "{")?, UInt8(ascii: "[")?:
      levels.append(Level(isObject: peek == UInt8(ascii: "{"), matched: matched))
      at += 1
    case UInt8(ascii: "\"")?:
      _ = string()
    case nil:
      return fail("the text ends too early")
    default:
      while let byte = peek, !JSONLocator.isSpace(byte), !",]}:".utf8.contains(byte) { at += 1 }
      guard isLiteral(bytes[start..<at]) else {
        at = start
        return fail("a value is expected here")
      }
    }
    if matched != nil, matched == target?.count, fault == nil {
      found = start..<at
    }
  }

  /// After a value or an opening: closes the level when its end is here. True when one was closed.
  private mutating func closeIfDone() -> Bool {
    guard let level = levels.last else { return false }
    skipSpace()
    guard peek == UInt8(ascii: level.isObject ? "}" : "]") else { return false }
    at += 1
    levels.removeLast()
    return true
  }

  /// Moves to the next member of the innermost level; returns how far the path is matched there.
  private mutating func nextStep() -> Int? {
    guard let level = levels.last else { return nil }
    if level.count > 0 {
      guard peek == UInt8(ascii: ",") else {
        fail(peek == nil ? "the text ends too early" : "a comma is missing here", before: true)
        return nil
      }
      at += 1
      skipSpace()
    }
    levels[levels.count - 1].count += 1
    var step = JSONLocator.Step.index(level.count)
    if level.isObject {
      guard peek == UInt8(ascii: "\"") else {
        fail(peek == nil ? "the text ends too early" : "a key in quotes is expected here")
        return nil
      }
      step = .key(string())
      skipSpace()
      guard fault == nil, peek == UInt8(ascii: ":") else {
        fail("a colon is missing here")
        return nil
      }
      at += 1
    }
    guard let matched = level.matched, let target, matched < target.count else { return nil }
    return target[matched] == step ? matched + 1 : nil
  }

  private mutating func string() -> String {
    let start = at
    at += 1
    while let byte = peek, byte != UInt8(ascii: "\"") {
      at += byte == UInt8(ascii: "\\") ? 2 : 1
    }
    guard at < bytes.count else {
      at = start
      fail("a string does not end")
      return ""
    }
    at += 1
    return String(decoding: bytes[(start + 1)..<(at - 1)], as: UTF8.self)
  }

  private func isLiteral(_ text: ArraySlice<UInt8>) -> Bool {
    let word = String(decoding: text, as: UTF8.self)
    return ["true", "false", "null"].contains(word)
      || (Double(word) != nil && text.allSatisfy { "+-.0123456789eE".utf8.contains($0) })
  }

  private var peek: UInt8? { at < bytes.count ? bytes[at] : nil }
  private mutating func skipSpace() {
    while let byte = peek, JSONLocator.isSpace(byte) { at += 1 }
  }
  /// What is missing is missed where the value before it ended, often on the line before.
  private mutating func fail(_ reason: String, before: Bool = false) {
    guard fault == nil else { return }
    var offset = at
    while before, offset > 0, JSONLocator.isSpace(bytes[offset - 1]) { offset -= 1 }
    fault = (offset, reason)
  }
}
