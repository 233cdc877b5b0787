// Work on its way to a queue: it knows what whoever submitted it knew, and is a context of its own.
//
// A block goes to libdispatch's function for functions, as libdispatch itself would pass it on, with a
// record in front of it. A block object (a work item) carries its priority and flags in itself and
// goes as it is: it knows what all know that submitted one to its queue.
public import CHangAgent
public import CHangcheck

public typealias ApplyFunction = @convention(c) (UnsafeMutableRawPointer?, Int) -> Void

/// A block that goes with a record; nil for one that goes as it is.
@inline(__always)
private func job(
  _ block: DispatchObject, to queue: DispatchObject?, _ frame: UnsafeRawPointer
) -> UnsafeMutablePointer<hck_job>? {
  guard let slot = currentSlot() else { return nil }
  guard hck_is_inner(frame) == 0 else { return nil }
  let invoke = hck_plain_invoke(block)
  if invoke != 0, let copy = hck_copied_block(block) {
    if let job = makeJob(
      slot, invoke, UInt64(UInt(bitPattern: copy)), isMain: isMain(queue))
    {
      job.pointee.is_block = 1
      return job
    }
    hck_release_block(copy)
  }
  if let queue { handOver(slot, queueWord(queue)) }
  if let item = hck_block_of_item(block) { submit(item, as: block, slot) }
  return nil
}

@inline(__always) private func isMain(_ queue: DispatchObject?) -> Bool {
  UInt64(UInt(bitPattern: queue)) == hck_main_thread_queue() && queue != nil
}

/// A work item goes to a queue: what runs then knows what the submitting thread does.
private func submit(
  _ item: UnsafeMutablePointer<hck_item_block>, as object: DispatchObject, _ slot: Slot
) {
  item.pointee.item = UnsafeRawPointer(object)
  let known = knowledge(of: slot)
  // It may be on its way already: whatever it knew of an earlier submission is no news to it.
  let before = item.pointee.pid == arenaOwner() ? item.pointee.known : 0
  item.pointee.known = known
  item.pointee.pid = arenaOwner()
  dropKnowledge(before)
}

/// What a work item runs, on whichever thread: inside of other work, and where the program calls it
/// itself, it is a part of that.
@c(hck_item_run) public func runItem(_ block: UnsafeMutablePointer<hck_item_block>) {
  guard let inner = block.pointee.inner else { return }
  let pid = block.pointee.pid
  guard let slot = currentSlot(), let item = block.pointee.item, pid == arenaOwner(),
    isAtItsBase(slot)
  else { return hck_run_block(inner) }
  let (entered, own) = (block.pointee.entered, hck_group_of_item(item))
  let outer = beginBlock(slot, knowing: copyOfKnowledge(block.pointee.known))
  if block.pointee.notifies != 0 { takeOver(slot, block.pointee.notifies) }
  hck_run_block(inner)
  guard hck_slot_of_thread() == slot, pid == arenaOwner() else { return }
  if entered != 0 { handOver(slot, entered) }
  if let group = UnsafeRawPointer(bitPattern: UInt(own)) { handOver(slot, groupWord(group)) }
  endBlock(slot, outer)
}

@c(hck_item_gone) public func itemGone(_ block: UnsafeMutablePointer<hck_item_block>) {
  if block.pointee.pid == arenaOwner() { dropKnowledge(block.pointee.known) }
}

@inline(__always)
private func job(
  _ function: DispatchFunction, _ context: UnsafeMutableRawPointer?, to queue: DispatchObject?,
  _ frame: UnsafeRawPointer
) -> UnsafeMutablePointer<hck_job>? {
  guard let slot = currentSlot(), hck_is_inner(frame) == 0 else { return nil }
  let code = UInt64(UInt(bitPattern: unsafeBitCast(function, to: Int.self)))
  if let job = makeJob(
    slot, code, UInt64(UInt(bitPattern: context)), isMain: isMain(queue))
  {
    job.pointee.is_block = 0
    return job
  }
  if let queue { handOver(slot, queueWord(queue)) }
  return nil
}

