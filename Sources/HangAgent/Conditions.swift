// Condition variables, which give their mutex back while they wait, and barriers.
public import CHangAgent
public import CHangcheck

public typealias Condition = UnsafeMutablePointer<pthread_cond_t>

@inline(__always) private func beginConditionWait(
  _ slot: Slot, _ condition: UnsafeRawPointer, _ mutex: UnsafeRawPointer, _ flags: UInt64,
  _ frame: UnsafeRawPointer
) -> (wait: ResourceWord, mutex: UInt64, holds: Bool) {
  let mutexBefore = slot.pointee.wait_aux
  let holds =
    released(slot, mutexWord(mutex)) || checkConditionMutex(condition, mutex, slot, frame)
  slot.pointee.wait_aux = UInt64(UInt(bitPattern: mutex))
  hck_order()
  return (beginWait(slot, resourceWord(condition, HCK_CONDITION, flags)), mutexBefore, holds)
}

/// Whatever it returns but an error of use, the mutex is held again. EPERM (1), EINVAL (22): it was
/// never given back, so the entry comes back as well.
@inline(__always) private func endConditionWait(
  _ slot: Slot, _ condition: UnsafeRawPointer, _ mutex: UnsafeRawPointer,
  _ before: (wait: ResourceWord, mutex: UInt64, holds: Bool),
  _ frame: UnsafeRawPointer
) {
  slot.pointee.wait_aux = before.mutex
  endWait(slot, before.wait)
  takeOver(slot, resourceWord(condition, HCK_CONDITION))
  if before.holds { acquired(slot, mutexWord(mutex), frame) }
}

@c(pthread_cond_wait) public func conditionWait(_ condition: Condition, _ mutex: Mutex) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_pthread_cond_wait(condition, mutex) }
  let before = beginConditionWait(slot, condition, mutex, 0, hck_frame())
  let result = hck_real_pthread_cond_wait(condition, mutex)
  endConditionWait(slot, condition, mutex, before, hck_frame())
  return result
}

@c(pthread_cond_timedwait) public func conditionTimedWait(
  _ condition: Condition, _ mutex: Mutex, _ time: Time
) -> Int32 {
  guard let slot = currentSlot() else {
    return hck_real_pthread_cond_timedwait(condition, mutex, time)
  }
  let before = beginConditionWait(slot, condition, mutex, timedBit, hck_frame())
  let result = hck_real_pthread_cond_timedwait(condition, mutex, time)
  endConditionWait(slot, condition, mutex, before, hck_frame())
  return result
}

@c(pthread_cond_clockwait) public func conditionClockWait(
  _ condition: Condition, _ mutex: Mutex, _ clock: Int32, _ time: Time
) -> Int32 {
  guard let slot = currentSlot() else {
    return hck_real_pthread_cond_clockwait(condition, mutex, clock, time)
  }
  let before = beginConditionWait(slot, condition, mutex, timedBit, hck_frame())
  let result = hck_real_pthread_cond_clockwait(condition, mutex, clock, time)
  endConditionWait(slot, condition, mutex, before, hck_frame())
  return result
}

@c(cnd_wait) public func c11Wait(_ condition: UnsafeMutablePointer<cnd_t>, _ mutex: C11Mutex)
  -> Int32
{
  guard let slot = currentSlot() else { return hck_real_cnd_wait(condition, mutex) }
  let before = beginConditionWait(slot, condition, mutex, 0, hck_frame())
  let result = hck_real_cnd_wait(condition, mutex)
  endConditionWait(slot, condition, mutex, before, hck_frame())
  return result
}

@c(cnd_timedwait) public func c11TimedWait(
  _ condition: UnsafeMutablePointer<cnd_t>, _ mutex: C11Mutex, _ time: Time
) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_cnd_timedwait(condition, mutex, time) }
  let before = beginConditionWait(slot, condition, mutex, timedBit, hck_frame())
  let result = hck_real_cnd_timedwait(condition, mutex, time)
  endConditionWait(slot, condition, mutex, before, hck_frame())
  return result
}

/// Who is given a signal is not known, only that there was one: a wait that nothing ends may have
/// missed it.
@inline(__always) private func signalled(
  _ condition: UnsafeRawPointer, _ frame: UnsafeRawPointer
) {
  if let slot = currentSlot() {
    tally(slot, resourceWord(condition, HCK_CONDITION), HCK_GIVE, frame)
    handOver(slot, resourceWord(condition, HCK_CONDITION))
  }
}

@c(pthread_cond_signal) public func conditionSignal(_ condition: Condition) -> Int32 {
  signalled(condition, hck_frame())
  return hck_real_pthread_cond_signal(condition)
}

@c(pthread_cond_broadcast) public func conditionBroadcast(_ condition: Condition) -> Int32 {
  signalled(condition, hck_frame())
  return hck_real_pthread_cond_broadcast(condition)
}

@c(cnd_signal) public func c11Signal(_ condition: UnsafeMutablePointer<cnd_t>) -> Int32 {
  signalled(condition, hck_frame())
  return hck_real_cnd_signal(condition)
}

@c(cnd_broadcast) public func c11Broadcast(_ condition: UnsafeMutablePointer<cnd_t>) -> Int32 {
  signalled(condition, hck_frame())
  return hck_real_cnd_broadcast(condition)
}

/// glibc waits here until all waiters have gone, who may need a signal for that.
@c(pthread_cond_destroy) public func conditionDestroy(_ condition: Condition) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_pthread_cond_destroy(condition) }
  let mutexBefore = slot.pointee.wait_aux
  slot.pointee.wait_aux = 0
  hck_order()
  let before = beginWait(slot, resourceWord(condition, HCK_CONDITION))
  let result = hck_real_pthread_cond_destroy(condition)
  slot.pointee.wait_aux = mutexBefore
  endWait(slot, before)
  return result
}

@c(pthread_barrier_wait) public func barrierWait(_ barrier: UnsafeMutablePointer<pthread_barrier_t>)
  -> Int32
{
  guard let slot = currentSlot() else { return hck_real_pthread_barrier_wait(barrier) }
  let before = beginWait(slot, resourceWord(barrier, HCK_BARRIER))
  handOver(slot, resourceWord(barrier, HCK_BARRIER))
  let result = hck_real_pthread_barrier_wait(barrier)
  endWait(slot, before)
  takeOver(slot, resourceWord(barrier, HCK_BARRIER))
  return result
}
