import Foundation
import HangReport

/// A program run by itself or under hangcheck.
enum Watched {
  struct Result: Sendable {
    var outcome: Child.Outcome
    /// Absent where no report was written.
    var report: HangReport?
    /// Why a report that is there could not be read.
    var unreadable: String?
    var loud: [Finding] {
      report?.findings.filter { $0.severity == .warning || $0.severity == .error } ?? []
    }
  }

  /// The executable under test: named by HANGCHECK, or beside the test bundle.
  static let tool: String = {
    if let named = ProcessInfo.processInfo.environment["HANGCHECK"] { return named }
    let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let beside = own.map { URL(filePath: $0).deletingLastPathComponent() }
    for folder in [beside, Fixture.root.appending(path: ".build/debug")].compactMap({ $0 }) {
      let path = folder.appending(path: "hangcheck").path
      if FileManager.default.isExecutableFile(atPath: path) { return path }
    }
    return "hangcheck"
  }()

  static func command(_ fixture: Fixture, _ program: URL) -> [String] {
    let own = [program.path] + fixture.arguments
    return fixture.through.map { ["/bin/sh", "-c", $0] + own } ?? own
  }

  static let input = "first line\nsecond line\n"

  static func alone(_ fixture: Fixture, _ program: URL, limit: Double = 45) throws -> Child.Outcome
  {
    try Child.run(command(fixture, program), input: input, limit: limit)
  }

  static func run(_ fixture: Fixture, _ program: URL) throws -> Result {
    var options = fixture.options
    if !options.contains("--on-deadlock") { options += ["--on-deadlock", "terminate"] }
    if !options.contains("--timeout") { options += ["--timeout", "25s"] }
    return try run(options, command(fixture, program))
  }

  static func run(
    _ options: [String], _ command: [String], limit: Double = 50
  ) throws -> Result {
    let files = FileManager.default
    let file = files.temporaryDirectory.appending(path: "zoo-\(getpid())-\(UUID()).json")
    defer { try? files.removeItem(at: file) }
    let outcome = try Child.run(
      [tool, "run", "--format", "json", "--output", file.path] + options + ["--"] + command,
      input: input, limit: limit)
    var result = Result(outcome: outcome)
    if let data = try? Data(contentsOf: file), !data.isEmpty {
      do {
        result.report = try JSONDecoder().decode(HangReport.self, from: data)
      } catch {
        result.unreadable = "\(error)"
      }
    }
    return result
  }
}
