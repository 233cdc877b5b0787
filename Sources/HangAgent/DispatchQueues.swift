// dispatch_sync and its relatives. While the thread waits for the queue, and while it runs the
// block on it, the queue is both what the slot waits for and the newest thing that it holds; which
// of the two it is, the kernel tells: blocked in the call's own futex it waits.
public import CHangAgent
public import CHangcheck

public typealias DispatchObject = UnsafeMutableRawPointer
public typealias DispatchFunction = @convention(c) (UnsafeMutableRawPointer?) -> Void

@inline(__always) func queueWord(_ queue: UnsafeRawPointer) -> ResourceWord {
  resourceWord(queue, HCK_QUEUE)
}

@inline(__always) private func sync(
  _ queue: DispatchObject, isBarrier: Bool, _ frame: UnsafeRawPointer, _ real: () -> Void
) {
  guard let slot = currentSlot(), hck_is_inner(frame) == 0 else { return real() }
  var flags: UInt64 = 0
  if hck_knows_queues() != 0 {
    if hck_queue_runs_on(queue, slot.pointee.tid) != 0 {
      raise(HCK_ALARM_SYNC_SELF, queueWord(queue), waits: true, frame)
    }
    if !isBarrier, hck_queue_width(queue) != 1 { flags = sharedBit }
    if isBarrier { checkBarrier(queue, frame) }
  } else if !isBarrier {
    flags = sharedBit  // the weaker claim
  }
  let word = queueWord(queue)
  let before = beginWait(slot, word | flags)
  acquired(slot, word | flags, frame)
  real()
  released(slot, word)
  endWait(slot, before)
}

@inline(__always) private func checkBarrier(_ queue: DispatchObject, _ frame: UnsafeRawPointer) {
  if hck_queue_target(queue) == nil { barrierOnRoot(queue, frame) }
}

/// A barrier on a global queue is none: the block runs beside others. libdispatch and Foundation do
/// not rely on that.
@inline(never) private func barrierOnRoot(_ queue: DispatchObject, _ frame: UnsafeRawPointer) {
  guard hck_do_is_root(hck_do_type(queue)) != 0 else { return }
  raise(HCK_ALARM_BARRIER_ON_GLOBAL, queueWord(queue), frame)
}

@c(dispatch_sync) public func dispatchSync(_ queue: DispatchObject, _ block: DispatchObject) {
  sync(queue, isBarrier: false, hck_frame()) { hck_real_dispatch_sync(queue, block) }
}

@c(dispatch_sync_f) public func dispatchSyncFunction(
  _ queue: DispatchObject, _ context: UnsafeMutableRawPointer?, _ function: DispatchFunction
) {
  sync(queue, isBarrier: false, hck_frame()) { hck_real_dispatch_sync_f(queue, context, function) }
}

@c(dispatch_barrier_sync) public func dispatchBarrierSync(
  _ queue: DispatchObject, _ block: DispatchObject
) {
  sync(queue, isBarrier: true, hck_frame()) { hck_real_dispatch_barrier_sync(queue, block) }
}

@c(dispatch_barrier_sync_f) public func dispatchBarrierSyncFunction(
  _ queue: DispatchObject, _ context: UnsafeMutableRawPointer?, _ function: DispatchFunction
) {
  sync(queue, isBarrier: true, hck_frame()) {
    hck_real_dispatch_barrier_sync_f(queue, context, function)
  }
}

@c(dispatch_async_and_wait) public func dispatchAsyncAndWait(
  _ queue: DispatchObject, _ block: DispatchObject
) {
  sync(queue, isBarrier: false, hck_frame()) { hck_real_dispatch_async_and_wait(queue, block) }
}

@c(dispatch_async_and_wait_f) public func dispatchAsyncAndWaitFunction(
  _ queue: DispatchObject, _ context: UnsafeMutableRawPointer?, _ function: DispatchFunction
) {
  sync(queue, isBarrier: false, hck_frame()) {
    hck_real_dispatch_async_and_wait_f(queue, context, function)
  }
}

@c(dispatch_barrier_async_and_wait) public func dispatchBarrierAsyncAndWait(
  _ queue: DispatchObject, _ block: DispatchObject
) {
  sync(queue, isBarrier: true, hck_frame()) {
    hck_real_dispatch_barrier_async_and_wait(queue, block)
  }
}

@c(dispatch_barrier_async_and_wait_f) public func dispatchBarrierAsyncAndWaitFunction(
  _ queue: DispatchObject, _ context: UnsafeMutableRawPointer?, _ function: DispatchFunction
) {
  sync(queue, isBarrier: true, hck_frame()) {
    hck_real_dispatch_barrier_async_and_wait_f(queue, context, function)
  }
}

@inline(__always) func checkBarrierAsync(
  _ queue: DispatchObject, _ frame: UnsafeRawPointer
) {
  if hck_knows_queues() != 0, hck_queue_target(queue) == nil, hck_is_inner(frame) == 0 {
    barrierOnRoot(queue, frame)
  }
}

@inline(__always) private func created(
  _ queue: UnsafeMutableRawPointer?, _ frame: UnsafeRawPointer
) -> UnsafeMutableRawPointer? {
  guard let queue, let slot = currentSlot(), hck_is_inner(frame) == 0 else { return queue }
  let width = hck_knows_queues() != 0 ? UInt64(hck_queue_width(queue)) : 0
  tallyCreation(slot, queueWord(queue), value: width, frame)
  return queue
}

@c(dispatch_queue_create) public func dispatchQueueCreate(
  _ label: UnsafePointer<CChar>?, _ attributes: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  created(hck_real_dispatch_queue_create(label, attributes), hck_frame())
}

@c(dispatch_queue_create_with_target) public func dispatchQueueCreateWithTarget(
  _ label: UnsafePointer<CChar>?, _ attributes: UnsafeMutableRawPointer?,
  _ target: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  created(hck_real_dispatch_queue_create_with_target(label, attributes, target), hck_frame())
}

/// A circle of target queues is a trap in some states of the queues, and no work runs in the others.
@c(dispatch_set_target_queue) public func dispatchSetTargetQueue(
  _ object: DispatchObject, _ target: UnsafeMutableRawPointer?
) {
  let frame = hck_frame()
  if let target, hck_knows_queues() != 0, hck_do_suspends(hck_do_type(object)) != 0,
    hck_queue_leads_to(target, object) != 0
  {
    raise(HCK_ALARM_TARGET_CYCLE, queueWord(object), waits: true, frame)
  }
  hck_real_dispatch_set_target_queue(object, target)
}

/// A work item may be waited for once.
@c(dispatch_block_wait) public func dispatchBlockWait(_ block: DispatchObject, _ timeout: UInt64)
  -> Int
{
  guard let slot = currentSlot() else { return hck_real_dispatch_block_wait(block, timeout) }
  let word = resourceWord(block, HCK_WORK_ITEM)
  // 2: somebody waits; 4: somebody has waited.
  if hck_is_block_object(block) != 0, hck_block_flags(block) & 6 != 0 {
    raise(HCK_ALARM_WAITED_TWICE, word, waits: true, hck_frame())
  }
  if timeout == 0 { return hck_real_dispatch_block_wait(block, timeout) }
  let before = beginWait(slot, timeout == UInt64.max ? word : word | timedBit)
  let result = hck_real_dispatch_block_wait(block, timeout)
  endWait(slot, before)
  return result
}
