// What the drop-in types call in place of pthread's when the agent is loaded: the same, but for the
// site that is kept. It is the drop-in's own frame, whose caller is the program's code; the agent's
// would have the drop-in for its caller, and the few words that are kept of a stack may not reach
// past that.
public import CHangAgent
import CHangcheck

@c(hck_agent_lock) public func dropInLock(_ mutex: Mutex, _ frame: UnsafeRawPointer) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_pthread_mutex_lock(mutex) }
  let word = mutexWord(mutex)
  let before = beginWait(slot, word)
  let result = hck_real_pthread_mutex_lock(mutex)
  endWait(slot, before)
  return isTaken(result) ? acquired(slot, word, frame, result) : result
}

@c(hck_agent_trylock) public func dropInTryLock(_ mutex: Mutex, _ frame: UnsafeRawPointer) -> Int32
{
  let result = hck_real_pthread_mutex_trylock(mutex)
  if isTaken(result), let slot = currentSlot() {
    acquired(slot, mutexWord(mutex) | timedBit, frame)
  } else if result == busyError {
    triedInVain(mutexWord(mutex), frame)
  }
  return result
}

@c(hck_agent_timedlock) public func dropInTimedLock(
  _ mutex: Mutex, _ time: Time, _ frame: UnsafeRawPointer
) -> Int32 {
  guard let slot = currentSlot() else { return hck_real_pthread_mutex_timedlock(mutex, time) }
  let before = beginWait(slot, mutexWord(mutex) | timedBit)
  let result = hck_real_pthread_mutex_timedlock(mutex, time)
  endWait(slot, before)
  if isInVain(result) { triedInVain(mutexWord(mutex), frame) }
  return isTaken(result) ? acquired(slot, mutexWord(mutex) | timedBit, frame, result) : result
}

/// A `Mutex` that was free has been taken, which calls nothing that is seen.
@c(hck_agent_took) public func dropInTook(_ word: ResourceWord, _ frame: UnsafeRawPointer) {
  if let slot = currentSlot() { acquired(slot, word, frame) }
}

/// A `Mutex` was not free.
@c(hck_agent_tried) public func dropInTried(_ word: ResourceWord, _ frame: UnsafeRawPointer) {
  if currentSlot() != nil { triedInVain(word, frame) }
}

/// One was free, and its hold is not told.
@c(hck_agent_got) public func dropInGot() { gotByTry() }

@c(hck_agent_gave) public func dropInGave(_ word: ResourceWord) {
  if let slot = hck_slot_of_thread() { released(slot, word) }
}

@c(hck_agent_ends) public func dropInEnds(_ word: ResourceWord) { goneLock(word) }

/// What only the drop-ins know to be wrong.
@c(hck_agent_raise) public func dropInRaise(
  _ kind: UInt32, _ word: ResourceWord, _ frame: UnsafeRawPointer
) {
  raise(hck_alarm_kind(rawValue: kind), word, frame)
}

/// A race on a checked value.
@c(hck_agent_race) public func dropInRace(_ kind: UInt32, _ race: UnsafeMutablePointer<hck_race>) {
  raise(hck_alarm_kind(rawValue: kind), race)
}