/// What libdispatch calls for a record: see `hck_job`.
@c(hck_agent_job) public func runJob(_ value: UnsafeMutableRawPointer?) {
  guard let record = value?.assumingMemoryBound(to: hck_job.self) else { return }
  let job = record.pointee
  hck_job_give(record)
  // In a forked child what its parent knew means nothing.
  guard let slot = currentSlot(), job.pid == arenaOwner() else { return run(job) }
  let turn = job.is_main != 0 ? beginMainItem(slot) : 0
  let outer = beginBlock(slot, knowing: job.known)
  let task = hck_in_concurrency(job.function) != 0 ? hck_task_word(job.context) : 0
  if job.notifies != 0 { takeOver(slot, job.notifies) }
  if task != 0 { takeOver(slot, task) }
  run(job)
  // A fork may have put the thread into another process.
  guard hck_slot_of_thread() == slot, job.pid == arenaOwner() else { return }
  if task != 0 { handOver(slot, task) }
  if job.entered != 0 { handOver(slot, job.entered) }
  endBlock(slot, outer)
  if job.is_main != 0 { endMainItem(slot, turn) }
}

@inline(__always) private func run(_ job: hck_job) {
  hck_run_function(job.function, job.context)
  if job.is_block != 0, let block = UnsafeRawPointer(bitPattern: UInt(job.context)) {
    hck_release_block(block)
  }
}

/// What the iterations of `dispatch_apply` hand over by; no resource that a slot waits for.
@inline(__always) private func applyWord(
  _ job: UnsafeMutablePointer<hck_job>
) -> ResourceWord { UInt64(UInt(bitPattern: job)) }

// MARK: - Submission

@c(dispatch_async) public func dispatchAsync(_ queue: DispatchObject, _ block: DispatchObject) {
  if let job = job(block, to: queue, hck_frame()) {
    hck_real_dispatch_async_f(queue, job, runJob)
  } else {
    hck_real_dispatch_async(queue, block)
  }
}

@c(dispatch_async_f) public func dispatchAsyncFunction(
  _ queue: DispatchObject, _ context: UnsafeMutableRawPointer?, _ function: DispatchFunction
) {
  if let job = job(function, context, to: queue, hck_frame()) {
    hck_real_dispatch_async_f(queue, job, runJob)
  } else {
    hck_real_dispatch_async_f(queue, context, function)
  }
}

@c(dispatch_after) public func dispatchAfter(
  _ time: UInt64, _ queue: DispatchObject, _ block: DispatchObject
) {
  if let job = job(block, to: queue, hck_frame()) {
    hck_real_dispatch_after_f(time, queue, job, runJob)
  } else {
    hck_real_dispatch_after(time, queue, block)
  }
}

@c(dispatch_after_f) public func dispatchAfterFunction(
  _ time: UInt64, _ queue: DispatchObject, _ context: UnsafeMutableRawPointer?,
  _ function: DispatchFunction
) {
  if let job = job(function, context, to: queue, hck_frame()) {
    hck_real_dispatch_after_f(time, queue, job, runJob)
  } else {
    hck_real_dispatch_after_f(time, queue, context, function)
  }
}

@c(dispatch_barrier_async) public func dispatchBarrierAsync(
  _ queue: DispatchObject, _ block: DispatchObject
) {
  checkBarrierAsync(queue, hck_frame())
  if let job = job(block, to: queue, hck_frame()) {
    hck_real_dispatch_barrier_async_f(queue, job, runJob)
  } else {
    hck_real_dispatch_barrier_async(queue, block)
  }
}

@c(dispatch_barrier_async_f) public func dispatchBarrierAsyncFunction(
  _ queue: DispatchObject, _ context: UnsafeMutableRawPointer?, _ function: DispatchFunction
) {
  checkBarrierAsync(queue, hck_frame())
  if let job = job(function, context, to: queue, hck_frame()) {
    hck_real_dispatch_barrier_async_f(queue, job, runJob)
  } else {
    hck_real_dispatch_barrier_async_f(queue, context, function)
  }
}

// MARK: - With a group

@c(dispatch_group_async) public func dispatchGroupAsync(
  _ group: DispatchObject, _ queue: DispatchObject, _ block: DispatchObject
) {
  let frame = hck_frame()
  if let slot = currentSlot() { tally(slot, groupWord(group), HCK_TAKE_BY_BLOCK, frame) }
  if let job = job(block, to: queue, frame) {
    job.pointee.entered = groupWord(group)
    hck_real_dispatch_group_async_f(group, queue, job, runJob)
  } else {
    hck_block_of_item(block)?.pointee.entered = groupWord(group)
    hck_real_dispatch_group_async(group, queue, block)
  }
}

