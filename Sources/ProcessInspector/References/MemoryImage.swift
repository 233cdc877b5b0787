internal import CHangcheck
internal import Glibc

/// A copy of what a process can write, and of what it wrote into its private memory before.
///
/// Pages that it never touched are neither read nor touched. Confined to one thread.
final class MemoryImage {
  struct Mapping {
    var range: Range<UInt64>
    var isReadable: Bool
    var isShared: Bool
    var isHeap = false
    var isStack = false
    /// Nothing has a name there.
    var isAnonymous: Bool
    /// A gap that nobody may touch lies directly below it.
    var isGuarded: Bool
    /// Ours: the record of what the program does.
    var isRecord: Bool
    var isDevice: Bool
    /// A variable of the C library.
    var isLibc: Bool
  }
  private struct Run {
    var range: Range<UInt64>
    var offset: Int
  }

  let mappings: [Mapping]
  private let buffer: UnsafeMutableRawBufferPointer
  private var runs: [Run] = []
  private var used = 0

  private static let page: UInt64 = 4096

  /// nil where more than `limit` bytes are there, something could not be read, or `deadline`
  /// (monotonic nanoseconds) came first.
  init?(_ proc: ProcReader, memory: ProcessMemory, limit: Int, deadline: UInt64) {
    guard let mappings = Self.mappings(proc), let buffer = PagedMemory.map(limit) else {
      return nil
    }
    self.mappings = mappings
    self.buffer = buffer
    let pagemap = open(proc.folder + "pagemap", O_RDONLY | O_CLOEXEC)
    guard pagemap >= 0 else { return nil }
    defer { close(pagemap) }
    var entries = [UInt64](repeating: 0, count: 1 << 13)
    for mapping in mappings where !mapping.isRecord && !mapping.isDevice {
      var at = mapping.range.lowerBound
      while at < mapping.range.upperBound {
        if hck_monotonic_ns() > deadline { return nil }
        let pages = min(Int((mapping.range.upperBound - at) / Self.page), entries.count)
        let got = entries.withUnsafeMutableBytes {
          pread(pagemap, $0.baseAddress, pages * 8, off_t(at / Self.page * 8))
        }
        guard got == pages * 8 else { return nil }
        var index = 0
        while index < pages {
          guard Self.isOwn(entries[index], mapping) else {
            index += 1
            continue
          }
          // Memory that was written and may not be read now may be read again later.
          if !mapping.isReadable { return nil }
          var end = index + 1
          while end < pages, Self.isOwn(entries[end], mapping) { end += 1 }
          let start = at + UInt64(index) * Self.page
          guard copy(start..<start + UInt64(end - index) * Self.page, memory) else { return nil }
          index = end
        }
        at += UInt64(pages) * Self.page
      }
    }
  }

  deinit { PagedMemory.unmap(buffer) }

  /// In memory or swapped out; of a file that is not shared only what the process changed.
  private static func isOwn(_ entry: UInt64, _ mapping: Mapping) -> Bool {
    guard entry >> 62 != 0 else { return false }
    return mapping.isShared || mapping.isAnonymous || mapping.isHeap || mapping.isStack
      || entry >> 61 & 1 == 0
  }

  private func copy(_ range: Range<UInt64>, _ memory: ProcessMemory) -> Bool {
    let size = Int(range.upperBound - range.lowerBound)
    guard used + size <= buffer.count else { return false }
    let room = UnsafeMutableRawBufferPointer(rebasing: buffer[used..<used + size])
    guard memory.read(range.lowerBound, into: room) == size else { return false }
    if let last = runs.last, last.range.upperBound == range.lowerBound {
      runs[runs.count - 1].range = last.range.lowerBound..<range.upperBound
    } else {
      runs.append(Run(range: range, offset: used))
    }
    used += size
    return true
  }

