// dispatch_semaphore_t: permits have no owner, so takes and gives are counted by call site.
public import CHangAgent
public import CHangcheck

@inline(__always) private func word(_ semaphore: UnsafeRawPointer) -> ResourceWord {
  resourceWord(semaphore, HCK_SEMAPHORE)
}

@c(dispatch_semaphore_create) public func dispatchSemaphoreCreate(_ value: Int)
  -> UnsafeMutableRawPointer?
{
  let semaphore = hck_real_dispatch_semaphore_create(value)
  if let semaphore, let slot = currentSlot() {
    hck_saw_semaphore(semaphore, Int64(value))
    tallyCreation(slot, word(semaphore), value: UInt64(value), hck_frame())
  }
  return semaphore
}

/// Takes a permit that is there itself, as the real function would: the detour through it costs
/// half of what is allowed. A decrement whose result is not negative is all that the real one does
/// then, in the same order of memory; the permit of a thread that waits and was woken is not counted
/// there any more. Only where the first semaphore was seen to count so.
@c(dispatch_semaphore_wait) public func dispatchSemaphoreWait(
  _ semaphore: DispatchObject, _ timeout: UInt64
) -> Int {
  if hck_knows_permits() != 0, let slot = hck_slot_of_thread(),
    hck_semaphore_take(semaphore) != 0
  {
    let frame = hck_frame()
    takeOver(slot, word(semaphore))
    if hck_tally_again(slot, word(semaphore), HCK_TAKE.rawValue, frame) != 0 { return 0 }
    return firstTake(slot, semaphore, frame)
  }
  return waitForPermit(semaphore, timeout, hck_frame())
}

@inline(never) private func firstTake(
  _ slot: Slot, _ semaphore: DispatchObject, _ frame: UnsafeRawPointer
) -> Int {
  if !isInner(semaphore) { tally(slot, word(semaphore), HCK_TAKE, frame) }
  return 0
}

/// libdispatch's idle workers wait for semaphores that lie inside it: those are not the program's.
@inline(__always) private func isInner(_ semaphore: DispatchObject) -> Bool {
  hck_in_dispatch(UInt64(UInt(bitPattern: semaphore))) != 0
}

@inline(never) private func waitForPermit(
  _ semaphore: DispatchObject, _ timeout: UInt64, _ frame: UnsafeRawPointer
) -> Int {
  guard let slot = currentSlot(), !isInner(semaphore) else {
    return hck_real_dispatch_semaphore_wait(semaphore, timeout)
  }
  let flags = timeout == UInt64.max ? 0 : timedBit
  let before = timeout == 0 ? slot.pointee.wait : beginWait(slot, word(semaphore) | flags)
  let result = hck_real_dispatch_semaphore_wait(semaphore, timeout)
  endWait(slot, before)
  if result == 0 {
    tally(slot, word(semaphore), HCK_TAKE, frame)
    if isLock(semaphore) {
      acquired(slot, word(semaphore) | flags, frame)
    } else {
      takeOver(slot, word(semaphore))
    }
  } else {
    triedInVain(word(semaphore), frame)
  }
  return result
}

/// With `--predict-semaphores` one that lets one thread in is a lock.
@inline(__always) private func isLock(_ semaphore: DispatchObject) -> Bool {
  hck_learns_semaphores() != 0 && hck_knows_semaphores() != 0 && hck_semaphore_first(semaphore) == 1
}

@c(dispatch_semaphore_signal) public func dispatchSemaphoreSignal(_ semaphore: DispatchObject)
  -> Int
{
  let frame = hck_frame()
  if let slot = currentSlot() {
    handOver(slot, word(semaphore))
    if hck_tally_again(slot, word(semaphore), HCK_GIVE.rawValue, frame) == 0 {
      firstSignal(slot, semaphore, frame)
    }
    if hck_knows_semaphores() != 0, hck_semaphore_is_full(semaphore) != 0 {
      raise(HCK_ALARM_SEMAPHORE_HIGH, word(semaphore), frame)
    }
  }
  return hck_real_dispatch_semaphore_signal(semaphore)
}

@inline(never) private func firstSignal(
  _ slot: Slot, _ semaphore: DispatchObject, _ frame: UnsafeRawPointer
) {
  if !isInner(semaphore) { tally(slot, word(semaphore), HCK_GIVE, frame) }
}
