internal import CHangcheck
internal import WaitForGraph

extension LookBuilder {
  /// The owner that a lock's memory names. Across a fork a lock stays locked by the forking thread,
  /// whose copy in the child has another id and may unlock it all the same. Not so one in memory that
  /// parent and child share.
  func owner(_ tid: KernelThreadID?) -> KernelThreadID? {
    guard let tid else { return nil }
    if mayBeInherited(tid), !files.isAlive(known(tid)) {
      return KernelThreadID(files.pid.rawValue)
    }
    return known(tid)
  }

  /// Without a record: whoever has an id below the process's own was a thread before it began.
  private func mayBeInherited(_ tid: KernelThreadID) -> Bool {
    inherited.contains(UInt32(bitPattern: tid.rawValue))
      || (arena.isBare && tid.rawValue < Int32(bitPattern: arena.ownPID))
  }

  private func tid(_ word: UInt32) -> KernelThreadID {
    KernelThreadID(Int32(truncatingIfNeeded: word & 0x3fff_ffff))
  }

  /// Who is inside a one-time initialisation has it on record, and so have those who wait for it:
  /// its memory tells them apart.
  private mutating func settleOnce(_ key: ResourceKey) {
    let word = memory.word(key.address) ?? .max
    let (low, high) = (UInt32(truncatingIfNeeded: word), UInt32(truncatingIfNeeded: word >> 32))
    // libdispatch's token holds its runner's id in the low half, Swift's behind a flag in the high.
    let runner: KernelThreadID? =
      low == 0 ? (high == 0 ? nil : tid(high)) : high == 0 ? tid(low) : nil
    for index in threads.indices {
      let entries = holds[index].count { $0.key == key }
      guard entries > 0 || waits[index]?.key == key else { continue }
      guard let runner, threads[index].isAlive else {
        forget(key, of: index)
        if waits[index]?.key == key { waits[index] = nil }
        continue
      }
      let isRunner = threads[index].tid == owner(runner)
      if isRunner, knownWaits[threads[index].tid]?.enters(key) == true {
        waits[index] = RecordedWait(key: key, isShared: false, isTimed: false, mutex: 0)
      } else if isRunner ? entries > 1 : entries > 0, isInnermost(key, of: index) {
        waits[index] = RecordedWait(key: key, isShared: false, isTimed: false, mutex: 0)
      } else if isRunner, waits[index]?.key == key {
        waits[index] = nil
      }
      if isRunner {
        let first = holds[index].first { $0.key == key }
        forget(key, of: index)
        holds[index].append(
          first ?? RecordedHold(key: key, isShared: false, since: 0, site: nil))
      } else {
        forget(key, of: index)
      }
    }
    guard let runner = owner(runner) else { return }
    if !threads.contains(where: { $0.tid == runner }) {
      let index = append(runner, isAlive: files.isAlive(runner))
      holds[index].append(RecordedHold(key: key, isShared: false, since: 0, site: nil))
    }
  }

  /// Whether the thread has taken nothing since, and waits for nothing else.
  private func isInnermost(_ key: ResourceKey, of index: Int) -> Bool {
    (waits[index] == nil || waits[index]?.key == key) && holds[index].last?.key == key
  }

  /// Makes the holds agree with the memory of every resource that is held or waited for.
  mutating func settleOwners() {
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
            ? nil
            : mutex?.checksOwner == true || mutex?.isShared == true
              ? mutex?.owner.map(known) : owner(mutex?.owner),
          depth: mutex?.depth ?? 1, isShared: mutex?.isShared ?? false)
      case HCK_RWLOCK.rawValue:
        let lock = ReadWriteLockMemory(memory, key.address)
        keepOnly(
          key, owner: lock?.isShared == true ? lock?.writer.map(known) : owner(lock?.writer),
          readers: lock?.readers ?? 0, isShared: lock?.isShared ?? false)
      case HCK_SPIN.rawValue:
        if memory.word32(key.address) == 1 { drop(key) }
      case HCK_FUTEX_LOCK.rawValue:
        let word = memory.word32(key.address) ?? 0
        keepOnly(
          key, owner: owner(word == 0 ? nil : tid(word)), isShared: false)
      case HCK_ONCE.rawValue: settleOnce(key)
      default: break
      }
    }
  }

  private mutating func drop(_ key: ResourceKey) {
    for index in holds.indices { forget(key, of: index) }
  }

  /// Most threads do not hold it: they are to cost a look alone, no copy.
  mutating func forget(_ key: ResourceKey, of index: Int) {
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
}
