internal import CHangcheck

/// Misuse that no single call shows: a lock that its thread left behind at its end, and a condition
/// that is waited for with two mutexes at once. Seen in the record, from outside. Confined to one
/// thread.
///
/// What a thread leaves locked may be given back by another one soon, against the rules but on
/// purpose: that is told as what it is, so the lock is not told of before time has passed. Where
/// somebody waits for it, the wait is what is told.
final class LockUseWatch {
  private struct Left: Hashable {
    var slot: UInt32
    var generation: UInt32
    var key: ResourceKey
  }
  private struct Exit: Hashable {
    var tid: UInt32
    var key: ResourceKey
  }
  private struct Waiter: Hashable {
    var slot: UInt32
    var generation: UInt32
    var wait: RecordedWait
  }

  private let arena: Arena
  private let files: ProcessFiles
  private let memory: ProcessMemory
  private var lookedAt: UInt64 = 0
  private var cost: UInt64 = 0
  private var leftSince: [Left: UInt64] = [:]
  private var told: Set<Left> = []
  private var toldExits: Set<Exit> = []
  private var toldConditions: Set<UInt64> = []
  /// Pairs of waiters that were seen once.
  private var suspects: Set<[Waiter]> = []

  private static let interval: UInt64 = 100_000_000

  init(arena: Arena, files: ProcessFiles, memory: ProcessMemory) {
    self.arena = arena
    self.files = files
    self.memory = memory
  }

  /// Whether this is news: a lock that a thread left behind is seen from outside, and told again by
  /// the agent at the program's end.
  func isNews(_ alarm: RecordedAlarm) -> Bool {
    guard alarm.kind == HCK_ALARM_EXIT_HELD.rawValue else { return true }
    let exit = Exit(tid: UInt32(truncatingIfNeeded: alarm.other), key: alarm.key)
    return toldExits.insert(exit).inserted
  }

  /// `now`: CLOCK_MONOTONIC in nanoseconds. Each misuse once, as if its thread had said it.
  func tick(now: UInt64) -> [RecordedAlarm] {
    guard now &- lookedAt >= max(Self.interval, 50 &* cost) else { return [] }
    lookedAt = now
    let begun = hck_monotonic_ns()
    defer { cost = hck_monotonic_ns() &- begun }
    var waits: [Waiter] = []
    var left: [UInt32] = []
    for slot in 0..<arena.slots {
      if let wait = arena.wait(slot) {
        waits.append(Waiter(slot: slot, generation: arena.generation(slot), wait: wait))
      } else if arena.isLeft(slot) {
        left.append(slot)
      }
    }
    return leftLocked(left, wanted: Set(waits.map(\.wait.key)), now: now) + conditions(waits)
  }

  private func leftLocked(_ slots: [UInt32], wanted: Set<ResourceKey>, now: UInt64)
    -> [RecordedAlarm]
  {
    var current: [Left: UInt64] = [:]
    var result: [RecordedAlarm] = []
    // Its owner's id may belong to another thread by now.
    for thread in slots.compactMap(arena.thread) where !files.isAlive(thread.tid) {
      for hold in thread.holds where isStillHeld(hold, by: thread.tid) && !wanted.contains(hold.key)
      {
        let left = Left(slot: thread.slot, generation: thread.generation, key: hold.key)
        let since = leftSince[left] ?? now
        current[left] = since
        let patience =
          arena.handsOver
          ? DeadlockWatch.secondLookWhereHandedOver : DeadlockWatch.secondLookAtGoneOwner
        guard now &- since >= patience, told.insert(left).inserted else { continue }
        result.append(
          alarm(
            HCK_ALARM_EXIT_HELD, hold.key, other: UInt64(UInt32(bitPattern: thread.tid.rawValue)),
            thread, site: hold.site))
      }
    }
    leftSince = current
    return result
  }

  private func isStillHeld(_ hold: RecordedHold, by tid: KernelThreadID) -> Bool {
    switch hold.key.kind {
    case HCK_MUTEX.rawValue:
      guard let mutex = MutexMemory(memory, hold.key.address) else { return false }
      // A robust one tells its next owner; a shared one is another process's as well.
      return mutex.isLocked && mutex.owner == tid && !mutex.isRobust && !mutex.isShared
    case HCK_RWLOCK.rawValue:
      guard !hold.isShared, let lock = ReadWriteLockMemory(memory, hold.key.address) else {
        return false
      }
      return lock.writer == tid && !lock.isShared
    default: return false
    }
  }

  /// Two looks must find the same waiters, both in the kernel for that condition: a slot's words are
  /// not read at one moment.
  private func conditions(_ waits: [Waiter]) -> [RecordedAlarm] {
    var first: [UInt64: Waiter] = [:]
    var pairs: Set<[Waiter]> = []
    for waiter in waits
    where waiter.wait.key.kind == HCK_CONDITION.rawValue && waiter.wait.mutex != 0 {
      let address = waiter.wait.key.address
      guard let other = first[address] else {
        first[address] = waiter
        continue
      }
      if other.wait.mutex != waiter.wait.mutex, !toldConditions.contains(address) {
        pairs.insert([other, waiter])
      }
    }
    var result: [RecordedAlarm] = []
    for pair in pairs where suspects.contains(pair) && pair.allSatisfy(isInCondition) {
      guard let second = pair.last, let thread = arena.thread(second.slot),
        toldConditions.insert(second.wait.key.address).inserted
      else { continue }
      result.append(
        alarm(
          HCK_ALARM_CONDITION_TWO_MUTEXES, second.wait.key, other: second.wait.mutex, thread,
          site: nil))
    }
    suspects = pairs
    return result
  }

  private func isInCondition(_ waiter: Waiter) -> Bool {
    guard let thread = arena.thread(waiter.slot), thread.generation == waiter.generation,
      thread.wait == waiter.wait,
      case .call(202, let address) = files.state(thread.tid)
    else { return false }
    return address &- waiter.wait.key.address < UInt64(hck_condition_size())
  }

  private func alarm(
    _ kind: hck_alarm_kind, _ key: ResourceKey, other: UInt64, _ thread: RecordedThread,
    site: RecordedSite?
  ) -> RecordedAlarm {
    RecordedAlarm(
      record: nil, kind: kind.rawValue, key: key, isShared: false, other: other, tid: thread.tid,
      waits: false, slot: thread.slot, site: site, otherSite: nil, name: thread.name, text: "")
  }
}