@c(dispatch_group_async_f) public func dispatchGroupAsyncFunction(
  _ group: DispatchObject, _ queue: DispatchObject, _ context: UnsafeMutableRawPointer?,
  _ function: DispatchFunction
) {
  let frame = hck_frame()
  if let slot = currentSlot() { tally(slot, groupWord(group), HCK_TAKE_BY_BLOCK, frame) }
  if let job = job(function, context, to: queue, frame) {
    job.pointee.entered = groupWord(group)
    hck_real_dispatch_group_async_f(group, queue, job, runJob)
  } else {
    hck_real_dispatch_group_async_f(group, queue, context, function)
  }
}

@c(dispatch_group_notify) public func dispatchGroupNotify(
  _ group: DispatchObject, _ queue: DispatchObject, _ block: DispatchObject
) {
  let frame = hck_frame()
  if let slot = currentSlot(), hck_is_inner(frame) == 0 {
    tally(slot, groupWord(group), HCK_NOTIFY, frame)
  }
  if let job = job(block, to: queue, frame) {
    job.pointee.notifies = groupWord(group)
    hck_real_dispatch_group_notify_f(group, queue, job, runJob)
  } else {
    hck_block_of_item(block)?.pointee.notifies = groupWord(group)
    hck_real_dispatch_group_notify(group, queue, block)
  }
}

@c(dispatch_group_notify_f) public func dispatchGroupNotifyFunction(
  _ group: DispatchObject, _ queue: DispatchObject, _ context: UnsafeMutableRawPointer?,
  _ function: DispatchFunction
) {
  let frame = hck_frame()
  if let slot = currentSlot(), hck_is_inner(frame) == 0 {
    tally(slot, groupWord(group), HCK_NOTIFY, frame)
  }
  if let job = job(function, context, to: queue, frame) {
    job.pointee.notifies = groupWord(group)
    hck_real_dispatch_group_notify_f(group, queue, job, runJob)
  } else {
    hck_real_dispatch_group_notify_f(group, queue, context, function)
  }
}

// MARK: - Many at once

/// Runs one of `dispatch_apply`'s iterations: each is a context, and all end before the call does.
@c(hck_agent_apply) public func runApply(_ value: UnsafeMutableRawPointer?, _ index: Int) {
  guard let job = value?.assumingMemoryBound(to: hck_job.self) else { return }
  guard let slot = currentSlot(), job.pointee.pid == arenaOwner() else {
    return hck_run_apply(job.pointee.function, job.pointee.context, index)
  }
  let outer = beginBlock(slot, knowing: copyOfKnowledge(job.pointee.known))
  hck_run_apply(job.pointee.function, job.pointee.context, index)
  guard hck_slot_of_thread() == slot, job.pointee.pid == arenaOwner() else { return }
  handOver(slot, applyWord(job))
  endBlock(slot, outer)
}

@inline(__always) private func apply(
  _ count: Int, _ queue: DispatchObject?, _ context: UnsafeMutableRawPointer?, _ function: UInt64,
  _ slot: Slot
) -> Bool {
  guard let job = makeJob(slot, function, UInt64(UInt(bitPattern: context))) else { return false }
  hck_real_dispatch_apply_f(count, queue, job, runApply)
  if hck_slot_of_thread() == slot, job.pointee.pid == arenaOwner() {
    takeOver(slot, applyWord(job))
    dropKnowledge(job.pointee.known)
  }
  hck_job_give(job)
  return true
}

@c(dispatch_apply) public func dispatchApply(
  _ count: Int, _ queue: DispatchObject?, _ block: DispatchObject
) {
  let invoke = hck_plain_invoke(block)
  if invoke != 0, hck_is_inner(hck_frame()) == 0, let slot = currentSlot(),
    apply(count, queue, block, invoke, slot)
  {
    return
  }
  hck_real_dispatch_apply(count, queue, block)
}

@c(dispatch_apply_f) public func dispatchApplyFunction(
  _ count: Int, _ queue: DispatchObject?, _ context: UnsafeMutableRawPointer?,
  _ function: ApplyFunction
) {
  let code = UInt64(UInt(bitPattern: unsafeBitCast(function, to: Int.self)))
  if hck_is_inner(hck_frame()) == 0, let slot = currentSlot(),
    apply(count, queue, context, code, slot)
  {
    return
  }
  hck_real_dispatch_apply_f(count, queue, context, function)
}
