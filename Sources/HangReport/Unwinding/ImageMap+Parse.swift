extension ImageMap {
  /// The mappings in the text of /proc/PID/maps; lines that are none are left out.
  public static func parse(maps: String) -> [Mapping] {
    maps.utf8.split(separator: UInt8(ascii: "\n")).compactMap { mapping(line: $0) }
  }

  /// "55d0-55d9 r-xp 00002000 08:01 1234      /path with spaces (deleted)"
  private static func mapping(line: Substring.UTF8View) -> Mapping? {
    let fields = line.split(
      separator: UInt8(ascii: " "), maxSplits: 5, omittingEmptySubsequences: true)
    guard fields.count >= 5 else { return nil }
    let range = fields[0].split(separator: UInt8(ascii: "-"))
    let flags = Array(fields[1])
    guard range.count == 2, flags.count == 4,
      let start = UInt64(Substring(range[0]), radix: 16),
      let end = UInt64(Substring(range[1]), radix: 16), start < end,
      let offset = UInt64(Substring(fields[2]), radix: 16),
      let inode = UInt64(Substring(fields[4]))
    else { return nil }
    var path = ""
    if fields.count == 6 {
      path = unescaped(fields[5].drop { $0 == UInt8(ascii: " ") })
      let deleted = " (deleted)"
      if inode != 0, path.hasSuffix(deleted) { path.removeLast(deleted.count) }
    }
    return Mapping(
      start: start, end: end, offset: offset, isWritable: flags[1] == UInt8(ascii: "w"),
      isExecutable: flags[2] == UInt8(ascii: "x"), inode: inode, path: path)
  }

  /// The kernel writes a line feed in a path as \012.
  private static func unescaped(_ text: Substring.UTF8View) -> String {
    var bytes = Array(text)
    while let at = bytes.firstRange(of: [0x5c, 0x30, 0x31, 0x32]) {
      bytes.replaceSubrange(at, with: [0x0a])
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
