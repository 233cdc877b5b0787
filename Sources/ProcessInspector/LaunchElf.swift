internal import Glibc

/// The few facts of an ELF file that decide how it will be loaded.
///
/// Every offset and size in the file is taken for a lie until it fits: a hostile file gives `nil`
/// or `isDamaged`, never a trap.
package struct ElfHeader: Sendable, Hashable {
  package var is64Bit: Bool
  /// e_machine; 62 is x86-64, 183 is aarch64.
  package var machine: UInt16
  package var isShared: Bool
  /// PT_INTERP, the dynamic loader.
  package var interpreter: String?
  /// The header or the program headers do not fit the file.
  package var isDamaged = false

  /// Nil where the file does not begin as an ELF file does.
  package init?(read: (_ offset: UInt64, _ count: Int) -> [UInt8]) {
    let head = read(0, 64)
    guard head.count >= 20, head[0...3] == [0x7f, 0x45, 0x4c, 0x46] else { return nil }
    let little = head[5] != 2
    func number(_ bytes: [UInt8], _ offset: Int, _ size: Int) -> UInt64? {
      guard offset >= 0, offset + size <= bytes.count else { return nil }
      let field = bytes[offset..<offset + size]
      return (little ? Array(field.reversed()) : Array(field)).reduce(0) { $0 << 8 | UInt64($1) }
    }
    is64Bit = head[4] == 2
    machine = UInt16(truncatingIfNeeded: number(head, 18, 2) ?? 0)
    isShared = number(head, 16, 2) == 3
    let table = is64Bit ? (32, 8, 54) : (28, 4, 42)
    guard head[4] == 1 || head[4] == 2,
      let start = number(head, table.0, table.1), let size = number(head, table.2, 2),
      let count = number(head, table.2 + 2, 2), size >= (is64Bit ? 56 : 32), count > 0
    else {
      isDamaged = true
      return
    }
    // At most 64 Ki entries of at most 64 KiB each: no product of the two overflows.
    for index in 0..<count {
      let (offset, overflow) = start.addingReportingOverflow(index * size)
      let entry = overflow ? [] : read(offset, is64Bit ? 56 : 32)
      guard entry.count == (is64Bit ? 56 : 32) else {
        isDamaged = true
        return
      }
      guard number(entry, 0, 4) == 3 else { continue }
      let place = is64Bit ? (8, 32, 8) : (4, 16, 4)
      guard let at = number(entry, place.0, place.2), let length = number(entry, place.1, place.2),
        length > 1, length <= UInt64(PATH_MAX)
      else {
        isDamaged = true
        return
      }
      let path = read(at, Int(length))
      isDamaged = path.count != Int(length) || path.last != 0
      interpreter = isDamaged ? nil : String(decoding: path.prefix { $0 != 0 }, as: UTF8.self)
      return
    }
  }

  package init?(fd: Int32) {
    self.init { Files.bytes(of: fd, at: $0, count: $1) }
  }

  /// e_machine of this host; 0 where it is none that hangcheck knows.
  package static var hostMachine: UInt16 {
    switch hostName {
    case "x86_64": 62
    case "aarch64": 183
    default: 0
    }
  }

  package static var hostName: String {
    var name = utsname()
    guard uname(&name) == 0 else { return "" }
    return withUnsafeBytes(of: name.machine) {
      String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
  }

  package var machineName: String {
    let known: [UInt16: String] = [
      3: "x86", 8: "MIPS", 20: "PowerPC", 21: "PowerPC 64", 22: "S/390", 40: "ARM", 62: "x86-64",
      183: "aarch64", 243: "RISC-V",
    ]
    return known[machine] ?? "machine number \(machine)"
  }
}
