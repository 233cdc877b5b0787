internal import HangReport

/// The places in a process that the Swift Concurrency runtime names.
struct ConcurrencySymbols {
  /// The first word of every task.
  let taskType: UInt64
  /// Functions that stand between a wait and the code that goes on; no frames of the program's.
  let adapters: Set<UInt64>
  /// What a task that has not run yet begins with.
  let unstarted: Set<UInt64>
  /// The last functions of a task's stack.
  let ends: Set<UInt64>
  /// The code of `Task.sleep` and of clocks' sleeps, ascending.
  let sleeps: [Range<UInt64>]
  let mainExecutorType: UInt64
  let poolExecutorTypes: Set<UInt64>
  /// The first word of the guard behind each checked continuation; 0 where it has no symbol.
  let canaryType: UInt64
  /// The pool's queues by priority; nil where the runtime was stripped of local symbols.
  let queueCache: UInt64?
  /// Where in a thread the current task and the executors' record lie.
  let currentTask: ThreadPlace?
  let tracking: ThreadPlace?

  static let layoutVersion: UInt32 = 1
  static let taskSize: UInt64 = 0xd0
  private static let prefix = "_swift_concurrency_debug_"

  /// A word that each thread has.
  enum ThreadPlace: Sendable, Hashable {
    /// In the block of a library, by its number among those that have one.
    case library(module: UInt64, offset: UInt64)
    /// Below the thread's own structure, in a program that the runtime is part of.
    case program(below: UInt64)
  }

  init?(_ images: ImageMap, executable: String, _ pages: PagedMemory) {
    let libraries = images.images { $0.hasPrefix("libswift_Concurrency.so") }
    let programs = images.images { _ in true }.filter { $0.path == executable }
    let finder = NamedSymbols(images: images)
    for image in libraries + programs.prefix(1) {
      let found = finder.find(in: image, containing: Self.wanted)
      guard found[Self.prefix + "asyncTaskMetadata"] != nil else { continue }
      self.init(found, finder.threadLocals(of: image), pages)
      return
    }
    return nil
  }

  private static let mainExecutor = "$ss20DispatchMainExecutorCN"
  private static let canary = "$ss25CheckedContinuationCanaryCN"
  private static let executorTypes: Set<String> = [
    "$ss26DispatchGlobalTaskExecutorCN", "$ss32_DefaultGlobalConcurrentExecutorCN",
  ]
  /// Task<Never, Never>.sleep in each of its forms, and _sleep beneath some of them.
  private static let sleepPrefixes = [
    "$sScTss5NeverORszABRs_rlE5sleep", "$sScTss5NeverORszABRs_rlE6_sleep",
  ]
  /// Parts of C++ names, which begin and end differently from build to build.
  private static let localNames = [
    "16globalQueueCache", "12completeTask", "22completeTaskAndRelease", "23completeTaskWithClosure",
    "30task_group_wait_resume_adapter", "10ActiveTask5Value",
    "20ExecutorTrackingInfo18ActiveInfoInThread",
  ]

  private static var wanted: [String] {
    [prefix, mainExecutor, canary] + executorTypes + sleepPrefixes + localNames
  }

  private static func isSleep(_ name: String) -> Bool {
    sleepPrefixes.contains { name.hasPrefix($0) } && !name.hasSuffix("Tu")
  }

  private init?(
    _ found: [String: NamedSymbols.Symbol], _ locals: NamedSymbols.ThreadLocals?,
    _ pages: PagedMemory
  ) {
    func pointer(_ name: String) -> UInt64? {
      found[Self.prefix + name].flatMap { pages.word($0.address) }
    }
    func named(_ part: String) -> [NamedSymbols.Symbol] {
      found.filter { $0.key.contains(part) }.map(\.value)
    }
    guard let version = found[Self.prefix + "internal_layout_version"],
      pages.word32(version.address) == Self.layoutVersion,
      pointer("asyncTaskSize") == Self.taskSize,
      let taskType = pointer("asyncTaskMetadata"), taskType != 0
    else { return nil }
    self.taskType = taskType
    unstarted = Set(["future_adapter", "non_future_adapter"].compactMap(pointer))
    adapters = Set(
      ["task_wait_throwing_resume_adapter", "task_future_wait_resume_adapter"].compactMap(pointer)
        + named("30task_group_wait_resume_adapter").map(\.address))
    ends = Set(named("completeTask").map(\.address))
    sleeps = found.filter { Self.isSleep($0.key) && $0.value.size > 0 }
      .map { $0.value.address..<$0.value.address &+ $0.value.size }
      .filter { $0.lowerBound < $0.upperBound }
      .sorted { $0.lowerBound < $1.lowerBound }
    mainExecutorType = found[Self.mainExecutor]?.address ?? 0
    poolExecutorTypes = Set(Self.executorTypes.compactMap { found[$0]?.address })
    canaryType = found[Self.canary]?.address ?? 0
    queueCache = named("16globalQueueCache").first?.address
    currentTask = Self.place(named("10ActiveTask5Value").first, 8, locals, pages)
    tracking = Self.place(
      named("20ExecutorTrackingInfo18ActiveInfoInThread").first, 16, locals, pages)
  }

  /// `fallback`: the offset in a library that has no local symbols, but a block of the known size.
  private static func place(
    _ symbol: NamedSymbols.Symbol?, _ fallback: UInt64, _ locals: NamedSymbols.ThreadLocals?,
    _ pages: PagedMemory
  ) -> ThreadPlace? {
    guard let locals else { return nil }
    let known = symbol.flatMap { $0.isThreadLocal ? $0.address : nil }
    if let word = locals.moduleWord {
      guard let module = pages.word(word), module > 0, module < 1 << 16,
        let offset = known ?? (locals.size == 0x20 ? fallback : nil)
      else { return nil }
      return .library(module: module, offset: offset)
    }
    // The program's own block ends where the thread's structure begins.
    guard let known, locals.alignment & (locals.alignment - 1) == 0 else { return nil }
    let size = (locals.size &+ locals.alignment - 1) & ~(locals.alignment - 1)
    return known < size ? .program(below: size - known) : nil
  }
}
