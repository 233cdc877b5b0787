internal import CHangcheck
internal import WaitForGraph

// Waits that no deadlock explains, and that are long.
extension DeadlockWatch {
  /// The slots whose waits have passed the threshold since the last call. Workers that wait for work
  /// and a main thread that is parked are left out: only what somebody holds, or limits, is meant.
  func newLongWaits(now: UInt64, threshold: Duration) -> Set<UInt32> {
    sampleLongWaits(now: now, threshold: threshold)
    guard now &- soughtLong >= 100_000_000 else { return [] }
    soughtLong = now
    let least = threshold.nanoseconds
    let long = firstSeen.filter { now &- $0.value >= least }.map(\.key)
    toldLong.formIntersection(long)
    var result: Set<UInt32> = []
    for identity in long
    where !toldLong.contains(identity) && isHeld(identity) && !hasTakenSince(identity, now: now) {
      // That a task blocks is told first, with more words.
      let since = firstSeen[identity] ?? now
      if now &- since < least &+ 2_500_000_000, isOnCooperativePool(identity.slot) { continue }
      toldLong.insert(identity)
      result.insert(identity.slot)
    }
    return result
  }

  /// All threads, for the waits in these slots. One that is passed over again and again runs each time
  /// that it is woken, and waits all the same: it has got nothing since.
  func look(atWaitsIn slots: Set<UInt32>, now: UInt64) -> Look {
    var builder = builder(now: now)
    builder.starved = Set(
      courses.filter { identity, course in
        slots.contains(identity.slot) && course.takers.values.contains { $0.count > 0 }
      }.map(\.key.slot))
    let look = builder.look(slots: nil, depth: .kernel)
    // Those that it did not find waiting are to be looked at again.
    let seen = Set(
      look.threads.filter { look.snapshot.threads[$0.id.rawValue - 1].wait != nil }
        .compactMap(\.record?.slot))
    toldLong = toldLong.filter { !slots.contains($0.slot) || seen.contains($0.slot) }
    return look
  }

  private func isHeld(_ identity: WaitIdentity) -> Bool {
    let key = identity.wait.key
    switch key.kind {
    case HCK_MUTEX.rawValue, HCK_RWLOCK.rawValue, HCK_QUEUE.rawValue, HCK_ONCE.rawValue,
      HCK_FUTEX_LOCK.rawValue, HCK_OPERATION.rawValue, HCK_WORK_ITEM.rawValue:
      return true
    case HCK_GROUP.rawValue: return true
    case HCK_SEMAPHORE.rawValue:
      if let semaphore = runtime.dispatch?.semaphore(key.address), semaphore.original > 0 {
        return true
      }
      return holdsUpQueue(identity.slot)
    default: return false
    }
  }

  private func isOnCooperativePool(_ slot: UInt32) -> Bool {
    guard let dispatch = runtime.dispatch, let thread = arena.thread(slot), thread.pthread != 0
    else { return false }
    return dispatch.queuesOfThread(pthread: thread.pthread).contains {
      dispatch.queue($0)?.isCooperativePool ?? false
    }
  }

  /// Whether others' work is queued behind what the thread runs.
  private func holdsUpQueue(_ slot: UInt32) -> Bool {
    guard let dispatch = runtime.dispatch, let thread = arena.thread(slot), thread.pthread != 0
    else { return false }
    return dispatch.queuesOfThread(pthread: thread.pthread).compactMap(dispatch.queue).contains {
      // The cooperative pool has few threads: none of them should wait.
      $0.isCooperativePool
        || $0.isSerial && $0.hasItems && !$0.isRoot && (!$0.isMain || $0.owner == thread.tid)
    }
  }
}
