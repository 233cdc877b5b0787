internal import CHangcheck
internal import WaitForGraph

/// Makes looks at one process.
struct LookBuilder {
  /// How much is asked.
  enum Depth: Comparable {
    /// The record, and the memory of what it names.
    case memory
    /// The kernel too, of all threads.
    case kernel
    /// And what else could set a thread in motion: tasks, timers, descriptors, children.
    case whole
  }

  let arena: Arena
  let files: ProcessFiles
  let memory: ProcessMemory
  let runtime: RuntimeMemory
  /// Seconds since a wait was first seen.
  var waited: (RecordedThread) -> Double?

  var threads: [SeenThread] = []
  var waits: [RecordedWait?] = []
  var moreWaits: [Int: [RecordedWait]] = [:]
  var holds: [[RecordedHold]] = []
  private var resourceIDs: [ResourceKey: Int] = [:]
  private var resources: [ResourceKey] = []
  /// What others than the holders may have to give: see `Snapshot.Resource.isOpen`.
  var isOpen: [ResourceKey: Bool] = [:]
  /// See `Snapshot.Resource.needsOne`, beside what does so by its kind.
  var needsOne: Set<ResourceKey> = []
  var wakers: [ResourceKey: [ThreadID]] = [:]
  /// See `Snapshot.Resource.isForsaken`.
  var forsaken: Set<ResourceKey> = []
  var names: [ResourceKey: String] = [:]
  var values: [ResourceKey: Int] = [:]
  var hasOpenings = true
  /// Ours for the ids that the process's threads have in a namespace of their own; nil where they
  /// are the same.
  let outer: [KernelThreadID: KernelThreadID]?
  /// The other way round.
  private let inner: [KernelThreadID: KernelThreadID]
  let inherited: Set<UInt32>
  /// Operations that are looked at although no thread waits for them.
  var operations: Set<UInt64> = []
  /// Tasks as well, by a search through the process's memory, where things still move.
  var searchesTasks = false
  /// And whoever is known that would end waits without an owner: see `addGivers`.
  var seeksGivers = false
  var givers: [ResourceKey: [ThreadID]] = [:]
  var hasTasks = false
  /// Global queues whose queued work is listed, and what they are called.
  var pools: [UInt64: String] = [:]
  /// Slots of threads that wait for a lock although they run now and then: woken, and too late.
  var starved: Set<UInt32> = []
  /// What is known of threads without a record, whose stacks were read: see `KnownWait`.
  var knownWaits: [KernelThreadID: KnownWait] = [:]
  /// Seconds for which threads have not run, where no record tells since when they wait.
  var quiet: [KernelThreadID: Double] = [:]
  /// The `pthread_t` of threads without a record, by the ids that the process itself knows.
  var pthreads: [KernelThreadID: UInt64] = [:]
  /// What libdispatch has at hand for the item that a thread runs: see `WorkerItems`.
  var itemRegisters: (KernelThreadID) -> Set<UInt64> = { _ in [] }
  /// Threads that no look mentions: our own.
  var ignored: Set<KernelThreadID> = []
  /// Signals that are handled by us.
  var ignoredSignals: Set<Int32> = []

  init(
    arena: Arena, files: ProcessFiles, memory: ProcessMemory, runtime: RuntimeMemory,
    waited: @escaping (RecordedThread) -> Double?
  ) {
    self.arena = arena
    self.files = files
    self.memory = memory
    self.runtime = runtime
    self.waited = waited
    inherited = arena.inherited
    if arena.ownPID == UInt32(bitPattern: files.pid.rawValue) {
      outer = nil
      inner = [:]
    } else {
      var outer: [KernelThreadID: KernelThreadID] = [:]
      for tid in files.threads() {
        if let inner = files.innerID(tid) { outer[inner] = tid }
      }
      self.outer = outer
      inner = Dictionary(outer.map { ($0.value, $0.key) }, uniquingKeysWith: { first, _ in first })
    }
  }

  /// An id that the process wrote, as this process knows it; one that names no thread there is gone
  /// here too.
  func known(_ tid: KernelThreadID) -> KernelThreadID {
    guard let outer else { return tid }
    return outer[tid] ?? KernelThreadID(-tid.rawValue)
  }

  /// The same id as the process itself writes it.
  func inner(_ tid: KernelThreadID) -> KernelThreadID {
    inner[tid] ?? tid
  }

  /// Looks at the threads in `slots` (all with nil). From the kernel's depth on a wait counts only
  /// when the kernel agrees, and threads without a record are listed too.
  mutating func look(slots: [UInt32]?, depth: Depth) -> Look {
    collect(slots: slots, asksKernel: depth >= .kernel)
    var timesRun: [ThreadID: UInt64] = [:]
    if depth >= .kernel {
      let outside = runtime.outside()
      for index in threads.indices where threads[index].isAlive {
        let standing = outside.standing(threads[index].tid)
        threads[index].standing = standing
        if case .idle = standing.kind { threads[index].isIdle = true }
        waits[index] = wait(of: index, standing)
        timesRun[threads[index].id] = files.timesRun(threads[index].tid)
      }
      addKnownHolds()
      settleOperations(outside)
    }
    if depth == .memory { askOfSynchronousCalls() }
    settleOwners()
    settleQueues()
    if depth == .whole { settleOpenings() } else if searchesTasks { addTasks() }
    if seeksGivers, hasOpenings { addGivers() }
    return Look(
      snapshot: makeSnapshot(), threads: threads, resources: resources, timesRun: timesRun,
      names: names, values: values, givers: Set(givers.keys))
  }

