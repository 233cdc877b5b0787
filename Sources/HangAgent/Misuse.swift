// Locks that are used against their rules: seen at a call that the recorder's way does not cover, so
// that the usual calls cost nothing more.
//
// The lock's own memory is asked, which the call is about to touch anyway. A forked child is left
// alone with what its parent's threads held: to unlock and to initialise that is what fork handlers
// are for.
public import CHangAgent
public import CHangcheck

// errno values, which Embedded Swift does not import.
@inline(__always) var busyError: Int32 { 16 }
@inline(__always) var deadlockError: Int32 { 35 }

@inline(__always) func mutexOwner(_ mutex: UnsafeRawPointer) -> UInt32 {
  mutex.load(fromByteOffset: hck_mutex_owner_offset(), as: UInt32.self)
}

/// The lock word of a pthread mutex is its first.
@inline(__always) private func isLocked(_ mutex: UnsafeRawPointer) -> Bool {
  mutex.load(as: UInt32.self) != 0
}

/// Where a thread took what it is on record to hold, and its slot.
struct HeldElsewhere {
  var slot: Slot
  var site: hck_entry
}

/// Looks at every slot: for rare calls only. The record is another thread's, so it is asked again
/// after the copy. `isShared`: any reader; without a `tid`: whoever it is.
func findHolder(
  _ word: ResourceWord, tid: UInt32?, isShared: Bool = false,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> HeldElsewhere? {
  var index: UInt32 = 0
  let slots = hck_load32(&arena.pointee.slots)
  while index < slots {
    let slot = slotAt(arena, index)
    index &+= 1
    let state = hck_load32(&slot.pointee.state)
    if state != HCK_SLOT_LIVE.rawValue && state != HCK_SLOT_EXITED.rawValue { continue }
    if !isShared, let tid, slot.pointee.tid != tid { continue }
    let count = hck_load64(&slot.pointee.count)
    if count == 0 || count > slot.pointee.capacity { continue }
    let held = UnsafeMutableRawPointer(arena).advanced(by: Int(slot.pointee.held_offset))
      .assumingMemoryBound(to: hck_entry.self)
    var entry = Int(truncatingIfNeeded: count)
    while entry > 0 {
      entry &-= 1
      let wanted = isShared ? word | sharedBit : word
      guard hck_load64(&held[entry].resource) & ~timedBit == wanted else { continue }
      let site = held[entry]
      if hck_load64(&held[entry].resource) & ~timedBit == wanted {
        return HeldElsewhere(slot: slot, site: site)
      }
    }
  }
  return nil
}

/// Whether a lock's owner stayed behind when this process was forked.
func isInherited(_ tid: UInt32, _ arena: UnsafeMutablePointer<hck_arena>) -> Bool {
  arena.pointee.inherited.0 != 0 && findSlot(tid, arena) == nil
}

private func findSlot(_ tid: UInt32, _ arena: UnsafeMutablePointer<hck_arena>) -> Slot? {
  var index: UInt32 = 0
  let slots = hck_load32(&arena.pointee.slots)
  while index < slots {
    let slot = slotAt(arena, index)
    index &+= 1
    let state = hck_load32(&slot.pointee.state)
    if slot.pointee.tid == tid,
      state == HCK_SLOT_LIVE.rawValue || state == HCK_SLOT_EXITED.rawValue
    {
      return slot
    }
  }
  return nil
}

func raise(
  _ kind: hck_alarm_kind, _ word: ResourceWord, owner: UInt32, _ holder: HeldElsewhere?,
  _ frame: UnsafeRawPointer
) {
  if var holder {
    raise(kind, word, other: UInt64(owner), otherSite: &holder.site, frame)
  } else {
    raise(kind, word, other: UInt64(owner), frame)
  }
}

/// A mutex is unlocked by a thread that is not on record to hold it.
func checkUnlock(
  _ mutex: UnsafeRawPointer, _ owner: UInt32, _ slot: Slot,
  _ arena: UnsafeMutablePointer<hck_arena>, _ frame: UnsafeRawPointer
) {
  let word = mutexWord(mutex)
  guard isLocked(mutex) else { return raise(HCK_ALARM_UNLOCK_OF_UNLOCKED, word, frame) }
  // Without an owner it is being taken or given back just now.
  guard owner != 0, owner != slot.pointee.tid, !isInherited(owner, arena) else { return }
  raise(
    HCK_ALARM_FOREIGN_UNLOCK, word, owner: owner, findHolder(word, tid: owner, arena), frame)
}

/// glibc refuses to destroy a mutex that is held, or that a condition's waiter will take back.
@inline(never) func destroyedBusy(_ mutex: UnsafeRawPointer, _ frame: UnsafeRawPointer) {
  guard let arena = hck_arena_get() else { return }
  let owner = isLocked(mutex) ? mutexOwner(mutex) : 0
  if owner != 0 && isInherited(owner, arena) { return }
  let word = mutexWord(mutex)
  raise(HCK_ALARM_DESTROY_HELD, word, owner: owner, findHolder(word, tid: owner, arena), frame)
}

/// Before a mutex is initialised its memory may be anything. Only where another thread that lives is
/// on record to hold it, and the memory says so too, is it a lock. Where that is the same thread, the
/// memory was given up with the lock held in it.
@inline(__always) func checkInit(_ mutex: UnsafeRawPointer, _ frame: UnsafeRawPointer) {
  if mutexOwner(mutex) != 0, isLocked(mutex) { initOverHeld(mutex, frame) }
}

@inline(never) private func initOverHeld(_ mutex: UnsafeRawPointer, _ frame: UnsafeRawPointer) {
  let owner = mutexOwner(mutex)
  let word = mutexWord(mutex)
  guard let arena = hck_arena_get(), let holder = findHolder(word, tid: owner, arena),
    hck_load32(&holder.slot.pointee.state) == HCK_SLOT_LIVE.rawValue
  else { return }
  raise(HCK_ALARM_INIT_HELD, word, owner: owner, holder, frame)
}

/// A condition is waited for with a mutex that the thread is not on record to hold. False where it
/// does not hold it: then what it has after the wait is the wait's, and no hold of its own.
@inline(never) func checkConditionMutex(
  _ condition: UnsafeRawPointer, _ mutex: UnsafeRawPointer, _ slot: Slot,
  _ frame: UnsafeRawPointer
) -> Bool {
  let owner = mutexOwner(mutex)
  guard let arena = hck_arena_get(), !isLocked(mutex) || (owner != 0 && owner != slot.pointee.tid),
    owner == 0 || !isInherited(owner, arena)
  else { return true }
  raise(
    HCK_ALARM_CONDITION_WITHOUT_MUTEX, resourceWord(condition, HCK_CONDITION),
    other: UInt64(UInt(bitPattern: mutex)), frame)
  return false
}

// MARK: - Read-write locks

private func writer(_ lock: UnsafeRawPointer) -> UInt32 {
  lock.load(fromByteOffset: hck_rwlock_writer_offset(), as: UInt32.self)
}
private func readers(_ lock: UnsafeRawPointer) -> UInt32 {
  lock.load(fromByteOffset: hck_rwlock_readers_offset(), as: UInt32.self) >> 3
}

/// The thread's lock was refused with EDEADLK, since it holds it for writing. No misuse yet: it may
/// look at the result. It did not where it unlocks once more than it holds it.
@inline(never) func refusedLock(
  _ slot: Slot, _ word: ResourceWord, _ frame: UnsafeRawPointer
) {
  guard let arena = hck_arena_get() else { return }
  let refusal = hck_refusal()
  if refusal.pointee.word == word { return }
  hck_site(slot, &refusal.pointee.site, frame)
  refusal.pointee.has_held = 0
  if let holder = findHolder(word, tid: slot.pointee.tid, arena) {
    refusal.pointee.held = holder.site
    refusal.pointee.has_held = 1
  }
  refusal.pointee.word = word
}

/// A read-write lock is unlocked by a thread that is not on record to hold it.
@inline(never) func checkReadWriteUnlock(
  _ lock: UnsafeRawPointer, _ slot: Slot, _ frame: UnsafeRawPointer
) {
  guard let arena = hck_arena_get() else { return }
  let word = readWriteWord(lock)
  let owner = writer(lock)
  if owner != 0 {
    guard owner != slot.pointee.tid, !isInherited(owner, arena) else { return }
    raise(
      HCK_ALARM_FOREIGN_UNLOCK, word, owner: owner, findHolder(word, tid: owner, arena), frame)
    return
  }
  // Of readers the lock knows the number alone.
  guard readers(lock) == 0 else { return }
  let refusal = hck_refusal()
  if refusal.pointee.word == word {
    refusal.pointee.word = 0
    raise(
      HCK_ALARM_WRITE_TWICE, word,
      otherSite: refusal.pointee.has_held != 0 ? hck_refusal_held(refusal) : nil,
      site: hck_refusal_site(refusal))
  } else {
    raise(HCK_ALARM_UNLOCK_OF_UNLOCKED, word, frame)
  }
}

/// A read-write lock is destroyed, or initialised: glibc does not look whether it is held.
@inline(__always) func checkReadWriteEnd(
  _ lock: UnsafeRawPointer, _ kind: hck_alarm_kind, _ frame: UnsafeRawPointer
) {
  if writer(lock) != 0 || readers(lock) != 0 { endedHeld(lock, kind, frame) }
}

@inline(never) private func endedHeld(
  _ lock: UnsafeRawPointer, _ kind: hck_alarm_kind, _ frame: UnsafeRawPointer
) {
  guard let arena = hck_arena_get() else { return }
  let word = readWriteWord(lock)
  let owner = writer(lock)
  guard let holder = findHolder(word, tid: owner, isShared: owner == 0, arena) else { return }
  if kind == HCK_ALARM_INIT_HELD,
    hck_load32(&holder.slot.pointee.state) != HCK_SLOT_LIVE.rawValue
  {
    return
  }
  raise(kind, word, owner: holder.slot.pointee.tid, holder, frame)
}
