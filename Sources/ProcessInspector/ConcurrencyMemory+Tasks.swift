internal import CHangcheck
internal import HangReport

// Offsets of layout version 1, in bytes from the start of a task.
private enum Offset {
  static let references: UInt64 = 0x08
  static let enqueuedOn: UInt64 = 0x18
  static let flags: UInt64 = 0x20
  static let id: UInt64 = 0x24
  static let resume: UInt64 = 0x38
  static let context: UInt64 = 0x40
  static let status: UInt64 = 0x60
  static let record: UInt64 = 0x68
  static let idHigh: UInt64 = 0x90
  static let dependency: UInt64 = 0xa0
}

private enum Status {
  static let cancelled: UInt32 = 0x100
  static let running: UInt32 = 0x800
  static let enqueued: UInt32 = 0x1000
  static let complete: UInt32 = 0x2000
  static let hasDependency: UInt32 = 0x4000
}

private enum Flag {
  static let child: UInt32 = 1 << 24
  static let groupChild: UInt32 = 1 << 26
  static let asyncLet: UInt32 = 1 << 28
}

/// The kind of a task's record that a handler of its cancellation lies in.
private let cancellationRecord: UInt64 = 3

extension ConcurrencyMemory {
  /// The tasks that were found, in the order in which they were made.
  struct Tasks: Sendable {
    var tasks: [SwiftTask] = []
    /// Not all memory was searched within the limit, or not all tasks were read.
    var isCut = false
  }

  /// All tasks that have not ended, searched for in everything that the process has allocated.
  ///
  /// Costs less than half a millisecond for each MB that the process uses, and some microseconds for
  /// each task.
  func tasks(milliseconds: UInt64 = 1000, most: Int = 200_000) -> Tasks {
    pages.forget()
    let mappings = files.mappings()
    noteCode(mappings)
    let deadline = hck_monotonic_ns() + milliseconds * 1_000_000
    var candidates: [UInt64] = []
    var canaries: [UInt64] = []
    let canary = symbols.canaryType == 0 ? symbols.taskType : symbols.canaryType
    let space = WritableMemory(files: files, memory: memory, mappings: mappings)
    var result = Tasks()
    result.isCut = !space.search(for: symbols.taskType, or: canary, deadline: deadline) {
      address, isTask in
      if isTask { candidates.append(address) } else { canaries.append(address) }
    }
    for address in candidates {
      if result.tasks.count >= most || hck_monotonic_ns() > deadline {
        result.isCut = true
        break
      }
      if let task = readTask(address) { result.tasks.append(task) }
    }
    addCanaries(canaries, to: &result.tasks)
    result.tasks.sort { $0.id < $1.id }
    return result
  }

  /// The task at an address, as it is now; nil where none is, or it has ended.
  func task(_ address: UInt64) -> SwiftTask? {
    pages.forget()
    return readTask(address)
  }

  /// Whether a task still waits for the same thing at the same place in its code.
  func isUnchanged(_ task: SwiftTask) -> Bool {
    guard let now = self.task(task.address) else { return false }
    return now.id == task.id && now.status == task.status && now.wait == task.wait
      && now.resume == task.resume && now.context == task.context
  }

  /// Whether a task may have a handler that cancelling it would run.
  func mayHandleCancellation(_ address: UInt64) -> Bool {
    guard var record = memory.word(address &+ Offset.record) else { return true }
    for _ in 0..<16 {
      record &= ~7
      if record == 0 { return false }
      guard let flags = memory.word(record), let next = memory.word(record &+ 8),
        flags & 0xff != cancellationRecord
      else { return true }
      record = next
    }
    return true
  }

  func readTask(_ address: UInt64) -> SwiftTask? {
    guard address & 15 == 0, pages.word(address) == symbols.taskType,
      let references = pages.word(address &+ Offset.references),
      let flags = pages.word32(address &+ Offset.flags), flags & 0xff == 0,
      let idLow = pages.word32(address &+ Offset.id),
      let idHigh = pages.word32(address &+ Offset.idHigh),
      let resume = pages.word(address &+ Offset.resume), isCode(resume),
      let context = pages.word(address &+ Offset.context),
      let status = pages.word32(address &+ Offset.status), status & Status.complete == 0,
      isLive(references)
    else { return nil }
    let isRunning = status & Status.running != 0
    let isEnqueued = status & Status.enqueued != 0
    let isUnstarted = !isRunning && symbols.unstarted.contains(resume)
    var task = SwiftTask(
      address: address, id: UInt64(idHigh) << 32 | UInt64(idLow), name: nil,
      priority: UInt8(truncatingIfNeeded: flags >> 8), kind: .task, isRunning: isRunning,
      isEnqueued: isEnqueued, isCancelled: status & Status.cancelled != 0,
      isUnstarted: isUnstarted && !isEnqueued, isSleeping: false, isHelper: false, parent: nil,
      group: nil, waitsForAllChildren: false, wait: .none, resume: resume, status: status,
      context: context)
    if flags & Flag.child != 0 {
      task.parent = pages.word(address &+ ConcurrencySymbols.taskSize)
      task.kind = flags & Flag.asyncLet != 0 ? .asyncLet : .task
    }
    if flags & Flag.groupChild != 0 {
      let skipped: UInt64 = flags & Flag.child != 0 ? 16 : 0
      task.group = pages.word(address &+ ConcurrencySymbols.taskSize &+ skipped)
      task.kind = .groupChild
    }
    task.name = name(of: address)
    if !isRunning {
      task.wait = wait(of: address, status)
      if case .continuation = task.wait {
        task.isSleeping = symbols.sleeps.holds(resume)
        if symbols.nameless.holds(resume) { task.wait = .unknown }
      }
      if case .taskGroup = task.wait { task.waitsForAllChildren = waitsForAll(task) }
      task.isHelper = task.isUnstarted && task.wait == .none && isSleepHelper(context)
    }
    return task
  }

