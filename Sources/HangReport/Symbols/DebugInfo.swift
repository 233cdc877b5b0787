internal import CElfutils

/// Where code came from, by address in the file.
///
/// Swift writes no .debug_aranges and nests functions in modules, so libdw's own look-ups find
/// nothing: the units' ranges are indexed at once, a unit's functions when first asked for.
final class DebugInfo {
  /// A place in a source file.
  struct Place {
    var file: String?
    var line: Int?
    var column: Int?
  }

  /// One function at an address, inlined ones first.
  struct Scope {
    /// As the linker knows it, where the compiler wrote it; else the plain name.
    var name: String?
    var place: Place
    var isInlined: Bool
  }

  struct Range {
    var low: UInt64
    var high: UInt64
    var index: Int
  }

  private let owner: ElfImage
  private var units: [Dwarf_Die] = []
  private var unitRanges: [Range] = []
  private var functions: [Int: Functions] = [:]

  struct Functions {
    var dies: [Dwarf_Die] = []
    var ranges: [Range] = []
  }

  init?(_ image: ElfImage) {
    guard let dwarf = image.dwarf else { return nil }
    owner = image
    var offset: Dwarf_Off = 0
    var next: Dwarf_Off = 0
    var headerSize = 0
    while dwarf_nextcu(dwarf, offset, &next, &headerSize, nil, nil, nil) == 0, next > offset {
      var die = Dwarf_Die()
      if dwarf_offdie(dwarf, offset &+ UInt64(headerSize), &die) != nil {
        Self.appendRanges(of: &die, index: units.count, to: &unitRanges)
        units.append(die)
      }
      offset = next
    }
    unitRanges.sort { $0.low < $1.low }
    if units.isEmpty { return nil }
  }

  /// The functions at an address, innermost first; empty where no unit claims it.
  func scopes(at address: UInt64) -> [Scope] {
    guard let unit = Self.find(address, in: unitRanges) else { return [] }
    let place = linePlace(at: address, unit: unit)
    guard var function = function(at: address, unit: unit) else {
      return [Scope(name: nil, place: place, isInlined: false)]
    }
    // From the outermost inwards; each call site is the place in the function around it.
    var chain = [function]
    Self.appendInlined(at: address, of: &function, to: &chain)
    var scopes: [Scope] = []
    var current = place
    for index in chain.indices.reversed() {
      scopes.append(
        Scope(name: Self.name(of: &chain[index]), place: current, isInlined: index > 0))
      if index > 0 { current = callPlace(of: &chain[index], unit: unit) }
    }
    return scopes
  }

  /// The code that units claim, in ascending order.
  var codeRanges: [Swift.Range<UInt64>] { unitRanges.map { $0.low..<$0.high } }

  private func linePlace(at address: UInt64, unit: Int) -> Place {
    guard let row = dwarf_getsrc_die(&units[unit], address) else { return Place() }
    var line: Int32 = 0
    var column: Int32 = 0
    _ = dwarf_lineno(row, &line)
    _ = dwarf_linecol(row, &column)
    let file = dwarf_linesrc(row, nil, nil).map { String(cString: $0) }
    return makePlace(file, line: Int(line), column: Int(column), unit: unit)
  }

  private func callPlace(of die: inout Dwarf_Die, unit: Int) -> Place {
    let index = Self.number(&die, DW_AT_call_file)
    var files: OpaquePointer?
    var count = 0
    var file: String?
    if let index, dwarf_getsrcfiles(&units[unit], &files, &count) == 0, index < count {
      file = dwarf_filesrc(files, index, nil, nil).map { String(cString: $0) }
    }
    return makePlace(
      file, line: Self.number(&die, DW_AT_call_line) ?? 0,
      column: Self.number(&die, DW_AT_call_column) ?? 0, unit: unit)
  }

  /// Line 0 and the file "<compiler-generated>" say that no line of source made the code.
  private func makePlace(_ file: String?, line: Int, column: Int, unit: Int) -> Place {
    guard let file, !file.hasSuffix("<compiler-generated>"), file != "???" else { return Place() }
    var path = file
    if !path.hasPrefix("/") {
      var attribute = Dwarf_Attribute()
      if dwarf_attr(&units[unit], UInt32(DW_AT_comp_dir), &attribute) != nil,
        let folder = dwarf_formstring(&attribute), folder.pointee == UInt8(ascii: "/")
      {
        path = String(cString: folder) + "/" + path
      }
    }
    return Place(
      file: Self.normalized(path), line: line > 0 ? line : nil,
      column: line > 0 && column > 0 ? column : nil)
  }

  /// Without "." and ".." parts; symbolic links are left alone.
  static func normalized(_ path: String) -> String {
    guard path.hasPrefix("/"), path.contains("/.") || path.contains("//") else { return path }
    var parts: [Substring] = []
    for part in path.split(separator: "/") where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.joined(separator: "/")
  }

  /// The narrowest range that holds an address.
  static func find(_ address: UInt64, in ranges: [Range]) -> Int? {
    var low = 0
    var high = ranges.count
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].low <= address { low = middle + 1 } else { high = middle }
    }
    var best: Range?
    // Ranges hardly ever nest: a short way back is enough.
    for index in stride(from: low - 1, through: max(0, low - 16), by: -1) {
      let range = ranges[index]
      guard address < range.high else { continue }
      if best == nil || range.high - range.low < best!.high - best!.low { best = range }
    }
    return best?.index
  }

  private func function(at address: UInt64, unit: Int) -> Dwarf_Die? {
    let known = functions[unit] ?? Self.functions(of: &units[unit])
    functions[unit] = known
    return Self.find(address, in: known.ranges).map { known.dies[$0] }
  }
}
