import Foundation
import HangReport

/// A program that runs without hangcheck, in a process group of its own, until it is told to end.
final class Target: @unchecked Sendable {
  let pid: pid_t
  private let output: URL
  private var raw: Int32?

  init(_ command: [String], adding variables: [String: String] = [:]) throws {
    output = FileManager.default.temporaryDirectory.appending(path: "target-\(UUID()).out")
    _ = FileManager.default.createFile(atPath: output.path, contents: nil)
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output.path, O_WRONLY | O_APPEND, 0)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setpgroup(&attributes, 0)
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var surroundings = ProcessInfo.processInfo.environment
    surroundings.merge(variables) { $1 }
    surroundings["SWIFT_BACKTRACE"] = "enable=no"
    var arguments = command.map { strdup($0) } + [nil]
    var environment = surroundings.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for text in arguments + environment { free(text) } }
    var pid = pid_t()
    let error = posix_spawn(&pid, command[0], &actions, &attributes, &arguments, &environment)
    guard error == 0 else {
      throw Child.Failure(description: "\(command[0]): \(String(cString: strerror(error)))")
    }
    self.pid = pid
  }

  /// How it ended; nil while it has not.
  var status: Child.Status? {
    if raw == nil {
      var value: Int32 = 0
      if waitpid(pid, &value, WNOHANG) == pid { raw = value }
    }
    return raw.map { $0 & 0x7f == 0 ? .exited($0 >> 8 & 0xff) : .signalled($0 & 0x7f) }
  }

  var outputText: String { (try? String(contentsOf: output, encoding: .utf8)) ?? "" }

  /// Waits for its end, `seconds` at most.
  func wait(seconds: Double) -> Child.Status? {
    let end = Date().addingTimeInterval(seconds)
    while status == nil, Date() < end { usleep(10_000) }
    return status
  }

  /// The letters of its threads' states.
  var states: Set<Character> {
    let folder = "/proc/\(pid)/task"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return Set(
      names.compactMap { name in
        let stat = (try? String(contentsOfFile: "\(folder)/\(name)/stat", encoding: .utf8)) ?? ""
        return stat.lastIndex(of: ")").flatMap { stat[stat.index(after: $0)...].dropFirst().first }
      })
  }

  private static func descendants(of pid: pid_t) -> [pid_t] {
    let threads = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task")
    return (threads ?? []).flatMap { thread -> [pid_t] in
      let path = "/proc/\(pid)/task/\(thread)/children"
      let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
      return text.split(separator: " ").compactMap { pid_t($0) }
        .flatMap { [$0] + descendants(of: $0) }
    }
  }

  var tracer: String {
    let text = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("TracerPid:") } ?? ""
    return line.split(separator: "\t").last.map(String.init) ?? ""
  }

  func end() {
    // Foundation's children have groups of their own.
    let others = Self.descendants(of: pid)
    kill(-pid, SIGKILL)
    for other in others { kill(other, SIGKILL) }
    if raw == nil {
      var value: Int32 = 0
      waitpid(pid, &value, 0)
      raw = value
    }
    try? FileManager.default.removeItem(at: output)
  }
}

extension Fixture {
  /// Microseconds until it is attached to: what is to be a long wait has lasted by then.
  var patience: UInt32 {
    guard let at = options.firstIndex(of: "--wait-threshold"), at + 1 < options.count,
      options[at + 1].hasSuffix("s"), let seconds = Double(options[at + 1].dropLast())
    else { return 2_000_000 }
    return UInt32(max(2, seconds + 1) * 1_000_000)
  }

  /// Those of its options that are for attach as well.
  var attachOptions: [String] {
    var result: [String] = []
    for (index, option) in options.enumerated() {
      if option == "--no-follow" { result.append(option) }
      if ["--wait-threshold", "--fail-on"].contains(option), index + 1 < options.count {
        result += [option, options[index + 1]]
      }
    }
    return result
  }
}

/// `hangcheck attach`, with its report.
enum Attached {
  static func run(_ options: [String], limit: Double = 30) throws -> Watched.Result {
    try run("attach", options, limit: limit)
  }

  static func run(
    _ subcommand: String, _ options: [String], limit: Double
  ) throws -> Watched.Result {
    let files = FileManager.default
    let file = files.temporaryDirectory.appending(path: "attach-\(UUID()).json")
    defer { try? files.removeItem(at: file) }
    let outcome = try Child.run(
      [Watched.tool, subcommand, "--format", "json", "--output", file.path] + options, limit: limit)
    var result = Watched.Result(outcome: outcome)
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
