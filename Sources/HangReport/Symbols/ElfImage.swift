internal import CElfutils
internal import Glibc

/// An ELF file open in libelf, and its DWARF where it has any.
final class ElfImage {
  let elf: OpaquePointer
  let path: String
  private let descriptor: Int32
  /// An image that is in memory alone; libelf points into it.
  private let bytes: UnsafeMutableRawBufferPointer?
  private var dwarfState: OpaquePointer??

  /// Takes the descriptor over.
  init?(descriptor: Int32, path: String) {
    elf_version(UInt32(EV_CURRENT))
    // Not mapped: a file that shrinks under a mapping would end the reader with SIGBUS.
    guard let elf = elf_begin(descriptor, ELF_C_READ, nil), elf_kind(elf) == ELF_K_ELF,
      gelf_getclass(elf) == Int32(ELFCLASS64)
    else {
      close(descriptor)
      return nil
    }
    self.elf = elf
    self.path = path
    self.descriptor = descriptor
    bytes = nil
  }

  /// Opens a copy of an image that has no file, like the kernel's.
  init?(bytes source: [UInt8], path: String) {
    elf_version(UInt32(EV_CURRENT))
    // Freed in deinit, after libelf let go of it.
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: source.count, alignment: 16)
    bytes.copyBytes(from: source)
    guard let start = bytes.bindMemory(to: CChar.self).baseAddress,
      let elf = elf_memory(start, bytes.count), elf_kind(elf) == ELF_K_ELF,
      gelf_getclass(elf) == Int32(ELFCLASS64)
    else {
      bytes.deallocate()
      return nil
    }
    self.elf = elf
    self.path = path
    self.bytes = bytes
    descriptor = -1
  }

  convenience init?(path: String) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    self.init(descriptor: descriptor, path: path)
  }

  deinit {
    if let dwarf = dwarfState ?? nil { dwarf_end(dwarf) }
    elf_end(elf)
    if descriptor >= 0 { close(descriptor) }
    bytes?.deallocate()
  }

  /// libdw's handle; nil where there is no .debug_info.
  var dwarf: OpaquePointer? {
    if let known = dwarfState { return known }
    let dwarf = hasDebugInfo ? dwarf_begin_elf(elf, DWARF_C_READ, nil) : nil
    dwarfState = .some(dwarf)
    return dwarf
  }

  var hasDebugInfo: Bool {
    var names = 0
    guard elf_getshdrstrndx(elf, &names) == 0 else { return false }
    var section: OpaquePointer? = elf_nextscn(elf, nil)
    while let current = section {
      defer { section = elf_nextscn(elf, current) }
      var header = GElf_Shdr()
      guard gelf_getshdr(current, &header) != nil, header.sh_type != UInt32(SHT_NOBITS),
        let name = elf_strptr(elf, names, Int(header.sh_name))
      else { continue }
      if strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0 { return true }
    }
    return false
  }

  var buildID: [UInt8]? {
    var bytes: UnsafeRawPointer?
    let count = dwelf_elf_gnu_build_id(elf, &bytes)
    guard count > 1, count <= 64, let bytes else { return nil }
    // libelf owns these bytes while the file is open; they are copied at once.
    return [UInt8](UnsafeRawBufferPointer(start: bytes, count: count))
  }

  /// The name and checksum in .gnu_debuglink.
  var debugLink: (name: String, checksum: UInt32)? {
    var checksum: GElf_Word = 0
    guard let name = dwelf_elf_gnu_debuglink(elf, &checksum) else { return nil }
    let text = String(cString: name)
    return text.isEmpty || text.contains("/") ? nil : (text, checksum)
  }
}

extension ElfImage {
  /// The separate debug file of a stripped image, as gdb looks for it.
  static func debugFile(of image: ElfImage, path: String, root: String) -> ElfImage? {
    let buildID = image.buildID
    let roots = root.isEmpty ? [""] : [root, ""]
    if let buildID {
      let hex = buildID.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
      let file = "/usr/lib/debug/.build-id/\(hex[0])/\(hex.dropFirst().joined()).debug"
      for root in roots {
        if let found = ElfImage(path: root + file), found.buildID == buildID { return found }
      }
    }
    guard let link = image.debugLink else { return nil }
    let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    for place in ["\(folder)/", "\(folder)/.debug/", "/usr/lib/debug\(folder)/"] {
      for root in roots where place + link.name != path {
        guard let found = ElfImage(path: root + place + link.name) else { continue }
        if let buildID, let other = found.buildID {
          if buildID == other { return found }
        } else if checksum(ofFile: found.path) == link.checksum {
          return found
        }
      }
    }
    return nil
  }

  /// The CRC-32 that a debug link names.
  private static func checksum(ofFile path: String) -> UInt32? {
    guard let file = ImageFile(path: path), file.size < 1 << 31 else { return nil }
    let polynomial: UInt32 = 0xedb8_8320
    let table = (UInt32(0)..<256).map { value in
      var sum = value
      for _ in 0..<8 { sum = sum & 1 != 0 ? (sum >> 1) ^ polynomial : sum >> 1 }
      return sum
    }
    var sum = UInt32.max
    var offset: UInt64 = 0
    while offset < file.size {
      let block = file.read(offset, 1 << 14)
      if block.isEmpty { return nil }
      for byte in block { sum = table[Int((sum ^ UInt32(byte)) & 0xff)] ^ (sum >> 8) }
      offset += UInt64(block.count)
    }
    return ~sum
  }
}
