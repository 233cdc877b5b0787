internal import CHangcheck
internal import Glibc
internal import HangReport

extension Arena {
  /// A private copy of the arena that a process has, if it was started under hangcheck or uses the
  /// drop-ins. Nil where it has none, or one of another version.
  ///
  /// The process and whoever else watches it do not notice.
  static func copied(from files: ProcessFiles, _ memory: ProcessMemory) -> Arena? {
    var seen: Set<String> = []
    let mappings = files.mappings()
    for (index, mapping) in mappings.enumerated() where mapping.isWritable {
      let isShared = mapping.path == "/memfd:hangcheck"
      guard isShared ? seen.insert(mapping.path).inserted : mayBeOwn(mappings, index),
        let head = RemoteBytes(
          memory, mapping.start, MemoryLayout<hck_arena>.offset(of: \.clock) ?? 0),
        head.word(0) == HCK_MAGIC, head.word32(8) == HCK_LAYOUT_VERSION
      else { continue }
      let size = head.word(16)
      guard size >= 2 * UInt64(HCK_SLOT_BYTES), size <= 1 << 30,
        let copy = room(size)
      else { continue }
      fill(copy, from: mapping.start, size, mappings, files, memory)
      return Arena(copy: copy, size: size, isBare: false)
    }
    return nil
  }

  /// One without a record. `pid`: as the process knows itself.
  static func bare(pid: Int32, tidOffset: UInt64?) -> Arena? {
    let size = UInt64(HCK_FIRST_SLOT) + UInt64(HCK_SLOT_BYTES)
    guard let copy = room(size) else { return nil }
    copy.pointee.size = size
    copy.pointee.pid = UInt32(bitPattern: pid)
    copy.pointee.tid_offset = tidOffset ?? 0
    return Arena(copy: copy, size: size, isBare: true)
  }

  private static func room(_ size: UInt64) -> UnsafeMutablePointer<hck_arena>? {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
    guard let memory = mmap(nil, Int(size), PROT_READ | PROT_WRITE, flags, -1, 0),
      memory != MAP_FAILED
    else { return nil }
    return memory.bindMemory(to: hck_arena.self, capacity: 1)
  }

  /// The drop-ins' arena is anonymous: its first pages may be touched, what follows is reserved.
  private static func mayBeOwn(_ mappings: [Mapping], _ index: Int) -> Bool {
    let mapping = mappings[index]
    guard mapping.path.isEmpty, index + 1 < mappings.count else { return false }
    let next = mappings[index + 1]
    return next.start == mapping.end && !next.isWritable && next.path.isEmpty
      && next.end - mapping.start >= 1 << 20
  }

  /// Copies the pages that are there; the others are zero in the process as well.
  private static func fill(
    _ copy: UnsafeMutablePointer<hck_arena>, from start: UInt64, _ size: UInt64,
    _ mappings: [Mapping], _ files: ProcessFiles, _ memory: ProcessMemory
  ) {
    let parts = mappings.filter { $0.isWritable && $0.start >= start && $0.end <= start &+ size }
    let pages = PresentPages(files)
    for part in parts {
      for run in pages.runs(of: part) {
        let room = UnsafeMutableRawBufferPointer(
          start: UnsafeMutableRawPointer(copy).advanced(by: Int(run.lowerBound &- start)),
          count: Int(run.upperBound - run.lowerBound))
        _ = memory.read(run.lowerBound, into: room)
      }
    }
  }
}

/// Which pages of a process are in memory, from /proc/PID/pagemap.
struct PresentPages {
  private let files: ProcessFiles
  private static let pageSize: UInt64 = 4096

  init(_ files: ProcessFiles) { self.files = files }

  /// Pages that lie side by side, as one range; the whole mapping where the kernel does not say.
  func runs(of mapping: Mapping) -> [Range<UInt64>] {
    if let core = files.core { return core.presentRuns(of: mapping) }
    let whole = [mapping.start..<mapping.end]
    let descriptor = open("/proc/\(files.pid.rawValue)/pagemap", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return whole }
    defer { close(descriptor) }
    let count = Int((mapping.end - mapping.start) / Self.pageSize)
    guard count <= 1 << 18 else { return whole }
    var entries = [UInt64](repeating: 0, count: count)
    let offset = off_t(mapping.start / Self.pageSize * 8)
    let got = entries.withUnsafeMutableBytes {
      pread(descriptor, $0.baseAddress, count * 8, offset)
    }
    guard got == count * 8 else { return whole }
    var runs: [Range<UInt64>] = []
    for (index, entry) in entries.enumerated() where entry >> 62 != 0 {
      let start = mapping.start + UInt64(index) * Self.pageSize
      if let last = runs.last, last.upperBound == start {
        runs[runs.count - 1] = last.lowerBound..<start + Self.pageSize
      } else {
        runs.append(start..<start + Self.pageSize)
      }
    }
    return runs
  }
}
