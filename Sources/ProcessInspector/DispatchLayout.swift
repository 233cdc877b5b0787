internal import HangReport

/// Where libdispatch keeps its variables in one process, and the offsets in its objects.
///
/// The offsets are those of the open source's 64-bit Linux build. They are believed only where what
/// the library says about itself (`dispatch_queue_offsets`) and its own queues agree.
struct DispatchLayout {
  let mainQueue: UInt64
  let managerQueue: UInt64
  let roots: [UInt64]
  let timers: UInt64
  let timerHeaps: Int
  /// By address of the object's table of functions.
  let kinds: [UInt64: DispatchMemory.ObjectKind]
  /// The tables of what stands for an item in a list without being one.
  let continuationTables: Range<UInt64>
  /// What a thread in a synchronous call leaves as its item's function.
  let syncInvoke: UInt64?
  /// The library's own timer looks every second whether its pool is blocked.
  let monitor: UInt64?
  /// Buckets of what it watches for sources; nil where no symbol tells.
  let sources: Range<UInt64>?
  /// Its functions that end waits.
  let givers: [UInt64: DispatchMemory.Giving]
  /// Of the library's thread-local block, among all that have one, and the place in it.
  let tlsModule: UInt64
  let tlsOffset: UInt64
  /// The words on which idle workers sleep.
  let idleWords: Set<UInt64>

  // Any object, then a queue.
  static let next = 0x10
  static let target = 0x18
  static let context = 0x20
  static let tail = 0x30
  static let state = 0x38
  static let label = 0x48
  static let width = 0x50
  static let priority = 0x54
  static let sourceRefs = 0x58
  static let poolLeft = 0x64
  static let head = 0x68
  static let sideSuspended = 0x70
  static let queueBytes = 0x78
  static let rootBytes = 0x80
  // Others.
  static let semaphoreValue = 0x30
  static let semaphoreOriginal = 0x38
  static let semaphoreWord = 0x40
  static let groupState = 0x30
  static let groupGeneration = 0x34
  static let groupNotify = 0x38
  static let syncWord = 0x60
  static let syncBytes = 0x70
  static let applyWord = 0x28
  /// In the context of a root queue: the semaphore of its idle workers.
  private static let mediator: UInt64 = 0x40

  private static let tables: [String: DispatchMemory.ObjectKind] = [
    "__OS_dispatch_semaphore_vtable": .semaphore, "__OS_dispatch_group_vtable": .group,
    "__OS_dispatch_source_vtable": .source, "__OS_dispatch_workloop_vtable": .workloop,
    "__OS_dispatch_queue_main_vtable": .queue, "__OS_dispatch_queue_mgr_vtable": .queue,
    "__OS_dispatch_queue_global_vtable": .queue, "__OS_dispatch_queue_serial_vtable": .queue,
    "__OS_dispatch_queue_concurrent_vtable": .queue, "__OS_dispatch_queue_runloop_vtable": .queue,
    "__OS_dispatch_queue_pthread_root_vtable": .queue, "__OS_dispatch_data_vtable": .data,
    "__OS_dispatch_io_vtable": .channel, "__OS_dispatch_queue_attr_vtable": .attribute,
  ]
  private static let names: Set<String> = Set(tables.keys).union([
    "_dispatch_main_q", "_dispatch_mgr_q", "_dispatch_root_queues", "_dispatch_timers_heap",
    "_dispatch_continuation_vtables", "_dispatch_async_and_wait_invoke",
    "_dispatch_workq_monitor_pools", "__dispatch_tsd", "dispatch_queue_offsets",
    "_dispatch_sources",
  ]).union(DispatchMemory.givingFunctions.keys)

