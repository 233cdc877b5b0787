internal import CElfutils

// Walks over debugging information entries. Depth and counts are bounded: a hostile file may nest
// without end, though not loop, since children lie behind their parent.
extension DebugInfo {
  private static let depthLimit = 200
  private static let rangeLimit = 100_000

  static func appendRanges(of die: inout Dwarf_Die, index: Int, to ranges: inout [Range]) {
    var offset = 0
    var base: Dwarf_Addr = 0
    var low: Dwarf_Addr = 0
    var high: Dwarf_Addr = 0
    var count = 0
    while count < rangeLimit {
      let next = dwarf_ranges(&die, offset, &base, &low, &high)
      if next <= 0 { return }
      offset = next
      count += 1
      // The linker leaves functions it dropped at 0 or 1.
      if low > 1, low < high { ranges.append(Range(low: low, high: high, index: index)) }
    }
  }

  /// All functions with code in a unit; Swift nests them in modules and types, closures in
  /// functions.
  static func functions(of unit: inout Dwarf_Die) -> Functions {
    var result = Functions()
    var pending: [(die: Dwarf_Die, depth: Int)] = [(unit, 0)]
    while let (entry, depth) = pending.popLast() {
      var parent = entry
      var child = Dwarf_Die()
      guard depth < depthLimit, dwarf_child(&parent, &child) == 0 else { continue }
      while true {
        switch Int(dwarf_tag(&child)) {
        case DW_TAG_subprogram:
          let before = result.ranges.count
          appendRanges(of: &child, index: result.dies.count, to: &result.ranges)
          if result.ranges.count > before { result.dies.append(child) }
          pending.append((child, depth + 1))
        case DW_TAG_module, DW_TAG_namespace, DW_TAG_structure_type, DW_TAG_class_type,
          DW_TAG_enumeration_type, DW_TAG_union_type, DW_TAG_interface_type,
          DW_TAG_lexical_block:
          pending.append((child, depth + 1))
        default: break
        }
        var sibling = Dwarf_Die()
        guard dwarf_siblingof(&child, &sibling) == 0 else { break }
        child = sibling
      }
    }
    result.ranges.sort { $0.low < $1.low }
    return result
  }

  /// The calls inlined at an address, from the outermost inwards.
  static func appendInlined(
    at address: UInt64, of function: inout Dwarf_Die, to chain: inout [Dwarf_Die]
  ) {
    var parent = function
    for _ in 0..<depthLimit {
      var child = Dwarf_Die()
      guard dwarf_child(&parent, &child) == 0 else { return }
      var inner: Dwarf_Die?
      while true {
        let tag = Int(dwarf_tag(&child))
        if tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block,
          dwarf_haspc(&child, address) > 0
        {
          if tag == DW_TAG_inlined_subroutine { chain.append(child) }
          inner = child
          break
        }
        var sibling = Dwarf_Die()
        guard dwarf_siblingof(&child, &sibling) == 0 else { break }
        child = sibling
      }
      guard let inner else { return }
      parent = inner
    }
  }

  static func name(of die: inout Dwarf_Die) -> String? {
    for name in [DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name] {
      var attribute = Dwarf_Attribute()
      if dwarf_attr_integrate(&die, UInt32(name), &attribute) != nil,
        let text = dwarf_formstring(&attribute)
      {
        return String(cString: text)
      }
    }
    return nil
  }

  static func number(_ die: inout Dwarf_Die, _ name: Int) -> Int? {
    var attribute = Dwarf_Attribute()
    var value: Dwarf_Word = 0
    guard dwarf_attr(&die, UInt32(name), &attribute) != nil,
      dwarf_formudata(&attribute, &value) == 0
    else { return nil }
    return Int(exactly: value)
  }
}
