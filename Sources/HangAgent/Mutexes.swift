// pthread mutexes and C11's, which are the same: each does what it did, and is recorded around it.
//
// A lock is recorded as wanted before the call and as held after it, an unlock before the call: so
// what another thread reads is never a lock that its owner has already given back.
public import CHangAgent
public import CHangcheck

public typealias Mutex = UnsafeMutablePointer<pthread_mutex_t>
public typealias C11Mutex = UnsafeMutablePointer<mtx_t>
public typealias Time = UnsafePointer<timespec>

@inline(__always) func mutexWord(_ mutex: UnsafeRawPointer) -> ResourceWord {
  resourceWord(mutex, HCK_MUTEX)
}

/// EBUSY of a try, ETIMEDOUT of a wait with a time limit.
@inline(__always) func isInVain(_ result: Int32) -> Bool { result == busyError || result == 110 }

/// 0, or EOWNERDEAD: the lock is held although its last owner died.
@inline(__always) func isTaken(_ result: Int32) -> Bool { result == 0 || result == 130 }

@c(pthread_mutex_lock) public func mutexLock(_ mutex: Mutex) -> Int32 {
  let word = mutexWord(mutex)
  guard let slot = hck_slot_of_thread(), slot.pointee.wait == 0 else {
    return mutexLockUnusually(mutex, hck_frame())
  }
  beginWait(slot, word)
  let result = hck_real_pthread_mutex_lock(mutex)
  endWait(slot, 0)
  if result != 0 {
    return isTaken(result) ? acquiredUnusually(slot, word, hck_frame(), result) : result
  }
  return acquired(slot, word, hck_frame())
}

/// The first lock of a thread, or one in a block of `dispatch_sync` or in a signal's handler that
/// interrupted a wait. Apart, for what is kept across a call costs a store each time.
@inline(never) private func mutexLockUnusually(_ mutex: Mutex, _ frame: UnsafeRawPointer) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_pthread_mutex_lock(mutex) }
  let before = beginWait(slot, mutexWord(mutex))
  let result = hck_real_pthread_mutex_lock(mutex)
  endWait(slot, before)
  return isTaken(result) ? acquired(slot, mutexWord(mutex), frame, result) : result
}

@c(pthread_mutex_trylock) public func mutexTryLock(_ mutex: Mutex) -> Int32 {
  let result = hck_real_pthread_mutex_trylock(mutex)
  if isTaken(result), let slot = currentSlot() {
    acquired(slot, mutexWord(mutex) | timedBit, hck_frame())
  } else if result == busyError {
    triedInVain(mutexWord(mutex), hck_frame())
  }
  return result
}

@c(pthread_mutex_timedlock) public func mutexTimedLock(_ mutex: Mutex, _ time: Time) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_pthread_mutex_timedlock(mutex, time) }
  let before = beginWait(slot, mutexWord(mutex) | timedBit)
  let result = hck_real_pthread_mutex_timedlock(mutex, time)
  endWait(slot, before)
  if isInVain(result) { triedInVain(mutexWord(mutex), hck_frame()) }
  return isTaken(result) ? acquired(slot, mutexWord(mutex) | timedBit, hck_frame(), result) : result
}

@c(pthread_mutex_clocklock) public func mutexClockLock(_ mutex: Mutex, _ clock: Int32, _ time: Time)
  -> Int32
{
  guard let slot = currentSlot() else {
    return hck_real_pthread_mutex_clocklock(mutex, clock, time)
  }
  let before = beginWait(slot, mutexWord(mutex) | timedBit)
  let result = hck_real_pthread_mutex_clocklock(mutex, clock, time)
  endWait(slot, before)
  if isInVain(result) { triedInVain(mutexWord(mutex), hck_frame()) }
  return isTaken(result) ? acquired(slot, mutexWord(mutex) | timedBit, hck_frame(), result) : result
}

@c(pthread_mutex_unlock) public func mutexUnlock(_ mutex: Mutex) -> Int32 {
  if let slot = hck_slot_of_thread(), releasedNewest(slot, mutexWord(mutex)) {
    return hck_real_pthread_mutex_unlock(mutex)
  }
  return mutexUnlockUnusually(mutex, hck_frame())
}

