import Foundation
import Glibc
import ProcessInspector
import Testing

/// A program under test: its own process group, its output drained, an end in any case.
final class Run {
  struct Result: Sendable {
    var status: Int32
    var output: String
    var errors: String
    var isTimedOut: Bool
  }

  let pid: Int32
  private let streams: [Int32]
  private var texts: [[UInt8]] = [[], []]
  private var isReaped = false

  /// - Parameter closed: descriptors that the program finds closed.
  init(
    _ path: String, _ arguments: [String], environment: [String: String?] = [:], input: String = "",
    bytes: [UInt8]? = nil, closed: [Int32] = []
  ) throws {
    var merged = ProcessInfo.processInfo.environment
    for (key, value) in environment { merged[key] = value }
    for key in ["HANGCHECK_OPTIONS", "NO_COLOR"] where environment[key] == nil { merged[key] = nil }
    // Tests run side by side: between a descriptor's birth and its close-on-exec nothing starts.
    Run.starting.lock()
    defer { Run.starting.unlock() }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    let file = try Run.temporaryFile(bytes ?? Array(input.utf8))
    defer { close(file) }
    var ends: [[Int32]] = []
    for _ in 0..<2 {
      var pair: [Int32] = [0, 0]
      #expect(pipe(&pair) == 0)
      for end in pair { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      ends.append(pair)
    }
    posix_spawn_file_actions_adddup2(&actions, file, 0)
    posix_spawn_file_actions_adddup2(&actions, ends[0][1], 1)
    posix_spawn_file_actions_adddup2(&actions, ends[1][1], 2)
    for fd in closed { posix_spawn_file_actions_addclose(&actions, fd) }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The threads that tests run on block most signals.
    var none = sigset_t()
    var all = sigset_t()
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    posix_spawnattr_setflags(&attributes, Int16(flags))
    var pid: pid_t = 0
    let error = CArray.with([path] + arguments) { arguments in
      CArray.with(merged.map { "\($0)=\($1)" }.sorted()) { environment in
        posix_spawn(&pid, path, &actions, &attributes, arguments, environment)
      }
    }
    for pair in ends { close(pair[1]) }
    streams = ends.map { $0[0] }
    self.pid = pid
    if error != 0 { isReaped = true }
    try #require(error == 0, "\(path): \(SystemError(error))")
  }

  deinit {
    if !isReaped {
      kill(-pid, SIGKILL)
      waitpid(pid, nil, 0)
    }
    for fd in streams { close(fd) }
  }

  static func hangcheck(
    _ arguments: [String], environment: [String: String?] = [:], input: String = "",
    closed: [Int32] = []
  ) throws -> Run {
    let agent = ["HANGCHECK_AGENT": Optional(try Fixture.agent())]
    return try Run(
      Fixture.hangcheck, arguments, environment: agent.merging(environment) { $1 }, input: input,
      closed: closed)
  }

  static func program(_ path: String, _ arguments: [String]) throws -> Result {
    try Run(path, arguments).wait()
  }

  /// Reads until `text` has come on standard output.
  func wait(for text: String, seconds: Double = 10) throws {
    let limit = monotonicNow() + UInt64(seconds * 1e9)
    while !String(decoding: texts[0], as: UTF8.self).contains(text) {
      try #require(monotonicNow() < limit && drain(100), "no '\(text)' in \(output)")
    }
  }

  var output: String { String(decoding: texts[0], as: UTF8.self) }

  /// Drains and waits for the end of the program itself.
  func wait(seconds: Double = 20) -> Result {
    let limit = monotonicNow() + UInt64(seconds * 1e9)
    var raw: Int32 = 0
    var isTimedOut = false
    while true {
      let isOpen = drain(5)
      if waitpid(pid, &raw, WNOHANG) == pid { break }
      if monotonicNow() > limit {
        isTimedOut = true
        kill(-pid, SIGKILL)
        waitpid(pid, &raw, 0)
        break
      }
      if !isOpen { usleep(2000) }
    }
    isReaped = true
    // What is left in the pipes; a descendant that lives on may hold them open.
    while drain(0) {}
    let signal = raw & 0x7f
    return Result(
      status: signal == 0 ? raw >> 8 & 0xff : -signal, output: output,
      errors: String(decoding: texts[1], as: UTF8.self), isTimedOut: isTimedOut)
  }

  /// Reads what comes within that time.
  func read(milliseconds: Int32) { if !drain(milliseconds) { usleep(1000) } }

  /// Reads what comes within that time; false when there was nothing, or nothing can come.
  private func drain(_ milliseconds: Int32) -> Bool {
    var entries = streams.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    guard poll(&entries, 2, milliseconds) > 0 else { return milliseconds > 0 }
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    var some = false
    for (index, entry) in entries.enumerated() where entry.revents != 0 {
      let size = buffer.withUnsafeMutableBytes { Glibc.read(entry.fd, $0.baseAddress, $0.count) }
      if size > 0 {
        texts[index] += buffer[..<size]
        some = true
      }
    }
    return some
  }

  static let starting = NSLock()

  private static func temporaryFile(_ content: [UInt8]) throws -> Int32 {
    var name = Array("/tmp/hangcheck-input-XXXXXX".utf8CString)
    let fd = mkstemp(&name)
    _ = fcntl(fd, F_SETFD, FD_CLOEXEC)
    try #require(fd >= 0)
    unlink(name)
    var bytes = ArraySlice(content)
    while !bytes.isEmpty {
      let size = bytes.withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
      try #require(size > 0)
      bytes = bytes.dropFirst(size)
    }
    lseek(fd, 0, SEEK_SET)
    return fd
  }
}

/// Null-terminated arrays of C strings for a call.
enum CArray {
  static func with<R>(
    _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R
  ) -> R {
    var pointers = strings.map { strdup($0) }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeBufferPointer { buffer in
      // The array ends in nil, so it is never empty.
      withExtendedLifetime(strings) { body(buffer.baseAddress ?? emptyArray) }
    }
  }

  nonisolated(unsafe) private static let emptyArray: UnsafePointer<UnsafeMutablePointer<CChar>?> = {
    let pointer = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: 1)
    pointer.initialize(to: nil)
    return UnsafePointer(pointer)
  }()
}
