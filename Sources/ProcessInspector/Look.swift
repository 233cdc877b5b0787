internal import CHangcheck
internal import WaitForGraph

/// A thread as one look found it: a live one, one that exited with something in hand, or an owner
/// of whom only the id is known.
struct SeenThread {
  var id: ThreadID
  var tid: KernelThreadID
  var isAlive: Bool
  var record: RecordedThread?
  /// What it really holds, in the order of the snapshot's holds.
  var holds: [RecordedHold] = []
}

/// One look at a process: the recorder's word, checked against the memory of the locks and, where
/// asked for, the kernel's.
///
/// The record alone is not believed: a thread that has just taken a lock still looks as if it
/// waited (I3 of hck_layout.h), and memory is used again for other locks. The lock's own memory
/// names its owner.
struct Look {
  var snapshot: Snapshot
  var threads: [SeenThread]
  var resources: [ResourceKey]
  /// How often each live thread that waits was given a processor.
  var timesRun: [ThreadID: UInt64]

  func thread(_ id: ThreadID) -> SeenThread { threads[id.rawValue - 1] }
  func resource(_ id: ResourceID) -> ResourceKey { resources[id.rawValue - 1] }
}

/// Makes looks at one process.
struct LookBuilder {
  let arena: Arena
  let files: ProcessFiles
  let memory: ProcessMemory
  /// Seconds since a wait was first seen.
  var waited: (RecordedThread) -> Double?

  private var threads: [SeenThread] = []
  private var waits: [RecordedWait?] = []
  private var holds: [[RecordedHold]] = []
  private var resourceIDs: [ResourceKey: Int] = [:]
  private var resources: [ResourceKey] = []
  /// Ours for the ids that the process's threads have in a namespace of their own; nil where they
  /// are the same.
  private let outer: [KernelThreadID: KernelThreadID]?
  private let inherited: Set<UInt32>

  init(
    arena: Arena, files: ProcessFiles, memory: ProcessMemory,
    waited: @escaping (RecordedThread) -> Double?
  ) {
    self.arena = arena
    self.files = files
    self.memory = memory
    self.waited = waited
    inherited = arena.inherited
    if arena.ownPID == UInt32(bitPattern: files.pid.rawValue) {
      outer = nil
    } else {
      var outer: [KernelThreadID: KernelThreadID] = [:]
      for tid in files.threads() {
        if let inner = files.innerID(tid) { outer[inner] = tid }
      }
      self.outer = outer
    }
  }

  /// An id that the process wrote, as this process knows it; one that names no thread there is gone
  /// here too.
  private func known(_ tid: KernelThreadID) -> KernelThreadID {
    guard let outer else { return tid }
    return outer[tid] ?? KernelThreadID(-tid.rawValue)
  }

  /// The owner that a lock's memory names. Across a fork a lock stays locked by the forking thread,
  /// whose copy in the child has another id and may unlock it all the same.
  private func owner(_ tid: KernelThreadID?) -> KernelThreadID? {
    guard let tid else { return nil }
    if inherited.contains(UInt32(bitPattern: tid.rawValue)), !files.isAlive(known(tid)) {
      return KernelThreadID(files.pid.rawValue)
    }
    return known(tid)
  }

  /// Looks at the threads in `slots` (all with nil). With `asksKernel` a wait counts only when the
  /// kernel agrees, and threads without a record are listed too.
  mutating func look(slots: [UInt32]?, asksKernel: Bool) -> Look {
    collect(slots: slots, asksKernel: asksKernel)
    var timesRun: [ThreadID: UInt64] = [:]
    if asksKernel {
      for index in threads.indices where waits[index] != nil {
        waits[index] = confirmed(waits[index], threads[index].tid)
        timesRun[threads[index].id] = files.timesRun(threads[index].tid)
      }
    }
    settleOwners()
    return Look(
      snapshot: makeSnapshot(), threads: threads, resources: resources, timesRun: timesRun)
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
  }

  @discardableResult
  private mutating func append(_ tid: KernelThreadID, isAlive: Bool) -> Int {
    threads.append(
      SeenThread(id: ThreadID(threads.count + 1), tid: tid, isAlive: isAlive, record: nil))
    waits.append(nil)
    holds.append([])
    return threads.count - 1
  }

  /// What the kernel makes of a recorded wait; nil when the thread is not blocked there.
  private func confirmed(_ wait: RecordedWait?, _ tid: KernelThreadID) -> RecordedWait? {
    guard let wait else { return nil }
    let state = files.state(tid)
    if state == .unknown { return wait }
    if wait.key.kind == HCK_SPIN.rawValue { return state == .running ? wait : nil }
    guard case .call(202, let address) = state else { return nil }
    func lies(in start: UInt64, _ size: Int) -> Bool {
      address >= start && address - start < UInt64(size)
    }
    switch wait.key.kind {
    case HCK_MUTEX.rawValue:
      if lies(in: wait.key.address, hck_mutex_size()) { return wait }
      return MutexMemory(memory, wait.key.address)?.inheritsPriority == true ? wait : nil
    case HCK_RWLOCK.rawValue: return lies(in: wait.key.address, hck_rwlock_size()) ? wait : nil
    case HCK_JOIN.rawValue: return lies(in: wait.key.address, 4096) ? wait : nil
    case HCK_CONDITION.rawValue:
      // Woken, but its mutex is not free: that is what it waits for.
      if lies(in: wait.mutex, hck_mutex_size()) {
        return RecordedWait(
          key: ResourceKey(address: wait.mutex, kind: HCK_MUTEX.rawValue), isShared: false,
          isTimed: false, mutex: 0)
      }
      return wait
    default: return wait
    }
  }

