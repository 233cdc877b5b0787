// The program's end by exit: what is left behind can only be seen now. Whoever watches decides
// whether it is wrong; a program that leaves nothing behind is not held up.
public import CHangcheck

/// Says what is left behind by a program that ends now: locks of threads that have ended, and
/// groups that others wait for. The caller has made sure that somebody watches, and
/// that this process is the arena's.
public func tellEnd(
  _ arena: UnsafeMutablePointer<hck_arena>, _ frame: UnsafeRawPointer
) {
  tellLeftLocked(arena)
  tellWaitedFor(arena, frame)
  if hck_load64(&arena.pointee.orders) != 0 { letItBeSeen(arena) }
}

/// A program that is gone cannot be asked where its code lay: one that ends some milliseconds after
/// its start, with lock orders to tell of, waits until that is known, a quarter of a second at most.
private func letItBeSeen(_ arena: UnsafeMutablePointer<hck_arena>) {
  let begun = hck_monotonic_ns()
  while hck_load32(&arena.pointee.seen) == 0, hck_monotonic_ns() &- begun < 250_000_000 {
    hck_alarm_sleep(&arena.pointee.seen, 0, 2)
  }
}

/// Locks of threads that have ended. Their memory may be gone: the kernel reads it.
private func tellLeftLocked(_ arena: UnsafeMutablePointer<hck_arena>) {
  var index: UInt32 = 0
  let slots = hck_load32(&arena.pointee.slots)
  while index < slots {
    let slot = slotAt(arena, index)
    index &+= 1
    guard hck_load32(&slot.pointee.state) == HCK_SLOT_EXITED.rawValue else { continue }
    let count = hck_load64(&slot.pointee.count)
    if count == 0 || count > slot.pointee.capacity { continue }
    let held = UnsafeMutableRawPointer(arena).advanced(by: Int(slot.pointee.held_offset))
      .assumingMemoryBound(to: hck_entry.self)
    var entry = 0
    while entry < Int(truncatingIfNeeded: count) {
      let word = hck_load64(&held[entry].resource)
      if word & ~heldFlags & ~UInt64(HCK_ADDRESS_MASK) == UInt64(HCK_MUTEX.rawValue)
        &<< UInt64(HCK_KIND_SHIFT),
        isMutexHeld(word & UInt64(HCK_ADDRESS_MASK), by: slot.pointee.tid, in: arena.pointee.pid)
      {
        raise(HCK_ALARM_EXIT_HELD, word, other: UInt64(slot.pointee.tid), site: held + entry)
      }
      entry &+= 1
    }
  }
}

/// A robust mutex tells its next owner, a shared one is another process's as well.
private func isMutexHeld(_ address: UInt64, by tid: UInt32, in pid: UInt32) -> Bool {
  // Lock word, count, owner, users, kind.
  var words: (UInt32, UInt32, UInt32, UInt32, UInt32) = (0, 0, 0, 0, 0)
  let size = MemoryLayout.size(ofValue: words)
  let got = withUnsafeMutablePointer(to: &words) {
    hck_read_memory(Int32(bitPattern: pid), address, UnsafeMutableRawPointer($0), size)
  }
  return got == Int64(size) && words.0 != 0 && words.2 == tid && words.4 & (16 | 128) == 0
}

/// Groups that other threads wait for without a limit. Their number is bounded, and only the last
/// alarm waits: all are read together. A semaphore is left out: workers wait for one as a rule, and
/// who would have signalled it nobody can say.
private func tellWaitedFor(
  _ arena: UnsafeMutablePointer<hck_arena>, _ frame: UnsafeRawPointer
) {
  var count = 0
  var index: UInt32 = 0
  let slots = hck_load32(&arena.pointee.slots)
  while index < slots {
    if isWaitedFor(slotAt(arena, index)) { count &+= 1 }
    index &+= 1
  }
  if count > 8 { count = 8 }
  index = 0
  while index < slots, count > 0 {
    let slot = slotAt(arena, index)
    index &+= 1
    guard isWaitedFor(slot) else { continue }
    count &-= 1
    let word = hck_load64(&slot.pointee.wait)
    raise(HCK_ALARM_AT_EXIT, word, waits: count == 0, frame)
  }
}

private func isWaitedFor(_ slot: Slot) -> Bool {
  guard hck_load32(&slot.pointee.state) == HCK_SLOT_LIVE.rawValue, slot != hck_slot_of_thread()
  else { return false }
  let word = hck_load64(&slot.pointee.wait)
  return UInt32(truncatingIfNeeded: word >> UInt64(HCK_KIND_SHIFT)) & 15 == HCK_GROUP.rawValue
    && word & timedBit == 0
}
