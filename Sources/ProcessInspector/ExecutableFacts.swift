/// What the file of a process's program tells.
struct ExecutableFacts {
  private let proc: ProcReader
  private let file: String
  private let header: [UInt8]

  init(_ proc: ProcReader) {
    self.proc = proc
    // The first thread's link is empty once it has ended.
    let others = (proc.list("task") ?? []).reversed().prefix(4).map { "task/\($0)/exe" }
    file = (["exe"] + others).first { proc.link($0) != nil } ?? "exe"
    header = proc.part(of: file, 64) ?? []
  }

  /// A 64-bit program of this machine: system calls are known by number for those alone.
  var isSupported: Bool {
    #if arch(x86_64)
      // ELF, 64 bits, x86-64.
      return header.count == 64 && header.starts(with: [0x7f, 0x45, 0x4c, 0x46, 2])
        && header[18] == 62 && header[19] == 0
    #else
      return false
    #endif
  }

  /// Swift code is in it, by the names of its sections.
  func hasSwift() -> Bool {
    guard isSupported else { return false }
    func number(_ bytes: [UInt8], _ at: Int, _ count: Int) -> UInt64 {
      bytes[at..<(at + count)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    let table = number(header, 40, 8)
    let names = table &+ number(header, 62, 2) &* 64
    guard table != 0, number(header, 58, 2) == 64, let section = proc.part(of: file, at: names, 64),
      case let size = number(section, 32, 8), size > 0, size < 1 << 16,
      let text = proc.part(of: file, at: number(section, 24, 8), Int(size))
    else { return false }
    return text.split(separator: 0).contains { $0.elementsEqual("swift5_reflstr".utf8) }
  }
}
