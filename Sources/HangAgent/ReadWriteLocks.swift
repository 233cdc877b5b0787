// Read/write locks and spin locks.
public import CHangAgent
public import CHangcheck

public typealias ReadWriteLock = UnsafeMutablePointer<pthread_rwlock_t>
public typealias SpinLock = UnsafeMutablePointer<pthread_spinlock_t>

@inline(__always) func readWriteWord(_ lock: UnsafeRawPointer) -> ResourceWord {
  resourceWord(lock, HCK_RWLOCK)
}

@c(pthread_rwlock_rdlock) public func readLock(_ lock: ReadWriteLock) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_pthread_rwlock_rdlock(lock) }
  let before = beginWait(slot, readWriteWord(lock) | sharedBit)
  let result = hck_real_pthread_rwlock_rdlock(lock)
  endWait(slot, before)
  if result == deadlockError { refusedLock(slot, readWriteWord(lock), hck_frame()) }
  return result == 0 ? acquired(slot, readWriteWord(lock) | sharedBit, hck_frame(), result) : result
}

@c(pthread_rwlock_tryrdlock) public func readTryLock(_ lock: ReadWriteLock) -> Int32 {
  let result = hck_real_pthread_rwlock_tryrdlock(lock)
  if result == 0, let slot = currentSlot() {
    acquired(slot, readWriteWord(lock) | sharedBit | timedBit, hck_frame())
  } else if result == busyError {
    triedInVain(readWriteWord(lock) | sharedBit, hck_frame())
  }
  return result
}

@c(pthread_rwlock_timedrdlock) public func readTimedLock(_ lock: ReadWriteLock, _ time: Time)
  -> Int32
{
  guard let slot = currentSlot() else { return hck_real_pthread_rwlock_timedrdlock(lock, time) }
  let before = beginWait(slot, readWriteWord(lock) | sharedBit | timedBit)
  let result = hck_real_pthread_rwlock_timedrdlock(lock, time)
  endWait(slot, before)
  if isInVain(result) { triedInVain(readWriteWord(lock) | sharedBit, hck_frame()) }
  return result == 0
    ? acquired(slot, readWriteWord(lock) | sharedBit | timedBit, hck_frame(), result) : result
}

@c(pthread_rwlock_clockrdlock) public func readClockLock(
  _ lock: ReadWriteLock, _ clock: Int32, _ time: Time
) -> Int32 {
  guard let slot = currentSlot() else {
    return hck_real_pthread_rwlock_clockrdlock(lock, clock, time)
  }
  let before = beginWait(slot, readWriteWord(lock) | sharedBit | timedBit)
  let result = hck_real_pthread_rwlock_clockrdlock(lock, clock, time)
  endWait(slot, before)
  if isInVain(result) { triedInVain(readWriteWord(lock) | sharedBit, hck_frame()) }
  return result == 0
    ? acquired(slot, readWriteWord(lock) | sharedBit | timedBit, hck_frame(), result) : result
}

@c(pthread_rwlock_wrlock) public func writeLock(_ lock: ReadWriteLock) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_pthread_rwlock_wrlock(lock) }
  let before = beginWait(slot, readWriteWord(lock))
  let result = hck_real_pthread_rwlock_wrlock(lock)
  endWait(slot, before)
  if result == deadlockError { refusedLock(slot, readWriteWord(lock), hck_frame()) }
  return result == 0 ? acquired(slot, readWriteWord(lock), hck_frame(), result) : result
}

@c(pthread_rwlock_trywrlock) public func writeTryLock(_ lock: ReadWriteLock) -> Int32 {
  let result = hck_real_pthread_rwlock_trywrlock(lock)
  if result == 0, let slot = currentSlot() {
    acquired(slot, readWriteWord(lock) | timedBit, hck_frame())
  } else if result == busyError {
    triedInVain(readWriteWord(lock), hck_frame())
  }
  return result
}

@c(pthread_rwlock_timedwrlock) public func writeTimedLock(_ lock: ReadWriteLock, _ time: Time)
  -> Int32
{
  guard let slot = currentSlot() else { return hck_real_pthread_rwlock_timedwrlock(lock, time) }
  let before = beginWait(slot, readWriteWord(lock) | timedBit)
  let result = hck_real_pthread_rwlock_timedwrlock(lock, time)
  endWait(slot, before)
  if isInVain(result) { triedInVain(readWriteWord(lock), hck_frame()) }
  return result == 0 ? acquired(slot, readWriteWord(lock) | timedBit, hck_frame(), result) : result
}

@c(pthread_rwlock_clockwrlock) public func writeClockLock(
  _ lock: ReadWriteLock, _ clock: Int32, _ time: Time
) -> Int32 {
  guard let slot = currentSlot() else {
    return hck_real_pthread_rwlock_clockwrlock(lock, clock, time)
  }
  let before = beginWait(slot, readWriteWord(lock) | timedBit)
  let result = hck_real_pthread_rwlock_clockwrlock(lock, clock, time)
  endWait(slot, before)
  if isInVain(result) { triedInVain(readWriteWord(lock), hck_frame()) }
  return result == 0 ? acquired(slot, readWriteWord(lock) | timedBit, hck_frame(), result) : result
}

