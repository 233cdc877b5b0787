internal import Glibc
internal import HangReport

/// The bytes of an open file, which may be shorter than it says. The descriptor is somebody else's.
struct CoreBytes: Sendable {
  let descriptor: Int32
  let size: UInt64

  /// Fewer where the file ends.
  func read(_ offset: UInt64, _ count: Int) -> [UInt8] {
    guard offset < size, count > 0 else { return [] }
    let count = Int(min(UInt64(count), size - offset))
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = read(offset, into: UnsafeMutableRawBufferPointer(buffer))
    }
  }

  func read(_ offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard offset < 1 << 62 else { return 0 }
    var filled = 0
    while filled < buffer.count {
      let got = pread(
        descriptor, buffer.baseAddress.map { $0 + filled }, buffer.count - filled,
        off_t(offset) + off_t(filled))
      if got < 0 && errno == EINTR { continue }
      if got <= 0 { break }
      filled += got
    }
    return filled
  }
}

/// The memory that is in a core file itself.
struct CoreMemory: Sendable {
  /// A piece of memory, and how much of it is in the file.
  struct Segment: Sendable {
    var start: UInt64, end: UInt64
    var offset: UInt64
    var fileSize: UInt64
    var flags: UInt32
  }

  /// In ascending order; none overlaps another one.
  let segments: [Segment]
  let bytes: CoreBytes

  /// The segment that holds an address.
  func segment(at address: UInt64) -> Segment? {
    var low = 0
    var high = segments.count
    while low < high {
      let middle = (low + high) / 2
      if segments[middle].start <= address { low = middle + 1 } else { high = middle }
    }
    return low > 0 && address < segments[low - 1].end ? segments[low - 1] : nil
  }

  /// What of one segment is there, from an address on; 0 where nothing is.
  func read(_ address: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let segment = segment(at: address), address - segment.start < segment.fileSize else {
      return 0
    }
    let within = address - segment.start
    let count = Int(min(UInt64(buffer.count), segment.fileSize - within))
    return bytes.read(
      segment.offset &+ within, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
  }

  /// Fewer where the segment or the file ends.
  func bytes(_ address: UInt64, _ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = read(address, into: UnsafeMutableRawBufferPointer(buffer))
    }
  }
}

/// The head of a core file: where its notes and its memory lie.
struct CoreHeader {
  private(set) var segments: [CoreMemory.Segment] = []
  private(set) var notes: [Range<UInt64>] = []
  private(set) var limits: [String] = []
  private(set) var isCutShort = false
  let bytes: CoreBytes

  private static let mostSegments: UInt64 = 1 << 18

  init(path: String, _ bytes: CoreBytes) throws(InputError) {
    self.bytes = bytes
    func refuse(_ why: String) -> InputError { InputError(message: "\(path): \(why)") }
    if bytes.size == 0 { throw refuse("it is empty") }
    let head = bytes.read(0, 64)
    guard head.starts(with: [0x7f, 0x45, 0x4c, 0x46]) else {
      throw refuse("it is no core file: it does not begin like one (ELF)")
    }
    guard head.count == 64 else { throw refuse("it is a core file that ends in its header") }
    guard head[4] == 2, head[5] == 1, head.load(18, as: UInt16.self) == 62 else {
      throw refuse("it is of another kind of machine: only 64-bit x86-64 is understood")
    }
    switch head.load(16, as: UInt16.self) {
    case 4: break
    case 2, 3:
      throw refuse(
        "it is a program or a library, not a core file: give the core first, then the program")
    default: throw refuse("it is an ELF file of another type, not a core file")
    }
    let table = head.load(32, as: UInt64.self)
    var count = UInt64(head.load(56, as: UInt16.self))
    if count == 0xffff {
      // More than fit: the number is in the first section's header.
      let section = bytes.read(head.load(40, as: UInt64.self), 64)
      count = UInt64(section.load(44, as: UInt32.self))
    }
    guard head.load(54, as: UInt16.self) == 56, count > 0, count <= Self.mostSegments,
      table < 1 << 62
    else { throw refuse("it is a core file with a damaged header") }
    let entries = bytes.read(table, Int(count) * 56)
    guard entries.count == Int(count) * 56 else {
      throw refuse("it is a core file that was cut short: its table of contents is not all there")
    }
    add(entries, Int(count))
  }

  private mutating func add(_ table: [UInt8], _ count: Int) {
    var all: [CoreMemory.Segment] = []
    var end: UInt64 = 0
    for at in stride(from: 0, to: count * 56, by: 56) {
      let offset = table.load(at + 8, as: UInt64.self)
      let start = table.load(at + 16, as: UInt64.self)
      let fileSize = table.load(at + 32, as: UInt64.self)
      let size = table.load(at + 40, as: UInt64.self)
      guard offset < 1 << 62, fileSize < 1 << 62 else { continue }
      switch table.load(at, as: UInt32.self) {
      case 4: notes.append(offset..<(offset + fileSize))
      case 1:
        guard size > 0, start < CoreFile.highest, size <= CoreFile.highest - start,
          fileSize <= size
        else { continue }
        end = max(end, offset + fileSize)
        all.append(
          CoreMemory.Segment(
            start: start, end: start + size, offset: offset, fileSize: fileSize,
            flags: table.load(at + 4, as: UInt32.self)))
      default: break
      }
    }
    for segment in all.sorted(by: { $0.start < $1.start })
    where segment.start >= segments.last?.end ?? 0 {
      segments.append(segment)
    }
    if segments.count < all.count {
      limits.append("\(all.count - segments.count) parts of the core that overlap others")
    }
    if end > bytes.size {
      isCutShort = true
      limits.append(
        "memory: the core was cut short, \(bytes.size) of \(end) bytes are there (`ulimit -c`, or a"
          + " full disk)")
    }
  }
}
