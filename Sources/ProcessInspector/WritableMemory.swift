internal import CHangcheck
internal import Glibc
internal import HangReport

/// A search through what a process has allocated, for objects that begin with a known word.
///
/// The process is not stopped. Pages that it never touched are not touched either: the kernel tells
/// which are there (/proc/PID/pagemap). Costs less than half a millisecond for each MB that is.
struct WritableMemory {
  private let pid: ProcessID
  private let core: CoreFile?
  private let memory: any MemoryReader
  private let mappings: [Mapping]

  private static let pageSize: UInt64 = 4096
  private static let chunk = 1 << 18
  /// Without the kernel's word on pages: no more than this of one mapping.
  private static let blindLimit: UInt64 = 1 << 28

  /// A sanitizer's tables, of many terabytes; to ask about their pages alone takes seconds.
  private static let largest: UInt64 = 1 << 40

  /// Heaps and what else has no file; no shared memory, no first thread's stack.
  init(files: ProcessFiles, memory: any MemoryReader, mappings: [Mapping]) {
    pid = files.pid
    core = files.core
    self.memory = memory
    // Small ones first: they are all done when the time is over.
    self.mappings = mappings.filter {
      $0.isWritable && $0.end - $0.start < Self.largest
        && ($0.path.isEmpty || $0.path == "[heap]" || $0.path.hasPrefix("[anon:"))
    }.sorted { ($0.end - $0.start, $0.start) < ($1.end - $1.start, $1.start) }
  }

  /// Calls `found` with each address, a multiple of 16, that holds one of two words; false when
  /// `deadline` (monotonic nanoseconds) came first, or something could not be read.
  func search(
    for first: UInt64, or second: UInt64, deadline: UInt64,
    found: (_ address: UInt64, _ isFirst: Bool) -> Void
  ) -> Bool {
    guard let buffer = PagedMemory.map(Self.chunk) else { return false }
    defer { PagedMemory.unmap(buffer) }
    let pagemap = openPagemap()
    defer { if pagemap >= 0 { close(pagemap) } }
    var isComplete = true
    for mapping in mappings {
      let runs: [Range<UInt64>]
      if let known = presentRuns(of: mapping, pagemap, deadline: deadline) {
        runs = known
      } else {
        let end = min(mapping.end, mapping.start + Self.blindLimit)
        if end < mapping.end { isComplete = false }
        runs = [mapping.start..<end]
      }
      if hck_monotonic_ns() > deadline { return false }
      for run in runs {
        var at = run.lowerBound
        while at < run.upperBound {
          if hck_monotonic_ns() > deadline { return false }
          let size = Int(min(UInt64(Self.chunk), run.upperBound - at))
          let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<size])
          let got = min(size, memory.read(at, into: room))
          Self.search(room[..<got], at: at, first, second, found)
          at += UInt64(size)
        }
      }
    }
    return isComplete
  }

  private static func search(
    _ bytes: Slice<UnsafeMutableRawBufferPointer>, at address: UInt64, _ first: UInt64,
    _ second: UInt64, _ found: (UInt64, Bool) -> Void
  ) {
    // The chunk is a whole number of words, read only up to what was filled.
    let words = UnsafeMutableRawBufferPointer(rebasing: bytes).bindMemory(to: UInt64.self)
    var index = 0
    let count = words.count
    while index < count {
      let word = words[index]
      if word == first || word == second {
        found(address + UInt64(index) * 8, word == first)
      }
      index += 2
    }
  }

  private func openPagemap() -> Int32 {
    if core != nil { return -1 }
    // Empty in the process's own folder once its first thread has ended.
    for tid in [KernelThreadID(pid.rawValue)] + ProcessFiles(pid).threads().reversed().prefix(4) {
      let path = "/proc/\(pid.rawValue)/task/\(tid.rawValue)/pagemap"
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { continue }
      if let mapping = mappings.first {
        var entry: UInt64 = 0
        if pread(descriptor, &entry, 8, off_t(mapping.start / Self.pageSize * 8)) == 8 {
          return descriptor
        }
      }
      close(descriptor)
    }
    return -1
  }

  /// The pages of a mapping that are in memory or swapped out; nil where the kernel does not say.
  private func presentRuns(
    of mapping: Mapping, _ pagemap: Int32, deadline: UInt64
  ) -> [Range<UInt64>]? {
    if let core { return core.presentRuns(of: mapping) }
    guard pagemap >= 0 else { return nil }
    let pages = (mapping.end - mapping.start) / Self.pageSize
    var entries = [UInt64](repeating: 0, count: Int(min(pages, 1 << 15)))
    var runs: [Range<UInt64>] = []
    var page: UInt64 = 0
    while page < pages {
      if hck_monotonic_ns() > deadline { return runs }
      let count = Int(min(pages - page, UInt64(entries.count)))
      let offset = off_t((mapping.start / Self.pageSize + page) * 8)
      let got = entries.withUnsafeMutableBytes { pread(pagemap, $0.baseAddress, count * 8, offset) }
      guard got == count * 8 else { return nil }
      entries.withUnsafeBufferPointer { entries in
        for index in 0..<count where entries[index] >> 62 != 0 {
          let start = mapping.start + (page + UInt64(index)) * Self.pageSize
          if let last = runs.last, last.upperBound == start {
            runs[runs.count - 1] = last.lowerBound..<start + Self.pageSize
          } else {
            runs.append(start..<start + Self.pageSize)
          }
        }
      }
      page += UInt64(count)
    }
    return runs
  }
}
