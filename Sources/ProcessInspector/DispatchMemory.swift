internal import CHangcheck
internal import HangReport

/// libdispatch of a process, read from its memory while it runs.
///
/// Nothing is stopped: each answer is of one moment, and two answers need not be of the same. What
/// cannot be verified is nil. Thread ids are those that the process itself knows. A question costs
/// some microseconds; a list of items, one read each and twice. Confined to one thread; kept for
/// the life of the process.
final class DispatchMemory {
  /// What lies at an address, by the table of functions that it points to.
  enum ObjectKind: Hashable, Sendable {
    case semaphore, group, queue, source, workloop, data, channel, attribute
  }

  let memory: ProcessMemory
  let files: ProcessFiles
  let layout: DispatchLayout
  private(set) var images: ImageMap
  private var mappedAt = hck_monotonic_ns()
  private let threadPointers: ThreadPointers?
  /// Functions of the agent that stand in front of what was submitted: see `hck_job`.
  var jobEntries: JobEntries?
  /// By where a binary begins: see `imported`.
  var importedByImage: [UInt64: [UInt64: Giving]] = [:]
  /// 0 where it is not known.
  var leaveSlotInTable: UInt32?

  /// Nil where the process has no libdispatch, or one whose layout is not as it should be.
  init?(files: ProcessFiles, memory: ProcessMemory) {
    self.memory = memory
    self.files = files
    images = Self.map(files, memory)
    guard let layout = DispatchLayout(images, memory, executable: files.executable()) else {
      return nil
    }
    self.layout = layout
    threadPointers = ThreadPointers(images: images, memory: memory)
  }

  struct JobEntries {
    var run: UInt64
    var apply: UInt64
    var item: UInt64
  }

  /// The program's block in a work item.
  func block(inItem item: UInt64) -> UInt64? {
    guard let inner = memory.word(item &+ 0x48) else { return nil }
    // The agent's own stands around it: see `hck_item_block`.
    guard let jobEntries, memory.word(inner &+ 0x10) == jobEntries.item else { return inner }
    return memory.word(inner &+ 0x20)
  }

  /// An item of a queue as the program submitted it.
  func continuation(_ address: UInt64) -> RemoteBytes? {
    guard let copy = RemoteBytes(memory, address, 64), let jobEntries, copy.word(0) < 0x1000,
      [jobEntries.run, jobEntries.apply].contains(copy.word(0x20)),
      let job = RemoteBytes(memory, copy.word(0x28), MemoryLayout<hck_job>.size)
    else { return RemoteBytes(memory, address, 64) }
    let isBlock = job.word32(44) != 0
    return copy.replacing(0, with: copy.word(0) | (isBlock ? 0x10 : 0))
      .replacing(0x20, with: job.word(0)).replacing(0x28, with: job.word(8))
  }

  /// The `pthread_t` of each thread; empty where it cannot be told.
  func pthreads() -> [KernelThreadID: UInt64] { threadPointers?.all() ?? [:] }

  func kind(of address: UInt64) -> ObjectKind? {
    guard address % 8 == 0, let table = memory.word(address) else { return nil }
    return layout.kinds[table]
  }

  func isQueue(_ address: UInt64) -> Bool {
    switch kind(of: address) {
    case .queue, .workloop, .source: true
    default: false
    }
  }

  /// Code or data that lies in a binary, as opposed to the heap and stacks.
  func isInImage(_ address: UInt64) -> Bool { images.image(at: address) != nil }

  func isCode(_ address: UInt64) -> Bool {
    if let mapping = images.mapping(at: address) { return mapping.isExecutable }
    // It may have been loaded since. Most addresses that are asked for are code.
    guard address >= 4096, address < 1 << 47, hck_monotonic_ns() &- mappedAt > 1_000_000_000
    else { return false }
    images = Self.map(files, memory)
    mappedAt = hck_monotonic_ns()
    return images.mapping(at: address)?.isExecutable ?? false
  }

  private static func map(_ files: ProcessFiles, _ memory: ProcessMemory) -> ImageMap {
    files.images(memory)
  }
}