  /// What is on record of a process that is gone: neither the kernel nor the locks' memory can be
  /// asked any more.
  mutating func lookAtRecord() -> Look {
    collect(slots: nil, asksKernel: false)
    return Look(snapshot: makeSnapshot(), threads: threads, resources: resources, timesRun: [:])
  }

  private mutating func collect(slots: [UInt32]?, asksKernel: Bool) {
    let records = (slots ?? Array(0..<arena.slots)).compactMap { slot in
      var record = arena.thread(slot)
      if outer != nil, let tid = record?.tid { record?.tid = known(tid) }
      return record
    }
    var live: [KernelThreadID: Int] = [:]
    func isListed(_ tid: KernelThreadID) -> Bool { live[tid] != nil }
    if asksKernel {
      for tid in files.threads() {
        // Only the first thread can have ended and still be listed: the process keeps its id.
        if tid.rawValue == files.pid.rawValue && !files.isAlive(tid) { continue }
        if ignored.contains(tid) { continue }
        live[tid] = append(tid, isAlive: true)
      }
    }
    for record in records.sorted(by: { $0.tid < $1.tid }) {
      if record.hasExited || (asksKernel && !isListed(record.tid)) {
        if record.holds.isEmpty { continue }
        let index = append(record.tid, isAlive: false)
        threads[index].record = record
        holds[index] = record.holds
        continue
      }
      let index = live[record.tid] ?? append(record.tid, isAlive: true)
      live[record.tid] = index
      holds[index] += record.holds
      // Two records of one thread: a slot that a signal handler left behind. The one that waits
      // speaks.
      if threads[index].record == nil || record.wait != nil { threads[index].record = record }
      waits[index] = record.wait ?? waits[index]
    }
    for index in threads.indices {
      threads[index].pthread = threads[index].record?.pthread ?? 0
      if threads[index].pthread == 0, !pthreads.isEmpty, threads[index].isAlive {
        threads[index].pthread = pthreads[inner(threads[index].tid)] ?? 0
      }
    }
  }

  @discardableResult
  mutating func append(
    _ tid: KernelThreadID, isAlive: Bool, kind: Snapshot.Thread.Kind = .thread
  ) -> Int {
    threads.append(
      SeenThread(
        id: ThreadID(threads.count + 1), kind: kind, tid: tid, isAlive: isAlive, record: nil))
    waits.append(nil)
    holds.append([])
    return threads.count - 1
  }

  private mutating func resourceID(_ key: ResourceKey) -> ResourceID {
    if let known = resourceIDs[key] { return ResourceID(known) }
    resources.append(key)
    resourceIDs[key] = resources.count
    return ResourceID(resources.count)
  }

  private mutating func makeSnapshot() -> Snapshot {
    let clock = arena.clock
    var seen: [Snapshot.Thread] = []
    var joined: [ResourceKey: ThreadID] = [:]
    for index in threads.indices {
      var thread = Snapshot.Thread(
        id: threads[index].id, kind: threads[index].kind,
        isMain: threads[index].tid.rawValue == files.pid.rawValue,
        isAlive: threads[index].isAlive, isIdle: threads[index].isIdle)
      if let wait = waits[index] {
        if wait.key.kind == HCK_JOIN.rawValue, let target = joinTarget(wait.key.address) {
          joined[wait.key] = target
        }
        thread.wait = Snapshot.Wait(
          resource: resourceID(wait.key), mode: wait.isShared ? .shared : .exclusive,
          isTimed: wait.isTimed,
          seconds: threads[index].record.flatMap(waited) ?? quiet[threads[index].tid])
      }
      for wait in moreWaits[index] ?? [] {
        thread.moreWaits.append(
          Snapshot.Wait(
            resource: resourceID(wait.key), mode: wait.isShared ? .shared : .exclusive))
      }
      for hold in holds[index] {
        thread.holds.append(
          Snapshot.Hold(
            resource: resourceID(hold.key), mode: hold.isShared ? .shared : .exclusive,
            seconds: hold.since == 0 ? nil : Double(clock &- hold.since) / 1000))
      }
      threads[index].holds = holds[index]
      seen.append(thread)
    }
    let described = resources.enumerated().map { index, key in
      Snapshot.Resource(
        id: ResourceID(index + 1), kind: ResourceKind(recorded: key.kind),
        isReentrant: isReentrant(key), thread: joined[key],
        isOpen: givers[key] == nil ? isOpen[key] : false,
        needsOne: Self.needsOne.contains(key.kind) || needsOne.contains(key),
        wakers: givers[key] ?? wakers[key] ?? [], hasOnlyWakers: givers[key] != nil,
        isForsaken: forsaken.contains(key))
    }
    return Snapshot(threads: seen, resources: described, hasOpenings: hasOpenings)
  }

  private static let needsOne = [
    DerivedKind.pool, DerivedKind.taskGroup, HCK_OPERATION_QUEUE.rawValue,
  ]

  private func joinTarget(_ pthread: UInt64) -> ThreadID? {
    guard arena.tidOffset != 0, let tid = memory.word32(pthread &+ arena.tidOffset), tid != 0 else {
      return nil
    }
    let target = known(KernelThreadID(Int32(truncatingIfNeeded: tid)))
    return threads.first { $0.isAlive && $0.tid == target }?.id
  }

  private func isReentrant(_ key: ResourceKey) -> Bool {
    switch key.kind {
    case HCK_MUTEX.rawValue: MutexMemory(memory, key.address)?.isRecursive ?? true
    case HCK_RWLOCK.rawValue: true
    default: false
    }
  }
}
