import Foundation
import HangReport
import Testing

/// One line of `Tests/Fixtures/fixtures.tsv`: a program and what must be said of it.
struct Fixture: Sendable, CustomTestStringConvertible {
  enum Ending: Sendable, Equatable {
    /// Before DONE, with status 66.
    case ended
    /// With DONE, and status 66 all the same.
    case done
    case status(Int32)
    /// Before DONE, by a signal that it brings on itself.
    case trap
    case timeout
    case any
    /// As without hangcheck: output and status.
    case same
  }
  enum Door: String, Sendable {
    case run, swap, attach, core
  }

  var name: String
  var source: String
  var variant: String
  var arguments: [String]
  var through: String?
  var options: [String]
  /// Kinds of which one must be reported; 'nothing' among them allows silence.
  var expected: Set<String>
  /// Kinds that do as well when they are only noted.
  var noted: Set<String>
  /// Kinds that may be reported besides.
  var besides: Set<String>
  /// Alternatives of thread names, each sorted; empty where it is not checked.
  var cycles: [[String]]
  /// Threads that the finding must be about, and threads that no cycle may blame.
  var named: Set<String>
  var innocent: Set<String>
  /// Kinds of what the cycle's edges wait for; empty where it is not checked.
  var resources: Set<String>
  /// Kinds of resources that the finding must be about.
  var about: Set<String>
  var ending: Ending
  var note: String
  var doors: Set<Door>

  /// How sure a deadlock must be. Where a warning counts, who would end the wait may be a guess, unless
  /// it is proved that nobody else could.
  func isSureEnough(_ finding: Finding) -> Bool {
    options.contains("--fail-on") && finding.certainty == .possible
      ? finding.severity == .warning
      : finding.severity == .error && finding.certainty == .certain
  }

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
  static let run = all.filter { $0.doors.contains(.run) }
  static let attached = all.filter { $0.doors.contains(.attach) }
  static let cored = all.filter { $0.doors.contains(.core) }
  static let swapped = all.filter { $0.doors.contains(.swap) }

  init?(line: Substring) {
    let columns = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    guard columns.count == 11 || columns.count == 12 else { return nil }
    func list(_ text: String, _ prefix: String = "") -> [String] {
      let entries = text == "-" ? [] : text.split(separator: ",").map(String.init)
      return entries.compactMap { entry in
        let mark = ["note:", "+", "!"].first { entry.hasPrefix($0) } ?? ""
        return mark == prefix ? String(entry.dropFirst(mark.count)) : nil
      }
    }
    name = columns[0]
    source = columns[1]
    variant = columns[2]
    arguments = columns[3] == "-" ? [] : words(columns[3])
    through = columns[4] == "-" ? nil : columns[4]
    options = columns[5] == "-" ? [] : words(columns[5])
    expected = Set(list(columns[6]))
    noted = Set(list(columns[6], "note:"))
    besides = Set(list(columns[6], "+"))
    cycles = columns[7].split(separator: "|").map { threads(list(String($0))) }
      .filter { !$0.isEmpty }
    named = Set(list(columns[7], "+"))
    innocent = Set(list(columns[7], "!"))
    resources = Set(list(columns[8]))
    about = Set(list(columns[8], "+"))
    note = columns[10]
    doors = columns.count == 12 ? Set(list(columns[11]).compactMap(Door.init)) : [.run]
    switch columns[9] {
    case "ended": ending = .ended
    case "done": ending = .done
    case "any": ending = .any
    case "same": ending = .same
    case "timeout": ending = .timeout
    case "trap": ending = .trap
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

/// Counts `name-0...name-99` up, and sorts.
private func threads(_ names: [String]) -> [String] {
  names.flatMap { name -> [String] in
    guard let dots = name.range(of: "...") else { return [name] }
    let first = name[..<dots.lowerBound]
    let last = name[dots.upperBound...]
    let stem = first.prefix { !$0.isNumber }
    guard let from = Int(first.dropFirst(stem.count)), let to = Int(last.dropFirst(stem.count))
    else { return [name] }
    return (from...to).map { "\(stem)\($0)" }
  }.sorted()
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
    text(source).matches(of: #/LIBRARY\((?<name>[\w.]+)\)/#).map { String($0.output.name) }
  }
  /// Swift files that are compiled together with it.
  static func companions(of source: String) -> [String] {
    text(source).matches(of: #/WITH\((?<name>[\w.]+)\)/#).map { String($0.output.name) }
  }
  private static func text(_ source: String) -> String {
    (try? String(contentsOf: folder.appending(path: source), encoding: .utf8)) ?? ""
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
