internal import CHangcheck

extension LibUnwind {
  /// Searches a made-up table of one function: true if the library understood its description.
  ///
  /// The layout differs between versions and no function tells which one is loaded.
  func findsTestEntry() -> Bool {
    var accessors = hck_unwind_accessors()
    accessors.access_mem = { _, address, value, isWrite, _ in
      guard isWrite == 0, let value, address % 8 == 0,
        let word = Self.testWords[safe: address &- Self.testBase]
      else { return Self.unsupported }
      value.pointee = word
      return 0
    }
    guard let space = create(&accessors, 0) else { return false }
    defer { destroy(space) }
    var table = describe(
      base: Self.testBase, entries: Self.testBase + 16, count: 1,
      textStart: Self.testBase + 0x1000, textEnd: Self.testBase + 0x2000)
    var procedure = hck_unwind_procedure()
    let result = search(space, Self.testBase + 0x1010, &table, &procedure, 0, nil)
    return result >= 0 && procedure.start == Self.testBase + 0x1000
      && procedure.end == Self.testBase + 0x1040
  }

  private static let testBase: UInt64 = 0x10_0000

  /// At 16 the table's one pair; at 32 a common entry, at 56 the function's description.
  private static let testWords: [UInt64] = {
    var bytes = [UInt8](repeating: 0, count: 96)
    func put(_ value: UInt32, at offset: Int) {
      for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index)) }
    }
    put(0x1000, at: 16)
    put(56, at: 20)
    // Length 20, id 0, version 1, "zR", code alignment 1, data alignment -8, return column 16,
    // pointers relative to their place in 4 bytes; CFA = rsp + 8, return address at CFA - 8.
    put(20, at: 32)
    bytes.replaceSubrange(
      40..<56, with: [1, 0x7a, 0x52, 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0])
    // Length 20, back to the common entry, start relative to its place, length 0x40.
    put(20, at: 56)
    put(60 - 32, at: 60)
    put(0x1000 - 64, at: 64)
    put(0x40, at: 68)
    return (0..<12).map { bytes.load($0 * 8, as: UInt64.self) }
  }()
}

extension [UInt64] {
  fileprivate subscript(safe offset: UInt64) -> UInt64? {
    offset / 8 < UInt64(count) ? self[Int(offset / 8)] : nil
  }
}
