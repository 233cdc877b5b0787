// Holding threads back until a predicted cycle closes: see hck_steer.h. In a steered run only, and
// async-signal-safe: a thread that is held back sleeps, with what it asks for on record.
//
// A cycle is closed when whoever is asked for what leads back to the asker by what all have on
// record. That depends on nothing but the records, so all its threads come to the same answer, and
// those that wait in earnest take part.
public import CHangAgent
public import CHangcheck

// Slots that one search looks at, and how long a cycle it finds.
private let mostLooks = 20_000
private let longestCycle = 32

@c(hck_steer) public func steer(_ frame: UnsafeRawPointer) {
  guard let slot = hck_slot_of_thread(), let arena = hck_arena_get(),
    hck_is_steered() != 0, isWait(slot.pointee.wait)
  else { return }
  let plan = hck_plan_get()
  var site = hck_entry()
  hck_site(slot, &site, frame)
  var number: UInt32 = 0
  while number < plan.pointee.count {
    let step = hck_plan_step(number)
    number &+= 1
    if number == plan.pointee.late, hck_is_at(&site, &step.pointee.took) != 0 {
      hold(plan) { othersWait(number, plan) }
    }
    if hck_is_at(&site, &step.pointee.asks) != 0, hasTaken(slot, &step.pointee.took) {
      // The queue that it runs on, for others' searches.
      let before = slot.pointee.wait_aux
      slot.pointee.wait_aux = currentQueue(slot).map { queueWord($0) } ?? 0
      hck_add32(&step.pointee.waiting, 1)
      hold(plan) {
        var search = CycleSearch(arena: arena, start: slot)
        return search.leadsBack(from: slot, slot.pointee.wait, longestCycle)
      }
      hck_add32(&step.pointee.waiting, UInt32.max)
      slot.pointee.wait_aux = before
      return
    }
  }
}

/// Sleeps until `isDone`, or until patience ends: less of it each time.
private func hold(_ plan: UnsafeMutablePointer<hck_plan>, _ isDone: () -> Bool) {
  let patience = plan.pointee.patience >> UInt64(hck_load32(&plan.pointee.fruitless))
  guard patience >= 1_000_000 else { return }
  let begun = hck_monotonic_ns()
  while !isDone() {
    if hck_monotonic_ns() &- begun >= patience {
      hck_add32(&plan.pointee.fruitless, 1)
      return
    }
    hck_nap()
  }
}

private func othersWait(_ number: UInt32, _ plan: UnsafeMutablePointer<hck_plan>) -> Bool {
  var index: UInt32 = 0
  while index < plan.pointee.count {
    if index &+ 1 != number, hck_load32(&hck_plan_step(index).pointee.waiting) != 0 { return true }
    index &+= 1
  }
  return false
}

/// Whether the thread holds what that step's does: something that was taken there. Where that has no
/// site, it is the queue that the thread runs on.
private func hasTaken(_ slot: Slot, _ site: UnsafePointer<hck_call_site>) -> Bool {
  if site.pointee.count == 0 { return true }
  var index = slot.pointee.count
  while index > 0 {
    index &-= 1
    let entry = slot.pointee.held + Int(truncatingIfNeeded: index)
    if entry.pointee.resource != holeBit, hck_is_at(entry, site) != 0 { return true }
  }
  return false
}

private func kind(_ word: ResourceWord) -> UInt32 {
  UInt32(truncatingIfNeeded: word >> UInt64(HCK_KIND_SHIFT)) & 15
}

/// One that does not end by itself.
private func isWait(_ word: ResourceWord) -> Bool { word != 0 && word & timedBit == 0 }

/// Follows who waits for whom through the slots.
private struct CycleSearch {
  let arena: UnsafeMutablePointer<hck_arena>
  let start: Slot
  var looks = 0

  /// Whether what `slot` waits for is kept from it by the thread that the search began with, or by one
  /// that itself waits for that thread.
  mutating func leadsBack(from slot: Slot, _ wait: ResourceWord, _ depth: Int) -> Bool {
    guard depth > 0, isWait(wait) else { return false }
    let slots = hck_load32(&arena.pointee.slots)
    var index: UInt32 = 0
    while index < slots, looks < mostLooks {
      let other = slotAt(arena, index)
      index &+= 1
      looks &+= 1
      guard other != slot, hck_load32(&other.pointee.state) == HCK_SLOT_LIVE.rawValue,
        keeps(other, wait)
      else { continue }
      if other == start { return true }
      let next = hck_load64(&other.pointee.wait)
      // On a queue that it waits for it may run by now.
      if kind(next) == HCK_QUEUE.rawValue, runs(other, on: next) { continue }
      if leadsBack(from: other, next, depth - 1) { return true }
    }
    return false
  }

  /// Whether `other` must give something back before one that waits for that can have it.
  private func keeps(_ other: Slot, _ wait: ResourceWord) -> Bool {
    let pending = hck_load64(&other.pointee.wait)
    let isQueue = kind(wait) == HCK_QUEUE.rawValue
    if isQueue, runs(other, on: wait) { return true }
    // The queue of a block that is held back; a condition's mutex has no kind.
    let queue = other.pointee.wait_aux
    if isQueue, kind(queue) == HCK_QUEUE.rawValue, wait & sharedBit == 0, leads(wait, to: queue) {
      return true
    }
    // A reader may have to wait behind a writer.
    if kind(wait) == HCK_RWLOCK.rawValue, wait & sharedBit != 0,
      pending == wait & ~sharedBit, hck_rwlock_prefers_writers(wait & addressMask) != 0
    {
      return true
    }
    let count = hck_load64(&other.pointee.count)
    guard count <= other.pointee.capacity else { return false }
    let held = UnsafeMutableRawPointer(arena).advanced(by: Int(other.pointee.held_offset))
      .assumingMemoryBound(to: hck_entry.self)
    var index = 0
    while index < Int(truncatingIfNeeded: count) {
      let word = hck_load64(&held[index].resource)
      index &+= 1
      guard (word ^ wait) & ~heldFlags == 0, word & wait & sharedBit == 0 else { continue }
      // A queue is on record from before the wait for it.
      if isQueue, pending & ~heldFlags == word & ~heldFlags { continue }
      return true
    }
    return false
  }

  private func runs(_ slot: Slot, on queue: ResourceWord) -> Bool {
    guard hck_knows_queues() != 0, let queue = pointer(queue) else { return false }
    return hck_queue_runs_on(queue, slot.pointee.tid) != 0
  }

  private func leads(_ queue: ResourceWord, to other: ResourceWord) -> Bool {
    guard hck_knows_queues() != 0, let queue = pointer(queue), let other = pointer(other) else {
      return false
    }
    return hck_queue_leads_to(queue, other) != 0
  }

  private func pointer(_ word: ResourceWord) -> UnsafeRawPointer? {
    UnsafeRawPointer(bitPattern: UInt(word & addressMask))
  }
}