  func word(_ address: UInt64) -> UInt64? {
    var (low, high) = (0, runs.count)
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].range.upperBound <= address { low = middle + 1 } else { high = middle }
    }
    guard low < runs.count, runs[low].range.lowerBound <= address,
      runs[low].range.upperBound - address >= 8
    else { return nil }
    let at = runs[low].offset + Int(address - runs[low].range.lowerBound)
    return buffer.loadUnaligned(fromByteOffset: at, as: UInt64.self)
  }

  func mapping(of address: UInt64) -> Mapping? {
    var (low, high) = (0, mappings.count)
    while low < high {
      let middle = (low + high) / 2
      if mappings[middle].range.upperBound <= address { low = middle + 1 } else { high = middle }
    }
    return low < mappings.count && mappings[low].range.contains(address) ? mappings[low] : nil
  }

  /// Every word, at each multiple of four, that points into one of some ranges, sorted by where they
  /// begin; nil when there are more than `most`.
  /// `everywhere`: also at addresses that no compiler chooses, as in packed records.
  func references(
    to ranges: [Range<UInt64>], most: Int, everywhere: Bool
  ) -> [HolderSearch.Reference]? {
    let matcher = PointerMatcher(ranges)
    var found: [HolderSearch.Reference] = []
    for run in runs {
      let size = Int(run.range.upperBound - run.range.lowerBound)
      guard size >= 8 else { continue }
      for shift in everywhere ? Array(0..<8) : [0, 4] {
        let words = (size - shift) / 8
        for index in 0..<words {
          let at = shift + index * 8
          let word = buffer.loadUnaligned(fromByteOffset: run.offset + at, as: UInt64.self)
          guard matcher.mayMatch(word), let value = matcher.match(word) else { continue }
          if found.count == most { return nil }
          found.append(
            HolderSearch.Reference(address: run.range.lowerBound + UInt64(at), value: value))
        }
      }
    }
    return found
  }

  private static func mappings(_ proc: ProcReader) -> [Mapping]? {
    let found = proc.read("maps") { bytes -> [Mapping]? in
      var result: [Mapping] = []
      var gapEnd: UInt64 = 0
      for line in bytes.split(separator: 10) {
        let fields = line.split(separator: 32, maxSplits: 5)
        guard fields.count >= 5, let dash = fields[0].firstIndex(of: 45),
          let start = hex(fields[0][..<dash]), let end = hex(fields[0][(dash + 1)...]), start < end,
          fields[1].count == 4
        else { return nil }
        let flags = fields[1]
        let at = flags.startIndex
        let path =
          fields.count == 6 ? String(decoding: fields[5].drop { $0 == 32 }, as: UTF8.self) : ""
        if path == "[vvar]" || path == "[vdso]" || path == "[vsyscall]" || path == "[vvar_vclock]" {
          continue
        }
        let isShared = flags[at + 3] == UInt8(ascii: "s")
        let isReadable = flags[at] == UInt8(ascii: "r")
        result.append(
          Mapping(
            range: start..<end, isReadable: isReadable, isShared: isShared,
            isHeap: path == "[heap]",
            isStack: path == "[stack]", isAnonymous: path.isEmpty || path.hasPrefix("[anon:"),
            isGuarded: gapEnd == start, isRecord: isShared && path.hasPrefix("/memfd:hangcheck"),
            isDevice: isShared && path.hasPrefix("/dev/") && !path.hasPrefix("/dev/shm/")
              && !path.hasPrefix("/dev/zero"),
            isLibc: path.split(separator: "/").last?.hasPrefix("libc.so.") ?? false))
        if !isReadable && flags[at + 1] == UInt8(ascii: "-") { gapEnd = end }
      }
      return result.isEmpty ? nil : result
    }
    return found ?? nil
  }

  private static func hex(_ digits: Slice<UnsafeBufferPointer<UInt8>>) -> UInt64? {
    var value: UInt64 = 0
    guard !digits.isEmpty, digits.count <= 16 else { return nil }
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

/// Tells words that may point into one of some ranges.
///
/// A pointer may point into the middle of an object, bear marks in its top two bytes, or
/// have all its bits turned round, as libdispatch's to the owner of a timer.
struct PointerMatcher {
  private let ranges: [Range<UInt64>]
  private let least: UInt64
  private let span: UInt64
  /// The largest end of the ranges up to each.
  private var reach: [UInt64] = []
  private static let bits: UInt64 = (1 << 48) - 1

  /// Sorted by where they begin; they may overlap.
  init(_ ranges: [Range<UInt64>]) {
    self.ranges = ranges
    var most: UInt64 = 0
    for range in ranges {
      most = max(most, range.upperBound)
      reach.append(most)
    }
    least = ranges.first?.lowerBound ?? 0
    span = most &- least
  }

  @inline(__always)
  func mayMatch(_ word: UInt64) -> Bool {
    (word & Self.bits) &- least < span || (~word & Self.bits) &- least < span
  }

  /// What it points at, without its marks.
  func match(_ word: UInt64) -> UInt64? {
    for value in [word & Self.bits, ~word & Self.bits] where lies(value) { return value }
    return nil
  }

  private func lies(_ value: UInt64) -> Bool {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].lowerBound <= value { low = middle + 1 } else { high = middle }
    }
    return low > 0 && reach[low - 1] > value
  }
}
