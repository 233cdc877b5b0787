internal import Glibc
internal import HangReport

/// What the notes of a core file tell: threads with their registers, mapped files, how it ended.
///
/// Laid out as the kernel lays out `elf_prstatus`, `elf_prpsinfo` and NT_FILE on x86-64, and gdb
/// after it. Every value is checked: a damaged note is left out.
struct CoreNotes {
  /// A thread, as the kernel or a debugger stood it still.
  struct Thread: Sendable {
    var tid: KernelThreadID
    /// In the kernel's order: `user_regs_struct`.
    var registers: [UInt64]
    /// The signal that was being delivered; 0 for none.
    var signal: Int32
  }
  /// A range of memory that a file is mapped to.
  struct File: Sendable {
    var range: Range<UInt64>
    /// In bytes, of the range's beginning in the file.
    var offset: UInt64
    var path: String
  }

  private(set) var threads: [Thread] = []
  private(set) var files: [File] = []
  /// The auxiliary vector, by the keys of <elf.h>.
  private(set) var auxiliary: [UInt64: UInt64] = [:]
  private(set) var pid: Int32?
  /// The kernel's short name of the program, and its arguments, of which it keeps 80 bytes.
  private(set) var name = ""
  private(set) var arguments: [String] = []

  private static let mostThreads = 1 << 16
  private static let mostFiles = 1 << 17
  private static let largest = 1 << 26
  /// How many notes and bytes are read in all: a hostile file may say anything.
  private var notesLeft = 1 << 19
  private var bytesLeft = 1 << 28

  /// `read` copies bytes at an offset in the file; fewer where it ends.
  mutating func add(
    _ segment: Range<UInt64>, _ read: (_ offset: UInt64, _ count: Int) -> [UInt8]
  ) {
    var at = segment.lowerBound
    while notesLeft > 0, segment.upperBound &- at >= 12 {
      notesLeft -= 1
      let head = read(at, 32)
      guard head.count >= 12 else { return }
      let nameSize = UInt64(head.load(0, as: UInt32.self))
      let size = UInt64(head.load(4, as: UInt32.self))
      let start = at + 12 + (nameSize + 3) & ~3
      let end = start + size
      guard nameSize <= 64, start <= segment.upperBound, end <= segment.upperBound else { return }
      if head[12...].starts(with: Array("CORE\0".utf8)), size <= UInt64(Self.largest) {
        var taken = 0
        let limit = min(Int(size), bytesLeft)
        add(type: head.load(8, as: UInt32.self)) { most in
          taken = min(limit, most)
          return read(start, taken)
        }
        bytesLeft -= taken
      }
      at = end + (4 - size % 4) % 4
    }
  }

  private mutating func add(type: UInt32, _ bytes: (_ most: Int) -> [UInt8]) {
    switch type {
    case 1: addThread(bytes(336))
    case 3: addProcess(bytes(136))
    case 6:
      let words = bytes(4096)
      for at in stride(from: 0, to: words.count - 15, by: 16) {
        let key = words.load(at, as: UInt64.self)
        if key == 0 { break }
        auxiliary[key] = words.load(at + 8, as: UInt64.self)
      }
    case 0x4649_4c45: addFiles(bytes(Self.largest))
    default: break
    }
  }

  private mutating func addThread(_ bytes: [UInt8]) {
    guard bytes.count >= 328, threads.count < Self.mostThreads else { return }
    let tid = bytes.load(32, as: Int32.self)
    guard tid > 0, tid <= KernelThreadID.most else { return }
    threads.append(
      Thread(
        tid: KernelThreadID(tid),
        registers: (0..<27).map { bytes.load(112 + 8 * $0, as: UInt64.self) },
        signal: Int32(bytes.load(12, as: Int16.self))))
  }

  private mutating func addProcess(_ bytes: [UInt8]) {
    guard bytes.count >= 136, pid == nil else { return }
    let number = bytes.load(24, as: Int32.self)
    if number > 0, number <= KernelThreadID.most { pid = number }
    func text(_ range: Range<Int>) -> String {
      String(decoding: bytes[range].prefix { $0 != 0 }, as: UTF8.self)
    }
    name = text(40..<56)
    arguments = text(56..<136).split(separator: " ").map(String.init)
  }

  private mutating func addFiles(_ bytes: [UInt8]) {
    let count = bytes.load(0, as: UInt64.self)
    let page = bytes.load(8, as: UInt64.self)
    guard bytes.count >= 16, count <= UInt64(Self.mostFiles), page <= 1 << 30,
      bytes.count >= 16 + 24 * Int(count)
    else { return }
    var names = bytes[(16 + 24 * Int(count))...]
    for index in 0..<Int(count) {
      guard let end = names.firstIndex(of: 0) else { return }
      var path = String(decoding: names[..<end], as: UTF8.self)
      names = names[(end + 1)...]
      let deleted = " (deleted)"
      if path.hasSuffix(deleted) { path.removeLast(deleted.count) }
      let at = 16 + 24 * index
      let start = bytes.load(at, as: UInt64.self)
      let last = bytes.load(at + 8, as: UInt64.self)
      let (offset, isTooLarge) = bytes.load(at + 16, as: UInt64.self)
        .multipliedReportingOverflow(by: page)
      guard start < last, last <= CoreFile.highest, !isTooLarge, offset < 1 << 62 else { continue }
      files.append(File(range: start..<last, offset: offset, path: path))
    }
  }
}
