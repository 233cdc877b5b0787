// Condition variables, which give their mutex back while they wait, and barriers.
public import CHangAgent
public import CHangcheck

public typealias Condition = UnsafeMutablePointer<pthread_cond_t>

@inline(__always) private func beginConditionWait(
  _ slot: Slot, _ condition: UnsafeRawPointer, _ mutex: UnsafeRawPointer, _ flags: UInt64
) -> (wait: ResourceWord, mutex: UInt64) {
  let mutexBefore = slot.pointee.wait_aux
  released(slot, mutexWord(mutex))
  slot.pointee.wait_aux = UInt64(UInt(bitPattern: mutex))
  hck_order()
  return (beginWait(slot, resourceWord(condition, HCK_CONDITION, flags)), mutexBefore)
}

/// Whatever it returns but an error of use, the mutex is held again. EPERM (1), EINVAL (22): it was
/// never given back, so the entry comes back as well.
@inline(__always) private func endConditionWait(
  _ slot: Slot, _ mutex: UnsafeRawPointer, _ before: (wait: ResourceWord, mutex: UInt64),
  _ frame: UnsafeRawPointer
) {
  slot.pointee.wait_aux = before.mutex
  endWait(slot, before.wait)
  acquired(slot, mutexWord(mutex), frame)
}

@c(pthread_cond_wait) public func conditionWait(_ condition: Condition, _ mutex: Mutex) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_pthread_cond_wait(condition, mutex) }
  let before = beginConditionWait(slot, condition, mutex, 0)
  let result = hck_real_pthread_cond_wait(condition, mutex)
  endConditionWait(slot, mutex, before, hck_frame())
  return result
}

@c(pthread_cond_timedwait) public func conditionTimedWait(
  _ condition: Condition, _ mutex: Mutex, _ time: Time
) -> Int32 {
  guard let slot = currentSlot() else {
    return hck_real_pthread_cond_timedwait(condition, mutex, time)
  }
  let before = beginConditionWait(slot, condition, mutex, timedBit)
  let result = hck_real_pthread_cond_timedwait(condition, mutex, time)
  endConditionWait(slot, mutex, before, hck_frame())
  return result
}

@c(pthread_cond_clockwait) public func conditionClockWait(
  _ condition: Condition, _ mutex: Mutex, _ clock: Int32, _ time: Time
) -> Int32 {
  guard let slot = currentSlot() else {
    return hck_real_pthread_cond_clockwait(condition, mutex, clock, time)
  }
  let before = beginConditionWait(slot, condition, mutex, timedBit)
  let result = hck_real_pthread_cond_clockwait(condition, mutex, clock, time)
  endConditionWait(slot, mutex, before, hck_frame())
  return result
}

@c(cnd_wait) public func c11Wait(_ condition: UnsafeMutablePointer<cnd_t>, _ mutex: C11Mutex)
  -> Int32
{
  guard let slot = currentSlot() else { return hck_real_cnd_wait(condition, mutex) }
  let before = beginConditionWait(slot, condition, mutex, 0)
  let result = hck_real_cnd_wait(condition, mutex)
  endConditionWait(slot, mutex, before, hck_frame())
  return result
}

@c(cnd_timedwait) public func c11TimedWait(
  _ condition: UnsafeMutablePointer<cnd_t>, _ mutex: C11Mutex, _ time: Time
) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_cnd_timedwait(condition, mutex, time) }
  let before = beginConditionWait(slot, condition, mutex, timedBit)
  let result = hck_real_cnd_timedwait(condition, mutex, time)
  endConditionWait(slot, mutex, before, hck_frame())
  return result
}

@c(pthread_barrier_wait) public func barrierWait(_ barrier: UnsafeMutablePointer<pthread_barrier_t>)
  -> Int32
{
  guard let slot = currentSlot() else { return hck_real_pthread_barrier_wait(barrier) }
  let before = beginWait(slot, resourceWord(barrier, HCK_BARRIER))
  let result = hck_real_pthread_barrier_wait(barrier)
  endWait(slot, before)
  return result
}
