import Foundation
import Glibc
import ProcessInspector
import Testing

/// A pseudo-terminal with an interactive shell on it.
final class Terminal {
  private let main: Int32
  private let shell: Int32
  private var text: [UInt8] = []
  /// How much of the text has been looked through.
  private var seen = 0

  init() throws {
    var main: Int32 = -1
    var other: Int32 = -1
    var name = [CChar](repeating: 0, count: 256)
    try #require(openpty(&main, &other, &name, nil, nil) == 0)
    for fd in [main, other] { _ = fcntl(fd, F_SETFD, FD_CLOEXEC) }
    defer { close(other) }
    self.main = main
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // The leader of a new session gets the terminal that it opens first.
    posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0)
    posix_spawn_file_actions_adddup2(&actions, 0, 1)
    posix_spawn_file_actions_adddup2(&actions, 0, 2)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    var all = sigset_t()
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    let flags = 0x80 | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF  // POSIX_SPAWN_SETSID
    posix_spawnattr_setflags(&attributes, Int16(flags))
    var environment = ProcessInfo.processInfo.environment
    environment["HANGCHECK_AGENT"] = try Fixture.agent()
    environment["PS1"] = "prompt> "
    environment["TERM"] = "dumb"
    environment["hangcheck"] = Fixture.hangcheck
    var pid: pid_t = 0
    let error = CArray.with(["bash", "--norc", "--noprofile", "--noediting", "-i"]) { arguments in
      CArray.with(environment.map { "\($0)=\($1)" }) { environment in
        posix_spawn(&pid, "/bin/bash", &actions, &attributes, arguments, environment)
      }
    }
    shell = pid
    try #require(error == 0)
    try wait(for: "prompt> ")
  }

  deinit {
    // The hangup ends what runs on it, and the rest of the session with it.
    close(main)
    for _ in 0..<100 {
      if waitpid(shell, nil, WNOHANG) == shell { return }
      usleep(10_000)
    }
    kill(shell, SIGKILL)
    waitpid(shell, nil, 0)
  }

  func type(_ keys: String) {
    let bytes = Array(keys.utf8)
    _ = bytes.withUnsafeBytes { write(main, $0.baseAddress, $0.count) }
  }

  /// Reads until `words` have come since the last call.
  @discardableResult
  func wait(for words: String, seconds: Double = 10) throws -> String {
    let limit = monotonicNow() + UInt64(seconds * 1e9)
    while true {
      let news = String(decoding: text[seen...], as: UTF8.self)
      if let range = news.range(of: words) {
        seen += news[..<range.upperBound].utf8.count
        return String(news[..<range.upperBound])
      }
      try #require(monotonicNow() < limit, "no '\(words)' in \(news)")
      var entry = pollfd(fd: main, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, 100) > 0 else { continue }
      var buffer = [UInt8](repeating: 0, count: 4096)
      let size = buffer.withUnsafeMutableBytes { read(main, $0.baseAddress, $0.count) }
      try #require(size > 0, "the terminal has gone: \(news)")
      text += buffer[..<size]
    }
  }

  /// Types a command whose echo does not hold what it prints.
  func run(_ command: String) { type(command + "\n") }
}
