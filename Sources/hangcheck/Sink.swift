import Glibc
import ProcessInspector

/// A place for text. A failure ends the writing, never the program, and is said once.
///
/// A stream that takes nothing (a pipe whose reader sleeps) is not waited for: what is left stays
/// here until `flush` finds room, because hangcheck has signals to pass on meanwhile.
final class Sink {
  enum Kind: Sendable { case stream, regularFile }

  let name: String
  let kind: Kind
  let isTerminal: Bool
  private let owned: OwnedDescriptor?
  private let fd: Int32
  private var pending: [UInt8] = []
  private(set) var failure: SystemError?
  /// Of a whole file that is replaced: when it must grow at its end instead.
  private let appends: Bool

  /// A descriptor that is the program's as well; never closed, never truncated.
  init(shared fd: Int32, name: String) {
    self.fd = fd
    self.name = name
    owned = nil
    appends = false
    kind = .stream
    isTerminal = isatty(fd) == 1
  }

  /// Opens `path`, creates it where it is not there; a regular file is emptied unless `appends`.
  init(path: String, appends: Bool) throws(SystemError) {
    let descriptor: OwnedDescriptor
    if let number = Sink.inheritedDescriptor(path) {
      // Opening the name would give a second offset, and emptying it would lose what is there.
      guard StandardStreams.isInherited(number) else { throw SystemError(EBADF) }
      descriptor = try OwnedDescriptor(duplicating: number)
      self.appends = true
    } else {
      let flags = O_WRONLY | O_CREAT | (appends ? O_APPEND : O_TRUNC)
      descriptor = try OwnedDescriptor(opening: path, flags: flags, mode: 0o666)
      self.appends = appends
    }
    fd = descriptor.rawValue
    var status = stat()
    let isRegular = fstat(fd, &status) == 0 && Files.isRegular(status)
    kind = isRegular && !self.appends ? .regularFile : .stream
    isTerminal = isatty(fd) == 1
    name = path
    owned = consume descriptor
  }

  /// Whether a write may be left over.
  var isWaiting: Bool { !pending.isEmpty }
  var descriptor: Int32 { fd }

  /// Adds to a stream.
  func append(_ text: String) {
    guard failure == nil else { return }
    pending += text.utf8
    flush()
  }

  /// One write, so that lines of several processes do not mix.
  func appendLine(_ line: String) {
    guard failure == nil else { return }
    let bytes = Array(line.utf8)
    let size = bytes.withUnsafeBytes { write(fd, $0.baseAddress, $0.count) }
    if size < 0 { fail(errno) } else if size < bytes.count { fail(ENOSPC) }
  }

  /// Makes `text` the whole content of a regular file.
  func replace(with text: String) {
    guard failure == nil else { return }
    let bytes = Array(text.utf8)
    guard ftruncate(fd, 0) == 0 else { return fail(errno) }
    var done = 0
    while done < bytes.count {
      let size = bytes.withUnsafeBytes {
        pwrite(fd, $0.baseAddress?.advanced(by: done), $0.count - done, done)
      }
      if size < 0 && errno == EINTR { continue }
      guard size > 0 else { return fail(size < 0 ? errno : ENOSPC) }
      done += size
    }
  }

  /// Writes as much as there is room for.
  func flush() {
    while !pending.isEmpty, failure == nil {
      var entry = pollfd(fd: fd, events: Int16(POLLOUT), revents: 0)
      // A pipe that is ready has room for PIPE_BUF bytes; the descriptor itself may not be made
      // non-blocking, since the program shares it.
      guard poll(&entry, 1, 0) == 1 else { return }
      let size = pending.withUnsafeBytes { write(fd, $0.baseAddress, min($0.count, Int(PIPE_BUF))) }
      if size < 0 {
        if errno == EINTR || errno == EAGAIN { return }
        return fail(errno)
      }
      pending.removeFirst(size)
    }
  }

  private func fail(_ code: Int32) {
    let error = SystemError(code)
    failure = error
    pending = []
    if fd != 2 { Tool.say("the report cannot be written to \(name): \(error)") }
  }

  /// `/dev/stderr` and the like name a descriptor of this process, not a file.
  private static func inheritedDescriptor(_ path: String) -> Int32? {
    switch path {
    case "-", "/dev/stdout": return 1
    case "/dev/stderr": return 2
    default:
      for prefix in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(prefix) {
        return Int32(path.dropFirst(prefix.count))
      }
      return nil
    }
  }
}
