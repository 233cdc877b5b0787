import Foundation
import Testing

/// One line of `Tests/Fixtures/fixtures.tsv`: a program and what must be said of it.
struct Fixture: Sendable, CustomTestStringConvertible {
  enum Ending: Sendable, Equatable {
    /// Before DONE, with status 66.
    case ended
    /// With DONE, and status 66 all the same.
    case done
    case status(Int32)
    case timeout
    case any
    /// As without hangcheck: output and status.
    case same
  }

  var name: String
  var source: String
  var variant: String
  var arguments: [String]
  var through: String?
  var options: [String]
  /// Kinds of which one must be reported; 'nothing' among them allows silence.
  var expected: Set<String>
  /// Alternatives of thread names, each sorted; empty where it is not checked.
  var cycles: [[String]]
  var resources: Set<String>
  var ending: Ending
  var note: String

  var isHealthy: Bool { expected.contains("nothing") }
  var hasLines: Bool { variant != "stripped" && variant != "nodebug" }
  var testDescription: String { note.isEmpty ? name : "\(name): \(note)" }
}

extension Fixture {
  static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  static let folder = root.appending(path: "Tests/Fixtures")

  /// The whole table.
  static let table: [Fixture] = {
    let file = folder.appending(path: "fixtures.tsv")
    let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").filter { !$0.hasPrefix("#") }
      .compactMap(Fixture.init(line:))
  }()

  /// What ZOO picks of it.
  static let all: [Fixture] = {
    guard let wanted = ProcessInfo.processInfo.environment["ZOO"] else { return table }
    return table.filter { fixture in
      wanted.split(separator: ",").contains { fixture.name.hasPrefix($0) }
    }
  }()
  static let faulty = all.filter { !$0.isHealthy }
  static let healthy = all.filter(\.isHealthy)

  init?(line: Substring) {
    let columns = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    guard columns.count == 11 else { return nil }
    func list(_ text: String) -> [String] {
      text == "-" ? [] : text.split(separator: ",").map(String.init)
    }
    name = columns[0]
    source = columns[1]
    variant = columns[2]
    arguments = columns[3] == "-" ? [] : words(columns[3])
    through = columns[4] == "-" ? nil : columns[4]
    options = columns[5] == "-" ? [] : words(columns[5])
    expected = Set(list(columns[6]))
    cycles = columns[7] == "-" ? [] : columns[7].split(separator: "|").map { threads(String($0)) }
    resources = Set(list(columns[8]))
    note = columns[10]
    switch columns[9] {
    case "ended": ending = .ended
    case "done": ending = .done
    case "any": ending = .any
    case "same": ending = .same
    case "timeout": ending = .timeout
    default:
      guard columns[9].hasPrefix("status "), let status = Int32(columns[9].dropFirst(7)) else {
        return nil
      }
      ending = .status(status)
    }
  }
}

/// Splits as a shell does, as far as single quotes go.
private func words(_ text: String) -> [String] {
  var result: [String] = []
  var word: String?
  var quoted = false
  for character in text {
    switch character {
    case "'":
      quoted.toggle()
      word = word ?? ""
    case " " where !quoted:
      if let word { result.append(word) }
      word = nil
    default: word = (word ?? "") + String(character)
    }
  }
  if let word { result.append(word) }
  return result
}

/// `a,b` or `name-0...name-99`, sorted.
private func threads(_ text: String) -> [String] {
  if let dots = text.range(of: "...") {
    let first = text[..<dots.lowerBound]
    let last = text[dots.upperBound...]
    let stem = first.prefix { !$0.isNumber }
    if let from = Int(first.dropFirst(stem.count)), let to = Int(last.dropFirst(stem.count)) {
      return (from...to).map { "\(stem)\($0)" }.sorted()
    }
  }
  return text.split(separator: ",").map(String.init).sorted()
}

/// A line of a source that a report must show for a thread.
struct Mark: Sendable, Hashable {
  enum Role: String, Sendable {
    case holds = "HOLDS"
    case waits = "WAITS"
  }
  var role: Role
  var thread: String
  var file: String
  var line: Int
}

extension Fixture {
  /// Sources of the program and of the libraries that it loads.
  var sources: [String] { [source] + Self.libraries(of: source) }

  static func libraries(of source: String) -> [String] {
    let text = (try? String(contentsOf: folder.appending(path: source), encoding: .utf8)) ?? ""
    return text.matches(of: #/LIBRARY\((?<name>[\w.]+)\)/#).map { String($0.output.name) }
  }

  /// The marked lines of one thread.
  func marks(of thread: String) -> [Mark] {
    sources.flatMap { file -> [Mark] in
      let url = Self.folder.appending(path: file)
      let text = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
      return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().flatMap {
        index, line -> [Mark] in
        guard let comment = line.range(of: "//", options: .backwards),
          line[..<comment.lowerBound].contains(where: { !$0.isWhitespace })
        else { return [] }
        return line[comment.lowerBound...].matches(of: #/(?<role>HOLDS|WAITS)\((?<names>[^)]*)\)/#)
          .filter { $0.output.names.split(separator: ",").contains { isOf($0, thread: thread) } }
          .compactMap { match in
            Mark.Role(rawValue: String(match.output.role)).map {
              Mark(role: $0, thread: thread, file: file, line: index + 1)
            }
          }
      }
    }
  }

  /// `name`, `name-*`, or either behind `scenario:`.
  private func isOf(_ pattern: Substring, thread: String) -> Bool {
    var pattern = pattern
    if let colon = pattern.firstIndex(of: ":") {
      guard pattern[..<colon] == arguments.first.map({ $0[...] }) else { return false }
      pattern = pattern[pattern.index(after: colon)...]
    }
    if pattern.hasSuffix("*") { return thread.hasPrefix(pattern.dropLast()) }
    return pattern == thread
  }
}
