internal import Glibc
public import HangReport

extension Watchdog {
  /// What a handler is told; `hangcheck/1` when encoded. Its module is no product of this package,
  /// so this is how a program names it.
  public typealias Report = HangReport

  /// Somebody who is told of deadlocks, on the watchdog's own thread and under no lock of ours.
  ///
  /// A handler that throws is named on standard error. One that blocks holds up the handlers after
  /// it and further reports, never the program.
  public struct Handler: Sendable {
    private enum Action: Sendable {
      case standardError
      case jsonLines(String)
      case closure(@Sendable (HangReport) throws -> Void)
    }
    private let action: Action

    /// The report as text for a person.
    public static let standardError = Handler(action: .standardError)

    /// The report's JSON as one line at the end of a file, which is made where there is none. A
    /// line is written whole, by one call, or not at all; the file is opened for each, so that it
    /// may be moved away.
    public static func jsonLines(_ path: String) -> Handler { Handler(action: .jsonLines(path)) }

    /// The report as a value. The deadlocked threads still hold their locks: a closure that takes
    /// one of these waits for ever.
    public static func closure(_ body: @escaping @Sendable (HangReport) throws -> Void) -> Handler {
      Handler(action: .closure(body))
    }

    func take(_ report: HangReport, color: Color) throws {
      switch action {
      case .standardError:
        let renderer = TextRenderer(options: .init(color: StandardError.hasColors(color)))
        StandardError.write(renderer.render(report))
      case .jsonLines(let path):
        try LineFile(path: path).append(report.json() + [UInt8(ascii: "\n")])
      case .closure(let body): try body(report)
      }
    }
  }
}

/// Descriptor 2, which is the program's.
enum StandardError {
  static func say(_ line: String) { write("hangcheck: \(line)\n") }

  static func hasColors(_ choice: Watchdog.Color) -> Bool {
    switch choice {
    case .always: return true
    case .never: return false
    case .auto:
      let refused = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
      let isDumb = getenv("TERM").map { String(cString: $0) == "dumb" } ?? false
      return isatty(2) == 1 && !refused && !isDumb
    }
  }

  static func write(_ text: String) {
    var bytes = ArraySlice(Array(text.utf8))
    while !bytes.isEmpty {
      let size = bytes.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
      if size > 0 {
        bytes = bytes.dropFirst(size)
      } else if size < 0 && errno == EAGAIN {
        // The program made it non-blocking: a reader who takes nothing for a second gets no more.
        var entry = pollfd(fd: 2, events: Int16(POLLOUT), revents: 0)
        if poll(&entry, 1, 1000) <= 0 { return }
      } else if size == 0 || errno != EINTR {
        return
      }
    }
  }
}

/// Why a line is not in a log.
struct LineFileError: Error, CustomStringConvertible {
  var path: String
  var code: Int32
  var description: String { "\(path): \(String(cString: strerror(code)))" }
}

/// A file that grows by whole lines, perhaps by those of several processes at once.
struct LineFile {
  var path: String

  func append(_ line: [UInt8]) throws(LineFileError) {
    let flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
    let fd = open(path, flags, 0o666)
    guard fd >= 0 else { throw LineFileError(path: path, code: errno) }
    defer { close(fd) }
    var size: Int
    repeat {
      size = line.withUnsafeBytes { write(fd, $0.baseAddress, $0.count) }
    } while size < 0 && errno == EINTR
    if size < 0 { throw LineFileError(path: path, code: errno) }
    guard size < line.count else { return }
    // The disk is full: half a line goes away again, unless another process has written behind it.
    let end = lseek(fd, 0, SEEK_CUR)
    if end >= size, lseek(fd, 0, SEEK_END) == end { ftruncate(fd, end - off_t(size)) }
    throw LineFileError(path: path, code: ENOSPC)
  }
}
