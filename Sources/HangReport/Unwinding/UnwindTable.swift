/// An image's sorted table of functions (.eh_frame_hdr), at its place in the target's memory.
struct UnwindTable {
  /// Where the header lies; the table's values are relative to it.
  let base: UInt64
  let count: Int
  /// The image's executable segments.
  let textStart: UInt64, textEnd: UInt64

  var entries: UInt64 { base &+ 12 }

  /// Reads the header; nil where there is none of the one form that linkers write.
  init?(headers: ProgramHeaders, bias: UInt64, memory: LayeredMemory) {
    guard let segment = headers.ehFrameHeader, segment.memorySize >= 12 else { return nil }
    base = bias &+ segment.address
    let head = memory.bytes(at: base, 12)
    // Version 1; .eh_frame's address relative to here; a 4-byte count; 4-byte pairs relative to
    // the header.
    guard head.count == 12, head[0] == 1, head[2] == 0x03, head[3] == 0x3b else { return nil }
    let told = Int(head.load(8, as: UInt32.self))
    let fits = (segment.memorySize - 12) / 8
    count = UInt64(told) <= fits ? told : Int(clamping: fits)
    let text = headers.loads.filter { $0.isExecutable }
    guard count > 0, let low = text.map(\.address).min(),
      let high = text.map({ $0.address &+ $0.memorySize }).max(), low < high
    else { return nil }
    textStart = bias &+ low
    textEnd = bias &+ high
  }

  /// The first address of the procedure that holds `pc`, if its description really reaches there.
  func procedureStart(of pc: UInt64, memory: LayeredMemory) -> UInt64? {
    guard textStart <= pc, pc < textEnd else { return nil }
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      guard let entry = entry(middle, memory) else { return nil }
      if entry.start <= pc { low = middle + 1 } else { high = middle }
    }
    guard low > 0, let entry = entry(low - 1, memory), let length = length(entry, memory),
      pc &- entry.start < length
    else { return nil }
    return entry.start
  }

  private func entry(
    _ index: Int, _ memory: LayeredMemory
  ) -> (start: UInt64, description: UInt64)? {
    guard let word = memory.word(at: entries &+ UInt64(index) &* 8)?.value else { return nil }
    return (relative(UInt32(truncatingIfNeeded: word)), relative(UInt32(word >> 32)))
  }

  private func relative(_ value: UInt32) -> UInt64 {
    base &+ UInt64(bitPattern: Int64(Int32(bitPattern: value)))
  }

  /// How long the procedure is, by its frame description entry; pointers of 4 and 8 bytes.
  private func length(_ entry: (start: UInt64, description: UInt64), _ memory: LayeredMemory)
    -> UInt64?
  {
    let bytes = memory.bytes(at: entry.description, 24)
    guard bytes.count == 24, bytes.load(0, as: UInt32.self) != .max else { return nil }
    let start = Int64(bytes.load(8, as: Int32.self))
    let place = entry.description &+ 8
    if place &+ UInt64(bitPattern: start) == entry.start {
      return UInt64(bytes.load(12, as: UInt32.self))
    }
    return bytes.load(16, as: UInt64.self)
  }
}
