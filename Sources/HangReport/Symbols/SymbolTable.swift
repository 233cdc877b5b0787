internal import CElfutils
internal import Glibc

/// The functions of an image by address, from its own symbol table or a separate debug file's.
///
/// libdwfl's look-up scans all symbols each time, 1 to 4 ms in a large image; this sorts them once.
struct SymbolTable {
  struct Entry {
    var address: UInt64
    var size: UInt64
    /// Where the table's own strings lie, and the name's place in them.
    var table: Int32
    var name: UInt32
    /// Which of several names for one address a reader knows best; lower is better.
    var rank: UInt8
  }

  private(set) var entries: [Entry] = []
  private var tables: [(elf: OpaquePointer, strings: Int)] = []
  private static let limit = 4_000_000

  var isEmpty: Bool { entries.isEmpty }

  /// Reads .symtab, or .dynsym where the file was stripped of it.
  init(elf: OpaquePointer, debug: OpaquePointer?) {
    // A debug file keeps .symtab whole; the stripped image keeps .dynsym.
    for candidate in [elf, debug].compactMap({ $0 }) {
      if add(candidate, SHT_SYMTAB) { break }
    }
    if entries.isEmpty { _ = add(elf, SHT_DYNSYM) }
    entries.sort {
      $0.address != $1.address
        ? $0.address < $1.address
        : $0.rank != $1.rank ? $0.rank < $1.rank : $0.size > $1.size
    }
  }

  /// The name of the function that holds an address of the file.
  ///
  /// The nearest symbol below counts only if its size reaches the address: between symbols lies
  /// code that has no name, not more of the symbol before.
  func name(at address: UInt64) -> String? {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].address <= address { low = middle + 1 } else { high = middle }
    }
    var best: Entry?
    var index = low - 1
    // Aliases and functions with inner entry points: a short way back finds what covers.
    let last = max(0, low - 32)
    while index >= last {
      let entry = entries[index]
      if let best, best.address != entry.address { break }
      let covers =
        entry.size > 0
        ? address - entry.address < entry.size
        // Assembly without sizes: only where no sized symbol claims the place.
        : index == low - 1 && address - entry.address < 4096
      if covers, best == nil || entry.rank <= best!.rank { best = entry }
      index -= 1
    }
    return best.flatMap(text)
  }

  /// Whether a symbol of exactly one of these names is defined.
  func defines(_ names: [String]) -> Bool {
    names.contains { name in
      name.withCString { wanted in
        entries.contains { pointer($0).map { strcmp($0, wanted) == 0 } ?? false }
      }
    }
  }

  private func text(_ entry: Entry) -> String? {
    guard let text = pointer(entry) else { return nil }
    let name = String(cString: text)
    // glibc's .symtab has versions in names: pthread_cond_wait@@GLIBC_2.3.2.
    guard let at = name.firstIndex(of: "@"), at != name.startIndex else { return name }
    return String(name[..<at])
  }

  private func pointer(_ entry: Entry) -> UnsafeMutablePointer<CChar>? {
    let table = tables[Int(entry.table)]
    // libelf checks that the string ends inside the section, and keeps it while the file is open.
    return elf_strptr(table.elf, table.strings, Int(entry.name))
  }

  private mutating func add(_ elf: OpaquePointer, _ type: Int32) -> Bool {
    let before = entries.count
    var section: OpaquePointer? = elf_nextscn(elf, nil)
    while let current = section {
      defer { section = elf_nextscn(elf, current) }
      var header = GElf_Shdr()
      guard gelf_getshdr(current, &header) != nil, header.sh_type == UInt32(type),
        header.sh_entsize == 24, let data = elf_getdata(current, nil)
      else { continue }
      tables.append((elf, Int(header.sh_link)))
      let count = min(data.pointee.d_size / 24, Self.limit, Int(Int32.max))
      entries.reserveCapacity(entries.count + count)
      for index in 0..<count {
        var symbol = GElf_Sym()
        guard gelf_getsym(data, Int32(index), &symbol) != nil,
          let entry = Self.entry(symbol, table: tables.count - 1)
        else { continue }
        entries.append(entry)
      }
    }
    return entries.count > before
  }

  private static func entry(_ symbol: GElf_Sym, table: Int) -> Entry? {
    let type = symbol.st_info & 15
    // Functions, indirect functions, and labels of assembly code.
    guard type == 2 || type == 10 || type == 0, symbol.st_shndx != 0, symbol.st_shndx < 0xff00,
      symbol.st_name != 0, symbol.st_value != 0
    else { return nil }
    let binding = symbol.st_info >> 4
    var rank: UInt8 = type == 0 ? 4 : 0
    // Global before weak before local.
    rank += binding == 1 ? 0 : binding == 2 ? 1 : 2
    return Entry(
      address: symbol.st_value, size: symbol.st_size, table: Int32(table), name: symbol.st_name,
      rank: rank)
  }
}