  init?(_ images: ImageMap, _ memory: ProcessMemory, executable: String) {
    guard let (image, found) = Self.library(images, executable),
      let bias = images.loadBias(of: image)
    else { return nil }
    func address(_ name: String) -> UInt64? { found.symbols[name].map { $0.value &+ bias } }
    guard let main = address("_dispatch_main_q"), let manager = address("_dispatch_mgr_q"),
      let rootsAt = address("_dispatch_root_queues"), let heap = address("_dispatch_timers_heap"),
      let heapSize = found.symbols["_dispatch_timers_heap"]?.size,
      let rootsSize = found.symbols["_dispatch_root_queues"]?.size,
      let offsets = address("dispatch_queue_offsets"),
      let tls = found.symbols["__dispatch_tsd"], tls.isThreadLocal,
      let continuations = address("_dispatch_continuation_vtables"),
      let continuationsSize = found.symbols["_dispatch_continuation_vtables"]?.size,
      heapSize <= 1024, rootsSize <= 1 << 14, continuations < 1 << 47, rootsAt < 1 << 47
    else { return nil }
    guard let said = RemoteBytes(memory, offsets, 34), said.word16(2) == Self.label,
      said.word16(14) == Self.width, said.word16(26) == Self.target
    else { return nil }

    var kinds: [UInt64: DispatchMemory.ObjectKind] = [:]
    for (name, kind) in Self.tables {
      if let table = address(name) { kinds[table] = kind }
    }
    guard let queue = RemoteBytes(memory, main, Self.queueBytes), kinds[queue.word(0)] == .queue,
      queue.word16(Self.width) == 1, queue.word(Self.target) &- rootsAt < rootsSize,
      memory.text(queue.word(Self.label)) == "com.apple.main-thread",
      memory.word(manager).flatMap({ kinds[$0] }) == .queue
    else { return nil }
    let all = stride(from: rootsAt, to: rootsAt &+ rootsSize, by: Self.rootBytes)
    var idle: Set<UInt64> = []
    for root in all {
      guard let copy = RemoteBytes(memory, root, Self.rootBytes), kinds[copy.word(0)] == .queue,
        copy.word(Self.target) == 0,
        memory.text(copy.word(Self.label))?.hasPrefix("com.apple.root.") == true
      else { return nil }
      let semaphore = copy.word(Self.context) &+ Self.mediator
      if memory.word(semaphore).flatMap({ kinds[$0] }) == .semaphore {
        idle.insert(semaphore &+ UInt64(Self.semaphoreWord))
      }
    }
    guard let module = Self.module(image, found, bias, memory) else { return nil }
    mainQueue = main
    managerQueue = manager
    roots = Array(all)
    timers = heap
    timerHeaps = Int(heapSize) / 32
    self.kinds = kinds
    continuationTables = continuations..<(continuations &+ min(continuationsSize, 4096))
    syncInvoke = address("_dispatch_async_and_wait_invoke")
    monitor = address("_dispatch_workq_monitor_pools")
    sources = address("_dispatch_sources").flatMap { start in
      let size = found.symbols["_dispatch_sources"]?.size ?? 0
      return size > 0 && size <= 1 << 16 && start < 1 << 47 ? start..<(start + size) : nil
    }
    givers = Dictionary(
      DispatchMemory.givingFunctions.compactMap { name, giving in
        address(name).map { ($0, giving) }
      }, uniquingKeysWith: { first, _ in first })
    tlsModule = module
    tlsOffset = tls.value
    idleWords = idle
  }

  private static func library(
    _ images: ImageMap, _ executable: String
  ) -> (ImageMap.Image, ImageSymbols)? {
    let shared = images.loaded.first {
      $0.path.split(separator: "/").last?.hasPrefix("libdispatch.so") ?? false
    }
    let deleted = " (deleted)"
    let path = executable.hasSuffix(deleted) ? String(executable.dropLast(10)) : executable
    // Linked statically, it is part of the program.
    guard let image = shared ?? images.loaded.first(where: { $0.path == path }),
      let found = ImageSymbols(names, in: image, of: images),
      found.symbols["_dispatch_main_q"] != nil
    else { return nil }
    return (image, found)
  }

  /// The image's number among those with thread-local storage: the program itself is always the
  /// first, where it has any; for a library the loader has written it into its table.
  private static func module(
    _ image: ImageMap.Image, _ found: ImageSymbols, _ bias: UInt64, _ memory: ProcessMemory
  ) -> UInt64? {
    let isLibrary = image.path.split(separator: "/").last?.hasPrefix("libdispatch.so") ?? false
    guard isLibrary else { return 1 }
    for slot in found.moduleSlots {
      if let module = memory.word(slot &+ bias), module > 0, module < 1 << 20 { return module }
    }
    return nil
  }
}
