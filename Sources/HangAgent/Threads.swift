// Threads: a slot from birth, joins as waits, and the trampoline that a new thread begins in.
public import CHangAgent
public import CHangcheck

public typealias ThreadResult = UnsafeMutablePointer<UnsafeMutableRawPointer?>

@c(pthread_create) public func threadCreate(
  _ thread: UnsafeMutablePointer<pthread_t>, _ attributes: UnsafePointer<pthread_attr_t>?,
  _ body: hck_thread_body, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
  if argument == nil, isSanitizer(hck_frame()) {
    let body = UnsafeMutableRawPointer(bitPattern: unsafeBitCast(body, to: Int.self))
    return hck_real_pthread_create(thread, attributes, sanitizerThread, body)
  }
  let error = hck_errno()
  guard let arena = hck_arena_get() ?? makeArena(), hck_closed() == 0, let slot = takeSlot(arena)
  else {
    hck_set_errno(error)
    return hck_real_pthread_create(thread, attributes, body, argument)
  }
  let frame = hck_frame()
  slot.pointee.start = UInt64(UInt(bitPattern: unsafeBitCast(body, to: Int.self)))
  slot.pointee.argument = UInt64(UInt(bitPattern: argument))
  slot.pointee.stack_high = hck_stack_bytes(attributes)
  if let own = hck_slot_of_thread() { slot.pointee.inherited = knowledge(of: own) }
  if hck_is_inner(frame) != 0, arena.pointee.flags & HCK_FLAG_ORDERS != 0 {
    slot.pointee.order_base = onAnyQueue
  }
  withUnsafeMutablePointer(to: &slot.pointee.created) {
    hck_site(currentSlot() ?? slot, $0, frame)
  }
  hck_set_errno(error)
  let result = hck_real_pthread_create(thread, attributes, threadBegin, slot)
  if result != 0 {
    dropKnowledge(slot.pointee.inherited)
    giveSlot(slot, arena)
  }
  return result
}

/// The new thread's first function: takes the slot that its creator made and becomes the program's
/// own.
@c(hck_agent_thread) public func threadBegin(_ value: UnsafeMutableRawPointer?)
  -> UnsafeMutableRawPointer?
{
  guard let slot = value?.assumingMemoryBound(to: hck_slot.self) else { return nil }
  let body = unsafeBitCast(Int(bitPattern: UInt(slot.pointee.start)), to: hck_thread_body.self)
  let argument = UnsafeMutableRawPointer(bitPattern: UInt(slot.pointee.argument))
  if let arena = hck_arena_get() { openSlot(slot, arena, stackBytes: slot.pointee.stack_high) }
  // A tail call: of a thread of the program's own nothing of ours is on the stack.
  if slot.pointee.order_base != onAnyQueue { return body(argument) }
  return runWorker(body, argument)
}

@inline(never) private func runWorker(
  _ body: hck_thread_body, _ argument: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  let result = body(argument)
  leaveQueues()
  return result
}

@inline(__always) private func join(
  _ thread: pthread_t, _ flags: UInt64, _ wait: () -> Int32
) -> Int32 {
  guard let slot = currentSlot() else { return wait() }
  let before = beginWait(slot, joinWord(UInt64(thread), flags))
  let result = wait()
  endWait(slot, before)
  if result == 0 { takeOver(slot, joinWord(UInt64(thread))) }
  return result
}

@c(pthread_join) public func threadJoin(_ thread: pthread_t, _ value: ThreadResult?) -> Int32 {
  join(thread, 0) { hck_real_pthread_join(thread, value) }
}

@c(pthread_timedjoin_np) public func threadTimedJoin(
  _ thread: pthread_t, _ value: ThreadResult?, _ time: Time
) -> Int32 {
  join(thread, timedBit) { hck_real_pthread_timedjoin_np(thread, value, time) }
}

@c(pthread_clockjoin_np) public func threadClockJoin(
  _ thread: pthread_t, _ value: ThreadResult?, _ clock: Int32, _ time: Time
) -> Int32 {
  join(thread, timedBit) { hck_real_pthread_clockjoin_np(thread, value, clock, time) }
}

@c(thrd_join) public func c11Join(_ thread: thrd_t, _ value: UnsafeMutablePointer<Int32>?) -> Int32
{
  join(pthread_t(thread), 0) { hck_real_thrd_join(thread, value) }
}