  /// Makes the holds agree with the memory of every resource that is held or waited for.
  private mutating func settleOwners() {
    var keys = Set(holds.joined().map(\.key))
    for wait in waits {
      if let wait { keys.insert(wait.key) }
    }
    for key in keys.sorted(by: { ($0.address, $0.kind) < ($1.address, $1.kind) }) {
      switch key.kind {
      case HCK_MUTEX.rawValue:
        let mutex = MutexMemory(memory, key.address)
        keepOnly(
          key,
          owner: mutex?.isLocked != true
            ? nil : mutex?.checksOwner == true ? mutex?.owner.map(known) : owner(mutex?.owner),
          depth: mutex?.depth ?? 1, isShared: mutex?.isShared ?? false)
      case HCK_RWLOCK.rawValue:
        let lock = ReadWriteLockMemory(memory, key.address)
        keepOnly(
          key, owner: owner(lock?.writer), readers: lock?.readers ?? 0,
          isShared: lock?.isShared ?? false)
      case HCK_SPIN.rawValue:
        if memory.word32(key.address) == 1 { drop(key) }
      default: break
      }
    }
  }

  private mutating func drop(_ key: ResourceKey) {
    for index in holds.indices { forget(key, of: index) }
  }

  /// Most threads do not hold it: they are to cost a look alone, no copy.
  private mutating func forget(_ key: ResourceKey, of index: Int) {
    if holds[index].contains(where: { $0.key == key }) { holds[index].removeAll { $0.key == key } }
  }

  private mutating func keepOnly(
    _ key: ResourceKey, owner: KernelThreadID?, depth: Int = 1, readers: Int = 0, isShared: Bool
  ) {
    guard let owner else {
      let recorded = holds.joined().filter { $0.key == key && $0.isShared }.count
      if recorded > readers || readers == 0 {
        drop(key)
      } else {
        for index in holds.indices { holds[index].removeAll { $0.key == key && !$0.isShared } }
      }
      return
    }
    let isOwned = { (hold: RecordedHold) in hold.key == key && !hold.isShared }
    let same = threads.indices.filter { threads[$0].tid == owner }
    let hasEntry = { [holds] (index: Int) in holds[index].contains(where: isOwned) }
    let index =
      same.first { threads[$0].isAlive && hasEntry($0) } ?? same.first { hasEntry($0) }
      ?? same.first { threads[$0].isAlive }
      ?? append(
        owner,
        // Another process's threads have ids of their own in each namespace.
        isAlive: files.isAlive(owner) || (isShared && (outer != nil || ProcessFiles.exists(owner))))
    for other in holds.indices where other != index { forget(key, of: other) }
    holds[index].removeAll { $0.key == key && $0.isShared }
    // The newest entries are the owner's: an older one is of a lock that lay here before.
    var surplus = holds[index].count(where: isOwned) - max(1, depth)
    holds[index].removeAll { hold in
      guard isOwned(hold), surplus > 0 else { return false }
      surplus -= 1
      return true
    }
    if !holds[index].contains(where: isOwned) {
      holds[index].append(RecordedHold(key: key, isShared: false, since: 0, site: nil))
    }
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
        id: threads[index].id, isMain: threads[index].tid.rawValue == files.pid.rawValue,
        isAlive: threads[index].isAlive)
      if let wait = waits[index] {
        if wait.key.kind == HCK_JOIN.rawValue, let target = joinTarget(wait.key.address) {
          joined[wait.key] = target
        }
        thread.wait = Snapshot.Wait(
          resource: resourceID(wait.key), mode: wait.isShared ? .shared : .exclusive,
          isTimed: wait.isTimed, seconds: threads[index].record.flatMap(waited))
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
        isReentrant: isReentrant(key), thread: joined[key])
    }
    return Snapshot(threads: seen, resources: described)
  }

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

extension ResourceKind {
  init(recorded kind: UInt32) {
    switch kind {
    case HCK_RWLOCK.rawValue: self = .rwlock
    case HCK_SPIN.rawValue: self = .spinlock
    case HCK_CONDITION.rawValue: self = .condition
    case HCK_BARRIER.rawValue: self = .barrier
    case HCK_JOIN.rawValue: self = .thread
    case HCK_SEMAPHORE.rawValue, HCK_POSIX_SEMAPHORE.rawValue: self = .semaphore
    case HCK_GROUP.rawValue: self = .group
    case HCK_QUEUE.rawValue: self = .queue
    case HCK_ONCE.rawValue: self = .once
    case HCK_OPERATION.rawValue: self = .operation
    case HCK_OPERATION_QUEUE.rawValue: self = .operationQueue
    case HCK_WORK_ITEM.rawValue: self = .workItem
    default: self = .mutex
    }
  }
}