@inline(never) private func mutexUnlockUnusually(_ mutex: Mutex, _ frame: UnsafeRawPointer) -> Int32
{
  if let slot = hck_slot_of_thread() {
    if !released(slot, mutexWord(mutex)) { releasedElsewhere(mutex, slot, frame) }
  } else {
    releasedUnheard(mutex, frame)
  }
  return hck_real_pthread_mutex_unlock(mutex)
}

@c(pthread_mutex_init) public func mutexInit(
  _ mutex: Mutex, _ attributes: UnsafePointer<pthread_mutexattr_t>?
) -> Int32 {
  checkInit(mutex, hck_frame())
  let result = hck_real_pthread_mutex_init(mutex, attributes)
  if let slot = hck_slot_of_thread() { released(slot, mutexWord(mutex)) }
  madeLock(mutexWord(mutex))
  return result
}

@c(pthread_mutex_destroy) public func mutexDestroy(_ mutex: Mutex) -> Int32 {
  let result = hck_real_pthread_mutex_destroy(mutex)
  if result == 0 {
    if let slot = hck_slot_of_thread() { released(slot, mutexWord(mutex)) }
    goneLock(mutexWord(mutex))
  }
  if result == busyError { destroyedBusy(mutex, hck_frame()) }
  return result
}

/// A mutex is unlocked that this thread is not on record to hold: if another one is, it holds it no
/// longer. The lock's memory says who took it; it may be read, for it is about to be written.
@inline(never) private func releasedElsewhere(
  _ mutex: UnsafeMutableRawPointer, _ slot: Slot, _ frame: UnsafeRawPointer
) {
  guard let arena = hck_arena_get() else { return }
  let owner = mutexOwner(mutex)
  checkUnlock(mutex, owner, slot, arena, frame)
  guard owner != 0, owner != slot.pointee.tid else { return }
  hck_store32(&arena.pointee.handed_over, 1)
  forget(mutexWord(mutex), in: arena, tid: owner)
}

/// The first that a thread does is to unlock. In a child that was just forked it is a fork handler
/// that does, of which nothing is on record.
@inline(never) private func releasedUnheard(
  _ mutex: UnsafeMutableRawPointer, _ frame: UnsafeRawPointer
) {
  guard hck_arena_get() != nil, hck_closed() == 0, let slot = currentSlot() else { return }
  releasedElsewhere(mutex, slot, frame)
}

@c(mtx_lock) public func c11Lock(_ mutex: C11Mutex) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_mtx_lock(mutex) }
  let before = beginWait(slot, mutexWord(mutex))
  let result = hck_real_mtx_lock(mutex)
  endWait(slot, before)
  return result == 0 ? acquired(slot, mutexWord(mutex), hck_frame(), result) : result
}

@c(mtx_trylock) public func c11TryLock(_ mutex: C11Mutex) -> Int32 {
  let result = hck_real_mtx_trylock(mutex)
  if result == 0, let slot = currentSlot() {
    acquired(slot, mutexWord(mutex) | timedBit, hck_frame())
  } else if result == c11Busy {
    triedInVain(mutexWord(mutex), hck_frame())
  }
  return result
}

// Of <threads.h>: thrd_busy, thrd_timedout.
@inline(__always) private var c11Busy: Int32 { 1 }
@inline(__always) private var c11TimedOut: Int32 { 4 }

@c(mtx_timedlock) public func c11TimedLock(_ mutex: C11Mutex, _ time: Time) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_mtx_timedlock(mutex, time) }
  let before = beginWait(slot, mutexWord(mutex) | timedBit)
  let result = hck_real_mtx_timedlock(mutex, time)
  endWait(slot, before)
  if result == c11TimedOut { triedInVain(mutexWord(mutex), hck_frame()) }
  return result == 0 ? acquired(slot, mutexWord(mutex) | timedBit, hck_frame(), result) : result
}

@c(mtx_unlock) public func c11Unlock(_ mutex: C11Mutex) -> Int32 {
  if let slot = hck_slot_of_thread() {
    if !released(slot, mutexWord(mutex)) { releasedElsewhere(mutex, slot, hck_frame()) }
  } else {
    releasedUnheard(mutex, hck_frame())
  }
  return hck_real_mtx_unlock(mutex)
}
