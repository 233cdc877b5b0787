internal import CElfutils

/// Where an image keeps the variables and functions that a reader of its memory asks for by name.
package struct ImageSymbols {
  /// A symbol as the file has it: its address before the load bias is added, or its offset in the
  /// image's thread-local block.
  package struct Symbol: Hashable, Sendable {
    package var value: UInt64
    package var size: UInt64
    package var isThreadLocal: Bool
  }

  package private(set) var symbols: [String: Symbol] = [:]
  /// Further ones of the same names: libc keeps old versions of functions beside new ones.
  package private(set) var others: [(name: String, symbol: Symbol)] = []
  /// The words that the loader fills with the image's own number among those with thread-local
  /// storage; addresses of the file.
  package private(set) var moduleSlots: [UInt64] = []

  /// Looks for `names` in .symtab, .dynsym and a separate debug file; one pass over each table.
  package init?(_ names: Set<String>, in image: ImageMap.Image, of images: ImageMap) {
    guard let file = images.open(image).file,
      let elf = file.duplicateDescriptor().flatMap({
        ElfImage(descriptor: $0, path: file.path)
      })
    else { return nil }
    let wanted = Dictionary(grouping: names) { $0.utf8.count }
    scan(elf.elf, wanted)
    if symbols.count < names.count,
      let debug = ElfImage.debugFile(of: elf, path: image.path, root: images.root)
    {
      scan(debug.elf, wanted)
    }
  }

  private mutating func scan(_ elf: OpaquePointer, _ wanted: [Int: [String]]) {
    var section: OpaquePointer? = elf_nextscn(elf, nil)
    while let current = section {
      defer { section = elf_nextscn(elf, current) }
      var header = GElf_Shdr()
      guard gelf_getshdr(current, &header) != nil else { continue }
      switch Int32(header.sh_type) {
      case SHT_SYMTAB, SHT_DYNSYM: addSymbols(elf, current, header, wanted)
      case SHT_RELA: addModuleSlots(elf, current, header)
      default: break
      }
    }
  }

  private mutating func addSymbols(
    _ elf: OpaquePointer, _ section: OpaquePointer, _ header: GElf_Shdr, _ wanted: [Int: [String]]
  ) {
    guard header.sh_entsize == 24, let data = elf_getdata(section, nil),
      let strings = elf_getscn(elf, Int(header.sh_link)),
      let text = elf_getdata(strings, nil),
      // Nil where a debug file keeps a section's header alone.
      let tableStart = data.pointee.d_buf, let textStart = text.pointee.d_buf
    else { return }
    // libelf owns both while the file is open.
    let table = UnsafeRawBufferPointer(start: tableStart, count: data.pointee.d_size)
    let names = UnsafeRawBufferPointer(start: textStart, count: text.pointee.d_size)
    var begins = [Bool](repeating: false, count: 256)
    for name in wanted.values.joined() { begins[Int(name.utf8.first ?? 0)] = true }
    for at in stride(from: 0, to: table.count - 23, by: 24) {
      let section = table.loadUnaligned(fromByteOffset: at + 6, as: UInt16.self)
      let start = Int(table.loadUnaligned(fromByteOffset: at, as: UInt32.self))
      // Most symbols end here.
      guard section != 0, start < names.count, begins[Int(names[start])] else { continue }
      // The longest name asked for has fewer bytes; of a versioned one "@" ends the name.
      var length = 0
      while start + length < names.count, length < 128, names[start + length] != 0,
        names[start + length] != UInt8(ascii: "@")
      { length += 1 }
      guard let candidates = wanted[length] else { continue }
      let bytes = UnsafeRawBufferPointer(rebasing: names[start..<(start + length)])
      guard let name = candidates.first(where: { $0.utf8.elementsEqual(bytes) }) else { continue }
      let symbol = Symbol(
        value: table.loadUnaligned(fromByteOffset: at + 8, as: UInt64.self),
        size: table.loadUnaligned(fromByteOffset: at + 16, as: UInt64.self),
        isThreadLocal: table[at + 4] & 15 == 6)
      if let known = symbols[name] {
        if known.value != symbol.value { others.append((name, symbol)) }
      } else {
        symbols[name] = symbol
      }
    }
  }

  private mutating func addModuleSlots(
    _ elf: OpaquePointer, _ section: OpaquePointer, _ header: GElf_Shdr
  ) {
    guard header.sh_entsize == 24, let data = elf_getdata(section, nil),
      let tableStart = data.pointee.d_buf
    else { return }
    let symbols = elf_getscn(elf, Int(header.sh_link)).flatMap { elf_getdata($0, nil) }
    let table = UnsafeRawBufferPointer(start: tableStart, count: data.pointee.d_size)
    for at in stride(from: 0, to: table.count - 23, by: 24) {
      let info = table.loadUnaligned(fromByteOffset: at + 8, as: UInt64.self)
      // R_X86_64_DTPMOD64; without a symbol, or with one of this image, it is the image itself.
      guard info & 0xffff_ffff == 16 else { continue }
      let index = Int32(truncatingIfNeeded: info >> 32)
      if index != 0 {
        var symbol = GElf_Sym()
        guard let symbols, gelf_getsym(symbols, index, &symbol) != nil, symbol.st_shndx != 0 else {
          continue
        }
      }
      moduleSlots.append(table.loadUnaligned(fromByteOffset: at, as: UInt64.self))
    }
  }
}

extension ImageMap {
  /// Every binary in memory, in ascending order.
  package var loaded: [Image] { images }
}
