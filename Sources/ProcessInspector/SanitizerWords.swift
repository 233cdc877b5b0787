internal import CHangcheck
internal import HangReport

/// What ThreadSanitizer prints in a watched process, read from the arena as it grows.
///
/// The process wrote it and may have written anything. Confined to one thread, like the arena.
final class SanitizerWords {
  private let arena: Arena
  private var read = 0
  private var reader = SanitizerReader()

  init(_ arena: Arena) { self.arena = arena }

  /// Its own thread, by the number that the process knows it by.
  var sanitizerThread: KernelThreadID? {
    let tid = hck_load32(&arena.base.pointee.sanitizer_tid)
    return tid == 0 ? nil : KernelThreadID(Int32(truncatingIfNeeded: tid))
  }

  /// Nobody calls its functions but the program's own code.
  var isAlone: Bool { hck_load32(&arena.base.pointee.sanitizer_hides) != 0 }

  /// There was more than there is room for.
  private(set) var isCut = false

  /// The reports that became complete since the last time. One load while nothing was printed.
  func newReports() -> [SanitizerReport] {
    let offset = hck_load64(&arena.base.pointee.words)
    let size = UInt64(MemoryLayout<hck_words>.size)
    guard offset != 0, offset % 8 == 0, offset <= arena.size, arena.size - offset >= size else {
      return []
    }
    let words = UnsafeRawPointer(arena.base) + Int(offset)
    let header = MemoryLayout<UInt64>.size
    let room = Int(size) - header
    let used = hck_load64(words.assumingMemoryBound(to: UInt64.self))
    isCut = used > UInt64(room)
    let text = UnsafeRawBufferPointer(
      start: words + header + read, count: Int(min(used, UInt64(room))) - read)
    var reports: [SanitizerReport] = []
    var start = 0
    // A line's end is written last, and a byte is 0 before it is written.
    while let end = text[start...].firstIndex(where: { $0 == 0 || $0 == UInt8(ascii: "\n") }),
      text[end] != 0
    {
      let line = String(decoding: text[start..<end], as: UTF8.self)
      if let report = reader.add(line) { reports.append(report) }
      start = end + 1
    }
    read += start
    return reports
  }
}
