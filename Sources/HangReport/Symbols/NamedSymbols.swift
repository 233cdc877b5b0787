internal import CElfutils
internal import Glibc

/// Looks symbols of a process's images up by name, those of data and of thread-locals too, which a
/// `Symbolizer` leaves out.
///
/// Reads the whole symbol table once for each question: ask for all names at a time. Confined to
/// one thread, like its `ImageMap`.
public struct NamedSymbols {
  /// A symbol where the process has it.
  public struct Symbol: Sendable, Hashable {
    /// In the process; of a thread-local its offset in the image's block.
    public var address: UInt64
    /// In bytes; 0 where the linker did not know.
    public var size: UInt64
    /// Whether the address is an offset in each thread's block.
    public var isThreadLocal: Bool
  }

  /// The block of an image's thread-locals, which each thread has its own of.
  public struct ThreadLocals: Sendable, Hashable {
    /// How large the block is in the file's words, and on what it is aligned.
    public var size: UInt64
    public var alignment: UInt64
    /// Where the dynamic linker wrote the image's number among those with thread-locals; nil where
    /// the image needs none, like a program itself.
    public var moduleWord: UInt64?
  }

  private let images: ImageMap

  /// Looks in these images; nothing is opened yet.
  public init(images: ImageMap) {
    self.images = images
  }

  /// Every symbol of an image whose name contains one of some texts; of several of one name the
  /// first.
  ///
  /// Takes .symtab, or .dynsym where the file was stripped of it.
  public func find(
    in image: ImageMap.Image, containing parts: [String]
  ) -> [String: Symbol] {
    guard let elf = open(image), let bias = images.loadBias(of: image) else { return [:] }
    let debug =
      Self.hasSection(elf, SHT_SYMTAB)
      ? nil : ElfImage.debugFile(of: elf, path: image.path, root: images.root)
    for (file, type) in [(elf, SHT_SYMTAB), (debug, SHT_SYMTAB), (elf, SHT_DYNSYM)] {
      guard let file, Self.hasSection(file, type) else { continue }
      return Self.symbols(file, type, bias: bias, containing: parts)
    }
    return [:]
  }

  /// What is known of an image's thread-locals; nil where it has none.
  public func threadLocals(of image: ImageMap.Image) -> ThreadLocals? {
    guard let elf = open(image), let bias = images.loadBias(of: image) else { return nil }
    defer { withExtendedLifetime(elf) {} }
    var count = 0
    guard elf_getphdrnum(elf.elf, &count) == 0 else { return nil }
    for index in 0..<min(count, 512) {
      var header = GElf_Phdr()
      guard gelf_getphdr(elf.elf, Int32(index), &header) != nil, header.p_type == UInt32(PT_TLS)
      else { continue }
      return ThreadLocals(
        size: header.p_memsz, alignment: max(1, header.p_align),
        moduleWord: Self.moduleWord(elf).map { $0 &+ bias })
    }
    return nil
  }

  private func open(_ image: ImageMap.Image) -> ElfImage? {
    guard let file = images.open(image).file else { return nil }
    // libelf moves the offset of its descriptor, which only it uses, and closes its copy.
    return file.duplicateDescriptor().flatMap { ElfImage(descriptor: $0, path: file.path) }
  }

  private static func symbols(
    _ file: ElfImage, _ type: Int32, bias: UInt64, containing parts: [String]
  ) -> [String: Symbol] {
    var result: [String: Symbol] = [:]
    // C strings on both sides: a program that the runtime is part of has 100 000 symbols.
    let wanted = parts.map { $0.utf8CString }
    sections(file, type) { header, data in
      for index in 0..<min(data.pointee.d_size / 24, 4_000_000) {
        var symbol = GElf_Sym()
        guard gelf_getsym(data, Int32(index), &symbol) != nil, symbol.st_shndx != 0,
          symbol.st_shndx < 0xff00, symbol.st_name != 0,
          // libelf checks that the string ends inside the section.
          let text = elf_strptr(file.elf, Int(header.sh_link), Int(symbol.st_name)),
          wanted.contains(where: { part in
            part.withUnsafeBufferPointer { buffer in
              buffer.baseAddress.map { strstr(text, $0) != nil } ?? false
            }
          })
        else { continue }
        let name = String(cString: text)
        guard result[name] == nil else { continue }
        let isThreadLocal = symbol.st_info & 15 == 6
        result[name] = Symbol(
          address: isThreadLocal ? symbol.st_value : symbol.st_value &+ bias,
          size: symbol.st_size, isThreadLocal: isThreadLocal)
      }
    }
    return result
  }

  /// The place of the relocation that asks for the image's own module number.
  private static func moduleWord(_ file: ElfImage) -> UInt64? {
    var result: UInt64?
    sections(file, SHT_RELA) { _, data in
      for index in 0..<min(data.pointee.d_size / 24, 4_000_000) where result == nil {
        var entry = GElf_Rela()
        guard gelf_getrela(data, Int32(index), &entry) != nil else { continue }
        // R_X86_64_DTPMOD64 without a symbol: the image itself.
        if entry.r_info == 16 { result = entry.r_offset }
      }
    }
    return result
  }

  private static func hasSection(_ file: ElfImage, _ type: Int32) -> Bool {
    var found = false
    sections(file, type) { _, _ in found = true }
    return found
  }

  private static func sections(
    _ file: ElfImage, _ type: Int32, _ body: (GElf_Shdr, UnsafeMutablePointer<Elf_Data>) -> Void
  ) {
    // libelf's handle goes with the file.
    withExtendedLifetime(file) { visit(file.elf, type, body) }
  }

  private static func visit(
    _ elf: OpaquePointer, _ type: Int32,
    _ body: (GElf_Shdr, UnsafeMutablePointer<Elf_Data>) -> Void
  ) {
    var section: OpaquePointer? = elf_nextscn(elf, nil)
    while let current = section {
      defer { section = elf_nextscn(elf, current) }
      var header = GElf_Shdr()
      guard gelf_getshdr(current, &header) != nil, header.sh_type == UInt32(type),
        header.sh_entsize == 24, let data = elf_getdata(current, nil)
      else { continue }
      body(header, data)
    }
  }
}

extension ImageMap {
  /// The images whose path ends in a name that `isWanted` says yes to, in ascending order.
  public func images(named isWanted: (Substring) -> Bool) -> [Image] {
    images.filter { image in
      isWanted(image.path.split(separator: "/").last ?? "")
    }
  }
}
