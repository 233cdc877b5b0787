internal import HangReport

extension ConcurrencyMemory {
  private static let queueLimit = 200_000
  /// A word of a thread's structure (glibc, x86-64): its table of libraries' blocks.
  private static let blockTable: UInt64 = 8

  /// The task that a thread runs, and the executor that it occupies by that.
  ///
  /// `pthread` is the thread's own handle, its pthread_t. nil where it runs nothing of the kind.
  func running(pthread: UInt64) -> RunningTask? {
    pages.forget()
    guard let taskPlace = symbols.currentTask.flatMap({ word($0, of: pthread) }) else { return nil }
    let task = pages.word(taskPlace) ?? 0
    var place: ExecutorPlace?
    if let tracking = symbols.tracking.flatMap({ word($0, of: pthread) }),
      let info = pages.word(tracking), info != 0,
      let identity = pages.word(info), let implementation = pages.word(info &+ 8)
    {
      place = self.place(identity: identity, implementation: implementation)
    }
    let isTask = task != 0 && pages.word(task) == symbols.taskType
    if !isTask && place == nil { return nil }
    return RunningTask(task: isTask ? task : nil, place: place)
  }

  /// Where a thread has one of the runtime's thread-locals.
  private func word(_ place: ConcurrencySymbols.ThreadPlace, of pthread: UInt64) -> UInt64? {
    switch place {
    case .program(let below): return pthread &- below
    case .library(let module, let offset):
      // An entry has two words; those of the newest libraries may not be there yet.
      guard let table = pages.word(pthread &+ Self.blockTable), table != 0,
        let count = pages.word(table &- 16), module <= count,
        let block = pages.word(table &+ module &* 16), block != 0, block != .max
      else { return nil }
      return block &+ offset
    }
  }

  /// A default actor's state and queue; nil where none seems to be.
  func actor(_ address: UInt64) -> SwiftActor? {
    pages.forget()
    guard address & 15 == 0, let word = pages.word32(address &+ 0x20),
      let state = SwiftActor.State(rawValue: word & 7)
    else { return nil }
    var actor = SwiftActor(address: address, state: state, queued: [], isCut: false)
    // New jobs come in by one word, whose low bits are no address; the thread that works the queue
    // off sorts them by priority from there into another list.
    for head in [address &+ 0x28, address &+ 0x40] {
      guard let first = pages.word(head) else { return nil }
      walk(first & ~7) { job in
        if pages.word(job) == symbols.taskType { actor.queued.append(job) }
      } isCut: {
        actor.isCut = true
      }
    }
    return actor
  }

  private func walk(_ first: UInt64, _ each: (UInt64) -> Void, isCut: () -> Void) {
    var job = first
    var seen: Set<UInt64> = []
    while job != 0 {
      guard seen.count < Self.queueLimit, seen.insert(job).inserted,
        let next = pages.word(job &+ 0x10)
      else { return isCut() }
      each(job)
      job = next & ~7
    }
  }

  /// A task group's count; nil where none seems to be at the address.
  func taskGroup(_ address: UInt64) -> SwiftTaskGroup? {
    pages.forget()
    guard let status = pages.word(address &+ 0x50), let waiter = pages.word(address &+ 0x58)
    else { return nil }
    let isTask = waiter != 0 && pages.word(waiter) == symbols.taskType
    return SwiftTaskGroup(
      address: address, pending: Int(status & 0x7fff_ffff), waiting: isTask ? waiter : nil)
  }

  /// The pool's queues that were used at all; nil where the runtime does not tell where they are.
  func pools() -> [SwiftPool]? {
    pages.forget()
    guard let cache = symbols.queueCache else { return nil }
    var pools: [SwiftPool] = []
    for priority in 0..<UInt64(34) {
      guard let queue = pages.word(cache &+ priority &* 8), queue > 1,
        let pool = pool(queue, UInt8(priority))
      else { continue }
      pools.append(pool)
    }
    return pools
  }

  private func pool(_ queue: UInt64, _ priority: UInt8) -> SwiftPool? {
    guard let label = pages.word(queue &+ 0x48).flatMap({ pages.string($0) }),
      let width = pages.word16(queue &+ 0x50), width > 0,
      let state = pages.word(queue &+ 0x38), var item = pages.word(queue &+ 0x68)
    else { return nil }
    // 13 bits count from 0x1000 - width up: at 0x1000 none is left.
    let used = Int(state >> 41 & 0x1fff) - (0x1000 - Int(width))
    var pool = SwiftPool(
      priority: priority, queue: queue, label: label, width: Int(width),
      busy: max(0, min(used, Int(width))), pending: [], isCut: false)
    var seen: Set<UInt64> = []
    while item != 0 {
      guard seen.count < Self.queueLimit, seen.insert(item).inserted,
        let next = pages.word(item &+ 0x10),
        let job = pages.word(item &+ 0x28).map({ submitted($0, item) })
      else {
        pool.isCut = true
        break
      }
      pool.pending.append(self.job(job))
      item = next
    }
    return pool
  }

  /// The job itself, where the agent stands in front of it: see `hck_job`.
  private func submitted(_ context: UInt64, _ item: UInt64) -> UInt64 {
    guard let jobEntry, pages.word(item &+ 0x20) == jobEntry else { return context }
    return pages.word(context &+ 8) ?? context
  }

  private func job(_ address: UInt64) -> SwiftPool.Job {
    if pages.word(address) == symbols.taskType { return .task(address) }
    // An actor's job outside of the actor names it behind the common part.
    if let flags = pages.word32(address &+ 0x20), flags & 0xff == 0xc1,
      let actor = pages.word(address &+ 0x40), actor != 0
    {
      return .actor(actor)
    }
    return .other(address)
  }
}
