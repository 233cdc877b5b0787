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
  let images: ImageMap
  private let threadPointers: ThreadPointers?

  /// Nil where the process has no libdispatch, or one whose layout is not as it should be.
  init?(files: ProcessFiles, memory: ProcessMemory) {
    self.memory = memory
    self.files = files
    images = ImageMap(
      files.mappings(), root: "/proc/\(files.pid.rawValue)/root", pid: files.pid.rawValue,
      memory: memory)
    guard let layout = DispatchLayout(images, memory, executable: files.executable()) else {
      return nil
    }
    self.layout = layout
    threadPointers = ThreadPointers(images: images, memory: memory)
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

  func isCode(_ address: UInt64) -> Bool { images.mapping(at: address)?.isExecutable ?? false }
}
