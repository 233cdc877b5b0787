internal import CHangcheck
internal import WaitForGraph

extension LookBuilder {
  /// What a thread waits for: as it is on record, where the kernel agrees; else what can be told from
  /// the word of memory that it sleeps on.
  func wait(of index: Int, _ standing: ThreadStanding) -> RecordedWait? {
    let (recorded, tid) = (waits[index], threads[index].tid)
    if threads[index].isIdle { return nil }
    if let recorded, let wait = confirmed(recorded, tid) { return wait }
    if let recorded, let slot = threads[index].record?.slot, starved.contains(slot),
      files.state(tid) == .running
    {
      return recorded
    }
    if let known = knownWaits[tid], known.fits(standing) { return known.wait }
    guard case .blocked(let address, true) = standing.kind else { return nil }
    func wait(_ address: UInt64, _ kind: UInt32, isShared: Bool = false) -> RecordedWait {
      RecordedWait(
        key: ResourceKey(address: address, kind: kind), isShared: isShared, isTimed: false,
        mutex: 0)
    }
    if let dispatch = runtime.dispatch {
      if let sync = dispatch.syncWait(futex: address, tid: inner(tid)) {
        let width = dispatch.queue(sync.queue)?.width ?? 1
        return wait(
          sync.queue, HCK_QUEUE.rawValue, isShared: width > 1 && !sync.isBarrier)
      }
      switch dispatch.waitedObject(futex: address) {
      case (.semaphore, let object)?: return wait(object, HCK_SEMAPHORE.rawValue)
      case (.group, let object)?: return wait(object, HCK_GROUP.rawValue)
      default: break
      }
    }
    return wait(address, DerivedKind.futex)
  }

  /// A synchronous call, and a one-time initialisation, are on record while they run as well: only
  /// the kernel knows whether they wait.
  mutating func askOfSynchronousCalls() {
    let kinds = [HCK_QUEUE.rawValue, HCK_ONCE.rawValue]
    var outside: OutsideWorld?
    for index in threads.indices where threads[index].isAlive {
      guard let wait = waits[index], kinds.contains(wait.key.kind) else { continue }
      let world = outside ?? runtime.outside()
      outside = world
      waits[index] = self.wait(of: index, world.standing(threads[index].tid))
    }
  }

  /// What the kernel makes of a recorded wait; nil when the thread is not blocked there.
  private func confirmed(_ wait: RecordedWait, _ tid: KernelThreadID) -> RecordedWait? {
    let state = files.state(tid)
    if state == .unknown { return wait }
    let kind = wait.key.kind
    // A one-time initialisation that is entered again spins.
    if kind == HCK_SPIN.rawValue || (kind == HCK_ONCE.rawValue && state == .running) {
      return state == .running ? wait : nil
    }
    guard case .call(202, let address) = state else { return nil }
    func lies(in start: UInt64, _ size: Int) -> Bool {
      address >= start && address - start < UInt64(size)
    }
    switch kind {
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
    case HCK_SEMAPHORE.rawValue, HCK_GROUP.rawValue:
      return lies(in: wait.key.address, 96) ? wait : nil
    case HCK_POSIX_SEMAPHORE.rawValue: return lies(in: wait.key.address, 32) ? wait : nil
    case HCK_ONCE.rawValue: return lies(in: wait.key.address, 8) ? wait : nil
    case HCK_FUTEX_LOCK.rawValue: return address == wait.key.address ? wait : nil
    case HCK_QUEUE.rawValue:
      // It may wait for a target of the queue that it named, or be in the block already, and wait
      // there for something else.
      return nil
    default: return wait
    }
  }
}
