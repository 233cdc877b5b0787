// What any object of libdispatch can be: suspended, resumed, released for the last time. What is
// wrong with it then is a trap inside libdispatch, without a word: so it is said before.
public import CHangAgent
public import CHangcheck

@inline(__always) private func suspendableType(_ object: DispatchObject) -> UInt32? {
  guard hck_knows_queues() != 0 else { return nil }
  let type = hck_do_type(object)
  return hck_do_suspends(type) != 0 ? type : nil
}

@c(dispatch_suspend) public func dispatchSuspend(_ object: DispatchObject) {
  let frame = hck_frame()
  if let slot = currentSlot(), hck_is_inner(frame) == 0, suspendableType(object) != nil {
    tally(slot, queueWord(object), HCK_TAKE, frame)
  }
  hck_real_dispatch_suspend(object)
}

@c(dispatch_resume) public func dispatchResume(_ object: DispatchObject) {
  let frame = hck_frame()
  if let slot = currentSlot(), hck_is_inner(frame) == 0, let type = suspendableType(object) {
    if hck_do_references(object) != Int32.max,
      hck_queue_is_overresumed(object, hck_do_is_source(type)) != 0
    {
      raise(HCK_ALARM_OVERRESUMED, queueWord(object), waits: true, frame)
    }
    tally(slot, queueWord(object), HCK_GIVE, frame)
    startsSource(object, type, slot)
  }
  hck_real_dispatch_resume(object)
}

/// A source's handlers know what whoever started it knew.
@inline(__always) private func startsSource(_ object: DispatchObject, _ type: UInt32, _ slot: Slot)
{
  guard hck_do_is_source(type) != 0, let queue = hck_queue_target(object) else { return }
  handOver(slot, queueWord(queue))
}

@c(dispatch_activate) public func dispatchActivate(_ object: DispatchObject) {
  let frame = hck_frame()
  if let slot = currentSlot(), hck_is_inner(frame) == 0, let type = suspendableType(object),
    hck_queue_is_inactive(object) != 0
  {
    tally(slot, queueWord(object), HCK_GIVE, frame)
    startsSource(object, type, slot)
  }
  hck_real_dispatch_activate(object)
}

@c(dispatch_release) public func dispatchRelease(_ object: DispatchObject) {
  let frame = hck_frame()
  if hck_has_dispatch() != 0, hck_do_outer_references(object) == 0, hck_slot_of_thread() != nil {
    releasedForGood(object, frame)
  }
  hck_real_dispatch_release(object)
}

/// The program's last reference goes.
@inline(never) private func releasedForGood(_ object: DispatchObject, _ frame: UnsafeRawPointer) {
  guard hck_do_references(object) != Int32.max, let arena = hck_arena_get() else { return }
  let type = hck_do_type(object)
  if type == HCK_DO_SEMAPHORE {
    let word = resourceWord(object, HCK_SEMAPHORE)
    let missing = hck_semaphore_first(object) &- hck_semaphore_value(object)
    if hck_knows_semaphores() != 0, missing > 0 {
      raise(HCK_ALARM_SEMAPHORE_LOW, word, other: UInt64(missing), waits: true, frame)
    }
    forgetTallies(word, in: arena)
  } else if type == HCK_DO_GROUP {
    if hck_knows_groups() != 0, hck_group_count(object) != 0 {
      // It lives on, kept by its enters.
      checkAbandoned(object, frame)
    } else {
      forgetTallies(resourceWord(object, HCK_GROUP), in: arena)
    }
  } else if hck_do_is_queue(type) != 0 {
    if hck_knows_queues() != 0, hck_do_is_root(type) == 0,
      hck_queue_is_suspended(object) != 0
    {
      raise(
        HCK_ALARM_RELEASED_SUSPENDED, queueWord(object),
        other: hck_queue_is_inactive(object) != 0 ? 1 : 0, waits: true, frame)
    }
    // Its work may go on without the program's reference: the site of its creation stays until
    // another queue is made there.
  }
}
