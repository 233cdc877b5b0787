// One-time initialisations, priority-inheriting futexes and continuations: what the C stubs of
// CHangAgent/runtime.c and sandbox.c record.
public import CHangAgent
public import CHangcheck

/// A thread asks for a value that is made once: it may have to wait for the thread that makes it.
/// Where that is itself, it will for ever: Swift's once then tries again and again, libdispatch's
/// traps.
@c(hck_once_begin) public func onceBegin(_ once: UnsafeMutablePointer<hck_once>) {
  let word = once.pointee.word | UInt64(HCK_ONCE.rawValue) &<< UInt64(HCK_KIND_SHIFT)
  once.pointee.word = word
  guard let slot = currentSlot() else { return }
  once.pointee.slot = slot
  if let entry = ownEntry(slot, word) {
    raise(HCK_ALARM_ONCE_REENTERED, word, waits: true, otherSite: entry, once.pointee.frame)
  }
  once.pointee.before = beginWait(slot, word)
  if hck_is_steered() != 0 { steer(once.pointee.frame) }
}

/// The initialiser is this thread's to run.
@c(hck_once_run) public func onceRun(_ value: UnsafeMutableRawPointer?) {
  guard let once = value?.assumingMemoryBound(to: hck_once.self) else { return }
  guard let slot = once.pointee.slot else { return once.pointee.body(once.pointee.context) }
  endWait(slot, once.pointee.before)
  acquired(slot, once.pointee.word, once.pointee.frame)
  once.pointee.body(once.pointee.context)
  // A fork may have put the thread into another process, with no slot or another one.
  guard hck_slot_of_thread() == slot else { return }
  released(slot, once.pointee.word)
  // What was made is everybody's from here on.
  published(slot)
}

@c(hck_once_end) public func onceEnd(_ once: UnsafeMutablePointer<hck_once>) {
  if let slot = once.pointee.slot, hck_slot_of_thread() == slot {
    endWait(slot, once.pointee.before)
  }
}

/// The newest entry of the thread's own for a resource.
private func ownEntry(_ slot: Slot, _ word: ResourceWord) -> UnsafePointer<hck_entry>? {
  var index = slot.pointee.count
  while index > 0 {
    index &-= 1
    let entry = slot.pointee.held + Int(index)
    if entry.pointee.resource == word { return UnsafePointer(entry) }
  }
  return nil
}

// MARK: - Futexes

// Swift's once is a futex too, behind a flag of four bytes: then the wait is on record already.
@inline(__always) private func futexWord(_ slot: Slot, _ address: UnsafeRawPointer) -> ResourceWord
{
  let once = resourceWord(address - 4, HCK_ONCE)
  return slot.pointee.wait == once ? once : resourceWord(address, HCK_FUTEX_LOCK)
}

@c(hck_futex_begin) public func futexBegin(_ address: UnsafeRawPointer) -> UInt64 {
  guard let slot = currentSlot() else { return 0 }
  return beginWait(slot, futexWord(slot, address))
}

/// The kernel refuses a wait that would close a circle of owners (EDEADLK): a Mutex then traps, with
/// other words.
@c(hck_futex_end) public func futexEnd(
  _ address: UnsafeRawPointer, _ before: UInt64, _ error: Int32, _ frame: UnsafeRawPointer
) {
  guard let slot = hck_slot_of_thread() else { return }
  // A once that the thread itself is in was told when it came back to it.
  let isOnce = slot.pointee.wait >> UInt64(HCK_KIND_SHIFT) == UInt64(HCK_ONCE.rawValue)
  if error == deadlockError, !isOnce || ownEntry(slot, slot.pointee.wait) == nil {
    raise(HCK_ALARM_FUTEX_DEADLOCK, slot.pointee.wait, waits: true, frame)
  }
  endWait(slot, before)
}

// MARK: - Continuations

/// A leak is no trap; but the stack by which its last owner went away is all that there is to know,
/// and it is whole only while the thread stands.
@c(hck_continuation_misused) public func continuationMisused(
  _ text: UnsafePointer<CChar>, _ frame: UnsafeRawPointer
) {
  raise(HCK_ALARM_CONTINUATION, 0, waits: true, text: text, frame)
}
