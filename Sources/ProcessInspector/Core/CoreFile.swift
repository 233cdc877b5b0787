internal import Glibc
internal import HangReport

/// The core file of a process on x86-64: of the kernel, or of a debugger that wrote one of a process
/// that it left alive.
///
/// Answers what /proc and the memory of a live process would (`ProcessFiles`, `ProcReader`,
/// `ProcessMemory`), as far as a core holds it. What the file says is checked, since it may be cut
/// short or hostile: wrong places read as nothing. Immutable, and may be used from any thread.
package final class CoreFile: Sendable {
  /// One past the last address that a process can have.
  static let highest: UInt64 = 1 << 47

  package let pid: ProcessID
  let threads: [CoreNotes.Thread]
  let mappings: [Mapping]
  private let images: CoreImages
  /// Of the program, as it was known then or as it was given.
  let executable: String
  let arguments: [String]
  /// The signal that ended the process, and the thread that got it; nil where it lived on.
  package let ending: (signal: Int32, tid: Int32)?
  /// What is missing from it, one sentence each.
  let limits: [String]
  /// Whether the file ends before what it says to hold.
  package let isCutShort: Bool
  private let memory: CoreMemory
  private let file: OwnedDescriptor
  private let proc: [String: [UInt8]]

  /// Opens a core, which may be compressed; `executable`: of the program, where it is not where it was
  /// when the core was made.
  package init(path: String, executable given: String?) throws(InputError) {
    file = try CoreCompression.opened(path)
    var status = stat()
    guard fstat(file.rawValue, &status) == 0 else {
      throw InputError(message: "\(path): cannot be read: \(SystemError(errno))")
    }
    let header = try CoreHeader(
      path: path, CoreBytes(descriptor: file.rawValue, size: UInt64(max(0, status.st_size))))
    var notes = CoreNotes()
    for range in header.notes { notes.add(range, header.bytes.read) }
    guard !notes.threads.isEmpty else {
      throw InputError(
        message: "\(path): it is a core file without threads: it is damaged, or was cut short")
    }
    var seen: Set<KernelThreadID> = []
    threads = notes.threads.filter { seen.insert($0.tid).inserted }
    pid = ProcessID(notes.pid ?? threads[0].tid.rawValue)
    memory = CoreMemory(segments: header.segments, bytes: header.bytes)
    images = try CoreImages(notes, memory, core: path, executable: given)
    executable = images.executable ?? notes.name
    // A debugger's stops are no end.
    ending = threads.first { ![0, SIGTRAP, SIGSTOP].contains($0.signal) }
      .map { ($0.signal, $0.tid.rawValue) }
    mappings = Self.mappings(memory, images, notes)
    arguments = notes.arguments
    limits = header.limits + images.limits
    isCutShort = header.isCutShort
    proc = CoreProc(threads, mappings, arguments).files
  }

  // MARK: - As /proc has it

  /// A file of the process's folder; nil for what a core does not tell.
  func proc(_ name: String) -> [UInt8]? {
    if let bytes = proc[name] { return bytes }
    // Of a thread: task/TID/maps.
    guard name.hasPrefix("task/"), let slash = name.dropFirst(5).firstIndex(of: "/") else {
      return nil
    }
    return name[slash...] == "/maps" ? proc["maps"] : nil
  }

  func link(_ name: String) -> String? {
    name == "exe" && !executable.isEmpty ? executable : nil
  }

  func list(_ name: String) -> [String]? {
    name == "task" ? threads.map { String($0.tid.rawValue) } : nil
  }

  /// Of the program's file, or of what the core has of it.
  func partOfExecutable(at offset: UInt64, _ count: Int) -> [UInt8]? {
    if let bytes = images.partOfExecutable(at: offset, count) { return bytes }
    guard let start = mappings.first(where: { $0.path == executable && $0.offset == 0 })?.start,
      offset < 1 << 32
    else { return nil }
    let bytes = memory.bytes(start &+ offset, count)
    return bytes.count == count ? bytes : nil
  }

  /// The registers of each thread; its stack is read where it lies.
  func stacks() -> [KernelThreadID: CapturedThread] {
    Dictionary(
      uniqueKeysWithValues: threads.map { thread in
        let number = Int64(bitPattern: thread.registers[15])
        let sp = thread.registers[19]
        let base = sp &- 128
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.stackBytes) { buffer, filled in
          filled = read(base, into: UnsafeMutableRawBufferPointer(buffer))
        }
        return (
          thread.tid,
          CapturedThread(
            tid: thread.tid,
            registers: Registers(kernel: thread.registers, stackPointer: sp),
            stack: StackCopy(base: base, bytes: bytes),
            systemCall: number >= 0 ? Int(truncatingIfNeeded: number) : nil)
        )
      })
  }
  private static let stackBytes = 4096

  /// What no core tells, and a live process would.
  static let untold =
    "whether a signal, a timer of the kernel, a descriptor or a child process could still have set it"
    + " going: a core has nothing of those"

  // MARK: - Memory

  /// As `MemoryReader` has it. What the core leaves out of a file's memory is read from that file,
  /// where it is the same one.
  func read(_ address: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    var filled = 0
    while filled < buffer.count {
      let at = address &+ UInt64(filled)
      let room = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
      var got = memory.read(at, into: room)
      if got == 0 { got = images.read(at, into: room) }
      if got == 0 { break }
      filled += got
    }
    return filled
  }

  /// The parts of a mapping that are in the core.
  func presentRuns(of mapping: Mapping) -> [Range<UInt64>] {
    memory.segments.compactMap { segment in
      let start = max(segment.start, mapping.start)
      let end = min(segment.start + segment.fileSize, mapping.end)
      return start < end ? start..<end : nil
    }
  }

  // MARK: - Mappings

  /// Each segment with the file that it is of; and what files were mapped to without a segment.
  private static func mappings(
    _ memory: CoreMemory, _ images: CoreImages, _ notes: CoreNotes
  ) -> [Mapping] {
    let stack = notes.auxiliary[25] ?? 0  // AT_RANDOM: the kernel's bytes on the first stack
    let vdso = notes.auxiliary[33] ?? 0  // AT_SYSINFO_EHDR
    var result = memory.segments.map { segment in
      let file = images.file(at: segment.start)
      let range = segment.start..<segment.end
      let path =
        file?.path ?? (range.contains(vdso) ? "[vdso]" : range.contains(stack) ? "[stack]" : "")
      return Mapping(
        start: segment.start, end: segment.end,
        offset: file.map { $0.offset &+ (segment.start - $0.range.lowerBound) } ?? 0,
        isWritable: segment.flags & 2 != 0, isExecutable: segment.flags & 1 != 0, inode: 0,
        path: path)
    }
    var next = 0
    for file in images.all {
      while next < memory.segments.count, memory.segments[next].end <= file.range.lowerBound {
        next += 1
      }
      if next < memory.segments.count, memory.segments[next].start < file.range.upperBound {
        continue
      }
      result.append(
        Mapping(
          start: file.range.lowerBound, end: file.range.upperBound, offset: file.offset,
          isWritable: false, isExecutable: images.isCode(file), inode: 0, path: file.path))
    }
    return result.sorted { $0.start < $1.start }
  }
}