  /// A task that was freed has bit 32 set alone; one that is immortal has the highest.
  private func isLive(_ references: UInt64) -> Bool {
    references >> 63 != 0 || references & (1 << 32) == 0
  }

  private func wait(of address: UInt64, _ status: UInt32) -> TaskWait {
    let isEnqueued = status & Status.enqueued != 0
    guard status & Status.hasDependency != 0 else {
      return isEnqueued ? .executor(whereEnqueued(address)) : .none
    }
    guard let record = pages.word(address &+ Offset.dependency), record != 0,
      pages.word(record &+ 0x28) == address, let kind = pages.word32(record &+ 0x20),
      let object = pages.word(record &+ 0x10)
    else { return isEnqueued ? .executor(whereEnqueued(address)) : .unknown }
    switch kind & 0xff {
    case 1: return .task(object)
    case 2:
      let sync = pages.word32(object &+ 0x18)
      return .continuation(object, isResumed: sync == 2)
    case 3: return .taskGroup(object)
    case 4:
      return .executor(
        place(identity: object, implementation: pages.word(record &+ 0x18) ?? 0))
    default: return .unknown
    }
  }

  /// Without a record: the queue that libdispatch was given.
  private func whereEnqueued(_ address: UInt64) -> ExecutorPlace {
    guard let word = pages.word(address &+ Offset.enqueuedOn), word > 1 else { return .pool }
    return .other(word)
  }

  private func name(of address: UInt64) -> String? {
    var record = pages.word(address &+ Offset.record) ?? 0
    for _ in 0..<64 where record != 0 {
      guard let kind = pages.word(record), let parent = pages.word(record &+ 8) else { return nil }
      if kind & 0xff == 6 { return pages.word(record &+ 0x10).flatMap { pages.string($0) } }
      record = parent
    }
    return nil
  }

  /// At the end of a group's body, rather than in `next()`: the runtime asks for one child after the
  /// other there, so that the function which asked tells.
  private func waitsForAll(_ task: SwiftTask) -> Bool {
    if symbols.groupEnds.holds(task.resume) { return true }
    // The wait itself, the function that waits, `next()`, and what called that.
    var context = task.context
    for _ in 0..<3 {
      guard let parent = pages.word(context), let resume = pages.word(context &+ 8) else { break }
      if symbols.groupEnds.holds(resume) { return true }
      guard parent != 0 else { break }
      context = parent
    }
    return false
  }

  /// The task that `Task.sleep` wakes itself with has its code in the runtime.
  private func isSleepHelper(_ context: UInt64) -> Bool {
    guard let entry = pages.word(context &- 0x18) else { return false }
    return symbols.sleeps.holds(entry) || symbols.nameless.holds(entry)
  }

  /// Notes with each waiting task the checked continuation that somebody still holds.
  private func addCanaries(_ canaries: [UInt64], to tasks: inout [SwiftTask]) {
    if canaries.isEmpty { return }
    var functions: [UInt64: String] = [:]
    for canary in canaries {
      guard let references = pages.word(canary &+ 8), isLive(references),
        let task = pages.word(canary &+ 0x10), let function = swiftString(canary &+ 0x18)
      else { continue }
      functions[task] = function
    }
    for index in tasks.indices {
      guard case .continuation(_, isResumed: false) = tasks[index].wait else { continue }
      tasks[index].checkedContinuation = functions[tasks[index].address]
    }
  }

  /// A Swift string of two words that lies in memory itself: small, or native.
  private func swiftString(_ address: UInt64) -> String? {
    guard let count = pages.word(address), let object = pages.word(address &+ 8) else { return nil }
    let kind = object >> 60
    if kind & 0xe == 0xe {
      let bytes = withUnsafeBytes(of: (count.littleEndian, object.littleEndian), Array.init)
      return String(
        decoding: bytes.prefix(min(15, Int(kind == 0xf ? 0 : object >> 56 & 0xf))), as: UTF8.self)
    }
    let length = Int(count & 0xffff_ffff_ffff)
    guard length <= 512,
      let bytes = pages.bytes((object & 0x0fff_ffff_ffff_ffff) &+ 32, length)
    else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }
}
