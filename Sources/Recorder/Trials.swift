// Tries for locks that failed: how many since the thread got on, for what, and what it held. Threads
// that fail in turn, each holding what another one tries for, are in a livelock.
//
// Written by the slot's own thread; a signal's handler that interrupts it is not counted. Nothing here
// is on the way of a lock that is taken, but for one word that a nested one reads.
internal import CHangcheck

/// Counts a try that failed or a wait that ended without the lock. Where and what the thread holds is
/// kept once a tick of the clock. Async-signal-safe; leaves errno alone.
@inline(never) public func triedInVain(_ word: ResourceWord, _ frame: UnsafeRawPointer) {
  guard let slot = hck_slot_of_thread(), let arena = hck_arena_get(),
    slot.pointee.trial.version & 1 == 0
  else { return }
  let lock = word & ~heldFlags
  let now = hck_load32(&arena.pointee.clock)
  if slot.pointee.trial.lock == lock, slot.pointee.trial.last == now {
    slot.pointee.trial.failures &+= 1
    return
  }
  slot.pointee.trial.version &+= 1
  hck_order()
  if slot.pointee.trial.lock == 0 {
    slot.pointee.trial.failures = 0
    slot.pointee.trial.since = now
  }
  slot.pointee.trial.lock = lock
  slot.pointee.trial.failures &+= 1
  slot.pointee.trial.last = now
  slot.pointee.trial.owner = owner(of: lock)
  slot.pointee.trial.site.resource = word
  hck_trial_site(slot, frame)
  keepHolds(slot)
  hck_order()
  slot.pointee.trial.version &+= 1
}

/// The thread has got a lock while it holds others: by a try, or the one that it had tried for.
@inline(never) func gotOn(_ slot: Slot, _ index: UInt64) {
  let word = (slot.pointee.held + Int(truncatingIfNeeded: index)).pointee.resource
  guard index != 0, word & timedBit != 0 || word & ~heldFlags == slot.pointee.trial.lock else {
    return
  }
  slot.pointee.trial.lock = 0
}

/// The same of a lock that does not go on record: whether the thread holds others is not known.
@inline(never) public func gotByTry() {
  if let slot = hck_slot_of_thread() { slot.pointee.trial.lock = 0 }
}

private func keepHolds(_ slot: Slot) {
  var index = slot.pointee.count
  var kept: UInt32 = 0
  withUnsafeMutablePointer(to: &slot.pointee.trial.holds) { holds in
    let room = UnsafeMutableRawPointer(holds).assumingMemoryBound(to: hck_entry.self)
    while index > 0, kept < UInt32(HCK_TRIAL_HELD) {
      index &-= 1
      let entry = slot.pointee.held + Int(truncatingIfNeeded: index)
      if entry.pointee.resource == 0 || entry.pointee.resource == holeBit { continue }
      (room + Int(kept)).pointee = entry.pointee
      kept &+= 1
    }
  }
  slot.pointee.trial.held = kept
}

/// Who holds a lock, as its memory says, which the caller has just touched.
private func owner(of lock: ResourceWord) -> UInt32 {
  let address = UInt(truncatingIfNeeded: lock & HCK_ADDRESS_MASK)
  func word(_ offset: Int) -> UInt32 {
    guard let word = UnsafePointer<UInt32>(bitPattern: address &+ UInt(bitPattern: offset)) else {
      return 0
    }
    return hck_load32(word)
  }
  switch UInt32(truncatingIfNeeded: lock >> UInt64(HCK_KIND_SHIFT)) & 15 {
  case HCK_MUTEX.rawValue:
    return word(hck_mutex_owner_offset())
  case HCK_RWLOCK.rawValue:
    return word(hck_rwlock_writer_offset())
  case HCK_FUTEX_LOCK.rawValue: return word(0) & 0x3fff_ffff
  default: return 0
  }
}
