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

/// libdispatch's idle workers wait for some seconds for semaphores that lie inside it: those are not
/// the program's.
@c(dispatch_semaphore_wait) public func dispatchSemaphoreWait(
  _ semaphore: DispatchObject, _ timeout: UInt64
) -> Int {
  guard let slot = currentSlot() else {
    return hck_real_dispatch_semaphore_wait(semaphore, timeout)
  }
  var flags: UInt64 = 0
  if timeout != UInt64.max {
    if timeout == 0 || hck_in_dispatch(UInt64(UInt(bitPattern: semaphore))) != 0 {
      return unwaited(slot, semaphore, timeout, hck_frame())
    }
    flags = timedBit
  }
  let before = beginWait(slot, word(semaphore) | flags)
  let result = hck_real_dispatch_semaphore_wait(semaphore, timeout)
  endWait(slot, before)
  if result == 0 { tally(slot, word(semaphore), HCK_TAKE, hck_frame()) }
  return result
}

@inline(never) private func unwaited(
  _ slot: Slot, _ semaphore: DispatchObject, _ timeout: UInt64, _ frame: UnsafeRawPointer
) -> Int {
  let result = hck_real_dispatch_semaphore_wait(semaphore, timeout)
  if result == 0, hck_in_dispatch(UInt64(UInt(bitPattern: semaphore))) == 0 {
    tally(slot, word(semaphore), HCK_TAKE, frame)
  }
  return result
}

@c(dispatch_semaphore_signal) public func dispatchSemaphoreSignal(_ semaphore: DispatchObject)
  -> Int
{
  let frame = hck_frame()
  if let slot = currentSlot() {
    if hck_tally_again(slot, word(semaphore), HCK_GIVE.rawValue, frame) == 0 {
      firstSignal(slot, semaphore, frame)
    }
    // With a permit of its own outstanding a thread never sees as many as there were at first.
    if hck_knows_semaphores() != 0, hck_semaphore_first(semaphore) > 0,
      hck_semaphore_value(semaphore) >= hck_semaphore_first(semaphore)
    {
      raise(HCK_ALARM_SEMAPHORE_HIGH, word(semaphore), frame)
    }
  }
  return hck_real_dispatch_semaphore_signal(semaphore)
}

@inline(never) private func firstSignal(
  _ slot: Slot, _ semaphore: DispatchObject, _ frame: UnsafeRawPointer
) {
  if hck_in_dispatch(UInt64(UInt(bitPattern: semaphore))) == 0 {
    tally(slot, word(semaphore), HCK_GIVE, frame)
  }
}
