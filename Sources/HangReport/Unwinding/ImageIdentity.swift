/// What tells one build of a binary from another one.
package struct ImageIdentity: Sendable, Hashable {
  /// The ELF header and the program headers.
  package var headers: [UInt8]
  /// The linker's, in hexadecimal digits; nil where there is none or it cannot be read.
  package var buildID: String?
  /// Where in the file code lies.
  package var code: [Range<UInt64>]

  /// `read` copies bytes at an offset from the image's first byte; fewer where it ends. Nil where
  /// no binary of this machine begins.
  package init?(read: (_ offset: UInt64, _ count: Int) -> [UInt8]) {
    guard let parsed = ProgramHeaders(read: read) else { return nil }
    headers = parsed.bytes
    code = parsed.loads.filter { $0.isExecutable && $0.fileSize <= .max - $0.offset }
      .map { $0.offset..<($0.offset + $0.fileSize) }
    for note in parsed.notes where buildID == nil { buildID = Self.buildID(in: note, read) }
  }

  /// Of a file.
  package init?(path: String) {
    guard let file = ImageFile(path: path) else { return nil }
    self.init(read: file.read)
  }

  /// Whether both can be the same build: their headers are equal, and their build ids where both
  /// are known.
  package func matches(_ other: ImageIdentity) -> Bool {
    guard headers == other.headers else { return false }
    guard let buildID, let id = other.buildID else { return true }
    return buildID == id
  }

  private static func buildID(
    in segment: ProgramHeaders.Segment, _ read: (UInt64, Int) -> [UInt8]
  ) -> String? {
    let bytes = read(segment.offset, Int(min(segment.fileSize, 4096)))
    var at = 0
    while at + 12 <= bytes.count {
      let nameSize = Int(bytes.load(at, as: UInt32.self))
      let size = Int(bytes.load(at + 4, as: UInt32.self))
      let start = at + 12 + (nameSize + 3) & ~3
      guard nameSize <= 4096, size <= 4096, start + size <= bytes.count else { return nil }
      // NT_GNU_BUILD_ID
      if bytes.load(at + 8, as: UInt32.self) == 3,
        bytes[(at + 12)...].starts(with: Array("GNU\0".utf8)),
        size > 1
      {
        return bytes[start..<(start + size)].map { byte in
          let digits = String(byte, radix: 16)
          return digits.count == 1 ? "0" + digits : digits
        }.joined()
      }
      at = start + (size + 3) & ~3
    }
    return nil
  }
}
