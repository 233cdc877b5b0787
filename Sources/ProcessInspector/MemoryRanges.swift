/// What of a process's mappings tells who can wake its threads: memory that others may share, and
/// the code and data of the libraries whose waits are known.
struct MemoryRanges {
  enum Library { case libc, dispatch, foundation, other }
  private struct Code {
    var start: UInt64, end: UInt64
    var library: Library
  }
  /// Mappings that are this process's own.
  private var own: [Range<UInt64>] = []
  private var code: [Code] = []
  private var dispatchData: [Range<UInt64>] = []
  /// Code of the Swift runtime is mapped.
  private(set) var hasSwift = false
  /// Asynchronous input and output of the kernel is set up.
  private(set) var hasAsynchronousIO = false
  /// false where the mappings could not be read: nothing is known then.
  private(set) var isKnown = false

  init(_ proc: ProcReader) {
    // Empty in the process's own folder once its first thread has ended.
    if load(proc, "maps") { return }
    for tid in (proc.list("task") ?? []).reversed().prefix(4) where load(proc, "task/\(tid)/maps") {
      return
    }
  }

  private mutating func load(_ proc: ProcReader, _ name: String) -> Bool {
    var last: Library?
    var lastEnd: UInt64 = 0
    let lines = proc.read(name) { bytes in
      var count = 0
      for line in bytes.split(separator: 10) {
        count += 1
        let fields = line.split(separator: 32, maxSplits: 5)
        guard fields.count >= 5, let dash = fields[0].firstIndex(of: 45) else { continue }
        guard let start = Self.hex(fields[0][..<dash]), let end = Self.hex(fields[0][(dash + 1)...])
        else { continue }
        let flags = fields[1]
        guard flags.count == 4, start < end else { continue }
        let at = flags.startIndex
        let path =
          fields.count == 6 ? fields[5].drop { $0 == 32 } : fields[0][..<fields[0].startIndex]
        if flags[at + 3] == 112 { own.append(start..<end) }
        let library: Library
        if path.isEmpty {
          // The tail of a library's data is anonymous, and follows it.
          library = start == lastEnd ? last ?? .other : .other
        } else {
          library = Self.library(path)
          hasSwift = hasSwift || Self.contains(path, "libswiftCore.so")
          hasAsynchronousIO =
            hasAsynchronousIO || Self.contains(path, "[aio]") || Self.contains(path, "[io_uring]")
        }
        if flags[at + 2] == 120 { code.append(Code(start: start, end: end, library: library)) }
        if library == .dispatch { dispatchData.append(start..<end) }
        last = library
        lastEnd = end
      }
      return count
    }
    isKnown = (lines ?? 0) > 0
    return isKnown
  }

  /// Whether other processes may have the memory there, too; so it is where nothing is known, as of
  /// what was mapped after this was read.
  func mayBeShared(_ address: UInt64) -> Bool {
    var low = 0
    var high = own.count
    while low < high {
      let middle = (low + high) / 2
      if own[middle].upperBound <= address { low = middle + 1 } else { high = middle }
    }
    return low == own.count || own[low].lowerBound > address
  }

  var hasDispatch: Bool { !dispatchData.isEmpty }

  /// Whether an address lies in libdispatch, its code or its variables.
  func isDispatch(_ address: UInt64) -> Bool { dispatchData.contains { $0.contains(address) } }

  /// Whose code an address lies in; nil where there is none.
  func library(ofCode address: UInt64) -> Library? {
    var low = 0
    var high = code.count
    while low < high {
      let middle = (low + high) / 2
      if code[middle].end <= address { low = middle + 1 } else { high = middle }
    }
    return low < code.count && code[low].start <= address ? code[low].library : nil
  }

  private static func library(_ path: Slice<UnsafeBufferPointer<UInt8>>) -> Library {
    let name = path.lastIndex(of: 47).map { path[($0 + 1)...] } ?? path
    func begins(_ word: StaticString) -> Bool {
      name.count >= word.utf8CodeUnitCount
        && zip(name, UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
          .allSatisfy { $0 == $1 }
    }
    if begins("libdispatch.so") { return .dispatch }
    if begins("libFoundation.so") { return .foundation }
    // A call's frame may hold old words: of the loader, which bound the call, and of our own agent.
    if begins("libc.so.") || begins("libc-2") || begins("libpthread") || begins("ld-")
      || begins("libHangAgent.so")
    {
      return .libc
    }
    return .other
  }

  private static func contains(_ path: Slice<UnsafeBufferPointer<UInt8>>, _ word: StaticString)
    -> Bool
  {
    let wanted = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
    guard path.count >= wanted.count else { return false }
    var at = path.startIndex
    while at + wanted.count <= path.endIndex {
      if path[at] == wanted[0], path[at..<(at + wanted.count)].elementsEqual(wanted) { return true }
      at += 1
    }
    return false
  }

  private static func hex(_ digits: Slice<UnsafeBufferPointer<UInt8>>) -> UInt64? {
    guard !digits.isEmpty, digits.count <= 16 else { return nil }
    var value: UInt64 = 0
    for digit in digits {
      switch digit {
      case 48...57: value = value << 4 | UInt64(digit - 48)
      case 97...102: value = value << 4 | UInt64(digit - 87)
      default: return nil
      }
    }
    return value
  }
}
