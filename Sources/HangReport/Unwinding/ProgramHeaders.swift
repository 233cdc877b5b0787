/// The loadable segments and the unwind table's place, as the head of an ELF image tells them.
///
/// Every value comes from a file or another process and is checked or wraps: a hostile image gives
/// nil or nonsense addresses, never a trap.
struct ProgramHeaders {
  struct Segment {
    var offset: UInt64
    var address: UInt64
    var fileSize: UInt64
    var memorySize: UInt64
    var isExecutable: Bool
  }

  var loads: [Segment] = []
  var ehFrameHeader: Segment?
  /// The headers' own bytes, to tell two builds of a file apart.
  var bytes: [UInt8]
  var notes: [Segment] = []

  /// `read` copies bytes at an offset from the image's first byte; fewer where it ends.
  init?(read: (_ offset: UInt64, _ count: Int) -> [UInt8]) {
    let head = read(0, 64)
    guard head.count == 64, head.starts(with: [0x7f, 0x45, 0x4c, 0x46, 2, 1]),
      head.load(16, as: UInt16.self) == 2 || head.load(16, as: UInt16.self) == 3,
      head.load(18, as: UInt16.self) == 62, head.load(54, as: UInt16.self) == 56
    else { return nil }
    let start = head.load(32, as: UInt64.self)
    let count = Int(head.load(56, as: UInt16.self))
    // Real images have about a dozen.
    guard count > 0, count <= 512, start < 1 << 32 else { return nil }
    let table = read(start, count * 56)
    guard table.count == count * 56 else { return nil }
    bytes = head + table
    for index in 0..<count {
      let at = index * 56
      let segment = Segment(
        offset: table.load(at + 8, as: UInt64.self), address: table.load(at + 16, as: UInt64.self),
        fileSize: table.load(at + 32, as: UInt64.self),
        memorySize: table.load(at + 40, as: UInt64.self),
        isExecutable: table.load(at + 4, as: UInt32.self) & 1 != 0)
      switch table.load(at, as: UInt32.self) {
      case 1: loads.append(segment)
      case 4: notes.append(segment)
      case 0x6474_e550: ehFrameHeader = segment
      default: break
      }
    }
    if loads.isEmpty { return nil }
  }

  /// What is added to the file's addresses when the byte at `offset` is mapped at `start`.
  func loadBias(mappedAt start: UInt64, offset: UInt64) -> UInt64? {
    let page: UInt64 = 4095
    for load in loads where load.offset & ~page <= offset {
      let end = load.offset &+ load.fileSize
      guard end >= load.offset, offset <= end else { continue }
      return start &- (load.address &- load.offset &+ offset)
    }
    return nil
  }
}

extension [UInt8] {
  /// The little-endian value at an offset; 0 where it does not lie wholly inside.
  package func load<T: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as type: T.Type) -> T {
    guard offset >= 0, count - offset >= MemoryLayout<T>.size else { return 0 }
    return withUnsafeBytes { T(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: T.self)) }
  }
}
