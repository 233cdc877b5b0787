import Foundation
import HangReport
import Testing

/// A fixture program that ran, or hung until it was ended.
struct RunResult {
  var output: String
  var errors: String
  /// The lines of its log, each a report.
  var reports: [HangReport]
  /// nil when the test had to end it.
  var status: Int32?
  var signal: Int32?

  var findings: [Finding] { reports.flatMap(\.findings) }
  var isWhole: Bool { output.hasSuffix("DONE\n") && status == 0 }
}

enum Fixture {
  /// Where the build put this test, the fixture and the tool.
  static let folder: URL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent()

  static func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  /// Runs a scenario for at most `limit` seconds; one that hangs is ended once it has reported
  /// `until` findings. A tool ends what it runs by itself.
  static func run(
    _ scenario: [String], until count: Int = .max, limit: Double = 20, options: String = "",
    under tool: [String] = [], program: String = "SwapFixture"
  ) throws -> RunResult {
    let place = FileManager.default.temporaryDirectory
      .appendingPathComponent("swap-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: place) }
    let files = ["out", "err", "log"].map { place.appendingPathComponent($0) }
    for file in files[..<2] { _ = FileManager.default.createFile(atPath: file.path, contents: nil) }
    var environment = ProcessInfo.processInfo.environment
    environment["HANGCHECK_OPTIONS"] = "log=\(files[2].path) \(options)"
    environment["SWIFT_BACKTRACE"] = "enable=no"
    let pid = try spawn(
      tool + [path(program)] + scenario, environment, output: files[0], errors: files[1])
    let deadline = Date(timeIntervalSinceNow: limit)
    var status: Int32 = 0
    var isEnded = false
    while waitpid(pid, &status, WNOHANG) == 0 {
      let found = (try? reports(files[2]))?.flatMap(\.findings).count ?? 0
      if found >= count || Date() >= deadline {
        // A finding more than expected would come at once.
        usleep(300_000)
        isEnded = true
        kill(pid, SIGKILL)
        waitpid(pid, &status, 0)
        break
      }
      usleep(20_000)
    }
    let signal = status & 0x7f
    return RunResult(
      output: try String(contentsOf: files[0], encoding: .utf8),
      errors: try String(contentsOf: files[1], encoding: .utf8),
      reports: try reports(files[2]),
      status: isEnded || signal != 0 ? nil : (status >> 8) & 0xff,
      signal: isEnded || signal == 0 ? nil : signal)
  }

  /// Not by Foundation's Process, which waits for whatever the program leaves behind as well.
  private static func spawn(
    _ words: [String], _ environment: [String: String], output: URL, errors: URL
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output.path, O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 2, errors.path, O_WRONLY, 0)
    // This thread is one of libdispatch's, which block most signals.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var arguments = words.map { strdup($0) } + [nil]
    var variables = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var pid: pid_t = 0
    let error = posix_spawn(&pid, words[0], &actions, &attributes, &arguments, &variables)
    try #require(error == 0, "\(words[0]): \(String(cString: strerror(error)))")
    return pid
  }

  private static func reports(_ log: URL) throws -> [HangReport] {
    guard let data = try? Data(contentsOf: log) else { return [] }
    return try data.split(separator: UInt8(ascii: "\n")).map { try HangReport(json: [UInt8]($0)) }
  }

  /// The number of the first line with these words after another one, in a file of the fixture's.
  static func line(_ words: String, after start: String, in file: String) throws -> Int {
    let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("SwapFixture/\(file)").path
    let lines = try String(contentsOfFile: path, encoding: .utf8).components(separatedBy: "\n")
    let first = try #require(lines.firstIndex { $0.contains(start) })
    return try #require(lines[first...].firstIndex { $0.contains(words) }) + 1
  }
}

extension [Frame] {
  /// The first frame of the program's own code, as `File.swift:12`.
  var place: String? {
    first { !$0.runtime }.map { frame in
      let file = frame.file.map {
        String($0[($0.lastIndex(of: "/").map($0.index(after:)) ?? $0.startIndex)...])
      }
      return "\(file ?? "?"):\(frame.line ?? 0)"
    }
  }
}
