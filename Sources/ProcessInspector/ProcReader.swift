internal import Glibc

/// Reads many small files of one process in /proc, with one buffer for all of them. Or what a core
/// file tells of it.
final class ProcReader {
  let folder: String
  private let core: CoreFile?
  private var buffer = [UInt8](repeating: 0, count: 1 << 16)

  init(_ pid: ProcessID) {
    folder = "/proc/\(pid.rawValue)/"
    core = nil
  }

  init(_ files: ProcessFiles) {
    folder = "/proc/\(files.pid.rawValue)/"
    core = files.core
  }

  /// The whole of a file, valid until the next call; nil where it may not be read or is gone.
  func read<R>(_ name: String, _ body: (UnsafeBufferPointer<UInt8>) -> R) -> R? {
    if let core { return core.proc(name).map { $0.withUnsafeBufferPointer(body) } }
    let fd = open(folder + name, O_RDONLY | O_CLOEXEC)
    guard fd >= 0 else { return nil }
    defer { close(fd) }
    var filled = 0
    while true {
      if filled == buffer.count {
        guard buffer.count < 1 << 26 else { return nil }
        buffer += [UInt8](repeating: 0, count: buffer.count)
      }
      let got = buffer.withUnsafeMutableBytes { raw in
        Glibc.read(fd, raw.baseAddress.map { $0 + filled }, raw.count - filled)
      }
      if got < 0 && errno == EINTR { continue }
      if got < 0 { return nil }
      if got == 0 { break }
      filled += got
    }
    return buffer.withUnsafeBufferPointer { body(UnsafeBufferPointer(rebasing: $0[..<filled])) }
  }

  /// A part of a file that may be large; nil where it has not all of it.
  func part(of name: String, at offset: UInt64 = 0, _ count: Int) -> [UInt8]? {
    if let core { return name == "exe" ? core.partOfExecutable(at: offset, count) : nil }
    let fd = open(folder + name, O_RDONLY | O_CLOEXEC)
    guard fd >= 0 else { return nil }
    defer { close(fd) }
    var bytes = [UInt8](repeating: 0, count: count)
    let got = pread(fd, &bytes, count, off_t(truncatingIfNeeded: offset))
    return got == count ? bytes : nil
  }

  func text(_ name: String) -> String? { read(name) { String(decoding: $0, as: UTF8.self) } }

  /// Where a symbolic link leads.
  func link(_ name: String) -> String? {
    if let core { return core.link(name) }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { space in
      guard let start = space.baseAddress else { return nil }
      let length = readlink(folder + name, start, 511)
      guard length > 0 else { return nil }
      return String(
        decoding: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(space)[..<length]),
        as: UTF8.self)
    }
  }

  func list(_ name: String) -> [String]? {
    if let core { return core.list(name) }
    guard let directory = opendir(folder + name) else { return nil }
    defer { closedir(directory) }
    var result: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { raw in
        String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != "." && name != ".." { result.append(name) }
    }
    return result
  }

  /// The system call that a thread is in; nil where that may not be read.
  func systemCall(_ tid: KernelThreadID) -> (isRunning: Bool, call: SystemCall?)? {
    read("task/\(tid.rawValue)/syscall") { bytes in
      if bytes.first == UInt8(ascii: "r") { return (true, nil) }
      var words: [UInt64] = []
      words.reserveCapacity(9)
      for word in bytes.split(whereSeparator: { $0 == 32 || $0 == 10 }) {
        guard let value = Self.number(word) else { return (false, nil) }
        words.append(value)
      }
      guard words.count == 9 else { return (false, nil) }
      return (
        false,
        SystemCall(
          number: Int(truncatingIfNeeded: words[0]), arguments: Array(words[1...6]),
          stackPointer: words[7])
      )
    }
  }

  /// The letter of a thread's state in its stat file.
  func state(_ tid: KernelThreadID) -> UInt8? {
    read("task/\(tid.rawValue)/stat") { bytes -> UInt8? in
      guard let end = bytes.lastIndex(of: UInt8(ascii: ")")), end + 2 < bytes.count else {
        return nil
      }
      return bytes[end + 2]
    } ?? nil
  }

  /// "230" or "0xe6"; nil for anything else.
  static func number(_ word: Slice<UnsafeBufferPointer<UInt8>>) -> UInt64? {
    var digits = word
    var radix: UInt64 = 10
    if digits.count > 2, digits.starts(with: [UInt8(ascii: "0"), UInt8(ascii: "x")]) {
      digits = digits.dropFirst(2)
      radix = 16
    }
    guard !digits.isEmpty, digits.count <= 20 else { return nil }
    var value: UInt64 = 0
    for digit in digits {
      let part: UInt8
      switch digit {
      case 48...57: part = digit - 48
      case 97...102 where radix == 16: part = digit - 87
      default: return nil
      }
      value = value &* radix &+ UInt64(part)
    }
    return value
  }
}