/// A writer may be given back by another thread than took it; of readers the lock's memory keeps
/// the number alone, and the reader of the arena compares it.
@c(pthread_rwlock_unlock) public func readWriteUnlock(_ lock: ReadWriteLock) -> Int32 {
  if let slot = hck_slot_of_thread(), !released(slot, readWriteWord(lock)) {
    checkReadWriteUnlock(lock, slot, hck_frame())
  }
  return hck_real_pthread_rwlock_unlock(lock)
}

@c(pthread_rwlock_init) public func readWriteInit(
  _ lock: ReadWriteLock, _ attributes: UnsafePointer<pthread_rwlockattr_t>?
) -> Int32 {
  checkReadWriteEnd(lock, HCK_ALARM_INIT_HELD, hck_frame())
  let result = hck_real_pthread_rwlock_init(lock, attributes)
  if let arena = hck_arena_get() { forget(readWriteWord(lock), in: arena) }
  madeLock(readWriteWord(lock))
  return result
}

@c(pthread_rwlock_destroy) public func readWriteDestroy(_ lock: ReadWriteLock) -> Int32 {
  checkReadWriteEnd(lock, HCK_ALARM_DESTROY_HELD, hck_frame())
  let result = hck_real_pthread_rwlock_destroy(lock)
  if result == 0, let arena = hck_arena_get() {
    forget(readWriteWord(lock), in: arena)
    goneLock(readWriteWord(lock))
  }
  return result
}

@c(pthread_spin_lock) public func spinLock(_ lock: SpinLock) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_pthread_spin_lock(lock) }
  let word = resourceWord(lock, HCK_SPIN)
  let before = beginWait(slot, word)
  let result = hck_real_pthread_spin_lock(lock)
  endWait(slot, before)
  return result == 0 ? acquired(slot, word, hck_frame(), result) : result
}

@c(pthread_spin_trylock) public func spinTryLock(_ lock: SpinLock) -> Int32 {
  let result = hck_real_pthread_spin_trylock(lock)
  if result == 0, let slot = currentSlot() {
    acquired(slot, resourceWord(lock, HCK_SPIN) | timedBit, hck_frame())
  } else if result == busyError {
    triedInVain(resourceWord(lock, HCK_SPIN), hck_frame())
  }
  return result
}

@c(pthread_spin_unlock) public func spinUnlock(_ lock: SpinLock) -> Int32 {
  let word = resourceWord(lock, HCK_SPIN)
  if let slot = hck_slot_of_thread(), !released(slot, word), let arena = hck_arena_get() {
    checkSpinUnlock(lock, word, arena, hck_frame())
    forget(word, in: arena)
  }
  return hck_real_pthread_spin_unlock(lock)
}

@c(pthread_spin_init) public func spinInit(_ lock: SpinLock, _ isShared: Int32) -> Int32 {
  let word = resourceWord(lock, HCK_SPIN)
  checkSpinInit(word, hck_frame())
  if let arena = hck_arena_get() { forget(word, in: arena) }
  let result = hck_real_pthread_spin_init(lock, isShared)
  // What a free one looks like is the processor's.
  if result == 0 { hck_store32(&freeSpinLock, UInt32(bitPattern: lock.pointee)) }
  madeLock(word)
  return result
}

@c(pthread_spin_destroy) public func spinDestroy(_ lock: SpinLock) -> Int32 {
  goneLock(resourceWord(lock, HCK_SPIN))
  return hck_real_pthread_spin_destroy(lock)
}

// Written with one value alone, which the first initialisation shows.
nonisolated(unsafe) private var freeSpinLock: UInt32 = .max

/// A spin lock is unlocked that nobody holds.
@inline(never) private func checkSpinUnlock(
  _ lock: SpinLock, _ word: ResourceWord, _ arena: UnsafeMutablePointer<hck_arena>,
  _ frame: UnsafeRawPointer
) {
  guard UInt32(bitPattern: lock.pointee) == hck_load32(&freeSpinLock) else { return }
  raise(HCK_ALARM_UNLOCK_OF_UNLOCKED, word, frame)
}

/// A spin lock is initialised while a thread is on record to hold it.
@inline(never) private func checkSpinInit(_ word: ResourceWord, _ frame: UnsafeRawPointer) {
  guard let arena = hck_arena_get(), let holder = findHolder(word, tid: nil, arena),
    hck_load32(&holder.slot.pointee.state) == HCK_SLOT_LIVE.rawValue
  else { return }
  raise(HCK_ALARM_INIT_HELD, word, owner: holder.slot.pointee.tid, holder, frame)
}
