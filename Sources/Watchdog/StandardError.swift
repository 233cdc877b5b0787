internal import Glibc

/// Descriptor 2, which is the program's.
enum StandardError {
  /// One line, where there is room for it within a moment: whoever says it, the watchdog's thread
  /// or a program that exits, does not wait for a pipe that nobody reads.
  static func say(_ line: String) {
    var entry = pollfd(fd: 2, events: Int16(POLLOUT), revents: 0)
    guard poll(&entry, 1, 100) == 1, entry.revents & Int16(POLLERR) == 0 else { return }
    // A pipe that is ready has room for PIPE_BUF bytes.
    var bytes = Array("hangcheck: \(line)".utf8.prefix(Int(PIPE_BUF) - 1))
    bytes.append(UInt8(ascii: "\n"))
    _ = bytes.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
  }

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

  /// All of a text, however long its reader takes for it.
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
