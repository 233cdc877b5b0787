// sem_t. libdispatch's own lie inside its objects and are waited for by its own code.
public import CHangAgent
public import CHangcheck

public typealias PosixSemaphore = UnsafeMutablePointer<sem_t>

@inline(__always) private func word(_ semaphore: UnsafeRawPointer) -> ResourceWord {
  resourceWord(semaphore, HCK_POSIX_SEMAPHORE)
}

/// Each leaves errno to the real function. All that wait are points of cancellation: the unwinding
/// passes through these frames, and the wait is cleared when the thread ends.
@inline(__always) private func wait(
  _ semaphore: PosixSemaphore, _ flags: UInt64, _ frame: UnsafeRawPointer, _ real: () -> Int32
) -> Int32 {
  guard let slot = currentSlot(), hck_is_inner(frame) == 0 else { return real() }
  let before = beginWait(slot, word(semaphore) | flags)
  let result = real()
  endWait(slot, before)
  if result == 0 {
    tally(slot, word(semaphore), HCK_TAKE, frame)
    takeOver(slot, word(semaphore))
  } else if flags != 0 {
    triedInVain(word(semaphore), frame)
  }
  return result
}

@c(sem_wait) public func semaphoreWait(_ semaphore: PosixSemaphore) -> Int32 {
  wait(semaphore, 0, hck_frame()) { hck_real_sem_wait(semaphore) }
}

@c(sem_timedwait) public func semaphoreTimedWait(_ semaphore: PosixSemaphore, _ time: Time) -> Int32
{
  wait(semaphore, timedBit, hck_frame()) { hck_real_sem_timedwait(semaphore, time) }
}

@c(sem_clockwait) public func semaphoreClockWait(
  _ semaphore: PosixSemaphore, _ clock: Int32, _ time: Time
) -> Int32 {
  wait(semaphore, timedBit, hck_frame()) { hck_real_sem_clockwait(semaphore, clock, time) }
}

@c(sem_trywait) public func semaphoreTryWait(_ semaphore: PosixSemaphore) -> Int32 {
  let result = hck_real_sem_trywait(semaphore)
  let frame = hck_frame()
  guard let slot = currentSlot(), hck_is_inner(frame) == 0 else { return result }
  if result == 0 {
    tally(slot, word(semaphore), HCK_TAKE, frame)
    takeOver(slot, word(semaphore))
  } else {
    triedInVain(word(semaphore), frame)
  }
  return result
}

@c(sem_post) public func semaphorePost(_ semaphore: PosixSemaphore) -> Int32 {
  let frame = hck_frame()
  if let slot = currentSlot(), hck_is_inner(frame) == 0 {
    tally(slot, word(semaphore), HCK_GIVE, frame)
    handOver(slot, word(semaphore))
  }
  return hck_real_sem_post(semaphore)
}

@c(sem_init) public func semaphoreInit(
  _ semaphore: PosixSemaphore, _ isShared: Int32, _ value: UInt32
) -> Int32 {
  let result = hck_real_sem_init(semaphore, isShared, value)
  let frame = hck_frame()
  if result == 0, let slot = currentSlot(), hck_is_inner(frame) == 0 {
    tallyCreation(slot, word(semaphore), value: UInt64(value), frame)
  }
  return result
}

@c(sem_destroy) public func semaphoreDestroy(_ semaphore: PosixSemaphore) -> Int32 {
  if let arena = hck_arena_get() { forgetTallies(word(semaphore), in: arena) }
  return hck_real_sem_destroy(semaphore)
}
