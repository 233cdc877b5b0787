// The slots of threads: taken at birth or at the first event, given back at exit. Async-signal-safe
// throughout, but for the two pthread calls on the key, which do not allocate for keys as low as
// ours.
public import CHangcheck

/// Where an arena comes from when there is none yet; set once, before any thread records.
public typealias ArenaProvider = @convention(c) () -> UnsafeMutablePointer<hck_arena>?

// Written by a constructor or under the provider's own once, before anything reads them.
nonisolated(unsafe) public var arenaProvider: ArenaProvider? = nil
nonisolated(unsafe) public var threadKey: pthread_key_t = 0
nonisolated(unsafe) public var hasThreadKey = false

/// Gives the calling thread its slot. nil in a thread that is past its last destructor, in a signal
/// handler that interrupted this very function, and where there is no memory.
public func beginThread() -> Slot? {
  if hck_closed() != 0 { return nil }
  hck_set_closed(1)
  let error = hck_errno()
  defer {
    hck_set_errno(error)
    hck_set_closed(0)
  }
  guard let arena = hck_arena_get() ?? arenaProvider?() else { return nil }
  guard let slot = takeSlot(arena) else { return nil }
  openSlot(slot, arena)
  if arena.pointee.flags & HCK_FLAG_IN_PROCESS != 0 { beginUnseen(slot, arena) }
  return slot
}

/// Makes a reserved slot the calling thread's own. `stackBytes`: of the stack that glibc gave it,
/// whose end is the thread's own descriptor; 0 where that is not known.
public func openSlot(
  _ slot: Slot, _ arena: UnsafeMutablePointer<hck_arena>, stackBytes: UInt64 = 0
) {
  slot.pointee.stack_high = 0
  slot.pointee.stack_low = 0
  if stackBytes != 0 {
    slot.pointee.stack_high = UInt64(UInt(pthread_self()))
    // Guard pages and a margin lie below; half of it is certainly stack.
    slot.pointee.stack_low = slot.pointee.stack_high &- stackBytes / 2
  } else if hck_gettid() == arena.pointee.pid {
    // Above the first frame lie the arguments and the environment; below, nothing else for the
    // kernel's gap.
    slot.pointee.stack_high = arena.pointee.main_stack_end
    slot.pointee.stack_low = slot.pointee.stack_high == 0 ? 0 : slot.pointee.stack_high &- 1 << 20
    slot.pointee.order_base = learnsOrders(arena) ? hck_main_thread_queue() : 0
  }
  slot.pointee.tid = hck_gettid()
  slot.pointee.pthread = UInt64(UInt(pthread_self()))
  beginContext(slot, arena)
  // So that every signal comes by.
  if arena.pointee.flags & HCK_FLAG_SEMAPHORES != 0 { slot.pointee.knows |= 1 }
  hck_store32(&slot.pointee.state, HCK_SLOT_LIVE.rawValue)
  hck_set_slot_of_thread(slot)
  if hasThreadKey { pthread_setspecific(threadKey, slot) }
}

/// What a join of that thread waits for, by its `pthread_t`.
@inlinable @inline(__always)
public func joinWord(_ thread: UInt64, _ flags: UInt64 = 0) -> ResourceWord {
  thread | UInt64(HCK_JOIN.rawValue) &<< UInt64(HCK_KIND_SHIFT) | flags
}

/// A fresh or used slot, reserved (`HCK_SLOT_STARTING`); nil and counted when the arena is full.
public func takeSlot(_ arena: UnsafeMutablePointer<hck_arena>) -> Slot? {
  while true {
    let head = hck_load64(&arena.pointee.free_slot)
    let number = UInt32(truncatingIfNeeded: head)
    if number == 0 { break }
    let slot = slotAt(arena, number &- 1)
    let next = UInt64(slot.pointee.next_free) | ((head >> 32) &+ 1) << 32
    if hck_cas64(&arena.pointee.free_slot, head, next) != 0 {
      slot.pointee.generation &+= 1
      prepare(slot, arena)
      return slot
    }
  }
  while true {
    let index = hck_load32(&arena.pointee.slots)
    let end = UInt64(HCK_FIRST_SLOT) &+ (UInt64(index) &+ 1) &* UInt64(HCK_SLOT_BYTES)
    // Whoever sees the slot may read it, so it is there before it is counted.
    guard end <= hck_load64(&arena.pointee.chunks_end),
      end <= hck_load64(&arena.pointee.ready_low) || hck_arena_ready(arena, end, UInt64.max) == 0
    else {
      hck_count64(&arena.pointee.unrecorded)
      return nil
    }
    if hck_cas32(&arena.pointee.slots, index, index &+ 1) != 0 {
      let slot = slotAt(arena, index)
      slot.pointee.index = index
      slot.pointee.capacity = UInt64(HCK_SLOT_ENTRIES)
      slot.pointee.held = entriesInside(slot)
      slot.pointee.held_offset =
        end &- UInt64(Int(HCK_SLOT_ENTRIES) &* MemoryLayout<hck_entry>.stride)
      prepare(slot, arena)
      return slot
    }
  }
}

private func prepare(_ slot: Slot, _ arena: UnsafeMutablePointer<hck_arena>) {
  slot.pointee.wait = 0
  slot.pointee.count = 0
  slot.pointee.tid = 0
  slot.pointee.pthread = 0
  slot.pointee.flags = 0
  slot.pointee.rounds = 0
  slot.pointee.created.frame = 0
  slot.pointee.order_base = 0
  slot.pointee.inherited = 0
  slot.pointee.knows = 0
  slot.pointee.given_to = 0
  slot.pointee.taken_from = 0
  slot.pointee.trial.lock = 0
  slot.pointee.trial.version = 0
  slot.pointee.born = hck_load32(&arena.pointee.clock)
  hck_store32(&slot.pointee.state, HCK_SLOT_STARTING.rawValue)
}

/// Puts a slot that holds nothing back for another thread.
public func giveSlot(_ slot: Slot, _ arena: UnsafeMutablePointer<hck_arena>) {
  hck_store32(&slot.pointee.state, HCK_SLOT_FREE.rawValue)
  while true {
    let head = hck_load64(&arena.pointee.free_slot)
    slot.pointee.next_free = UInt32(truncatingIfNeeded: head)
    let next = UInt64(slot.pointee.index &+ 1) | ((head >> 32) &+ 1) << 32
    if hck_cas64(&arena.pointee.free_slot, head, next) != 0 { return }
  }
}

/// A thread-specific key's destructor. Others' destructors may lock after ours, so it asks to be
/// called again until glibc's last round; a thread that leaves with something held keeps its slot,
/// as the owner that exited.
public func endThread(_ value: UnsafeMutableRawPointer?) {
  guard let value else { return }
  let slot = value.assumingMemoryBound(to: hck_slot.self)
  guard hck_slot_of_thread() == slot, let arena = hck_arena_get() else { return }
  slot.pointee.rounds &+= 1
  if slot.pointee.rounds < 4 {
    pthread_setspecific(threadKey, value)
    return
  }
  handOver(slot, joinWord(slot.pointee.pthread))
  hck_set_closed(2)
  hck_set_slot_of_thread(nil)
  slot.pointee.wait = 0
  dropHoles(slot)
  leaveTallies(slot, arena)
  slot.pointee.exited = hck_load32(&arena.pointee.clock)
  if slot.pointee.count == 0 {
    giveSlot(slot, arena)
  } else {
    withUnsafeMutablePointer(to: &slot.pointee.name) {
      hck_thread_name(UnsafeMutableRawPointer($0).assumingMemoryBound(to: CChar.self))
    }
    hck_store32(&slot.pointee.state, HCK_SLOT_EXITED.rawValue)
  }
}

@inline(__always)
public func slotAt(_ arena: UnsafeMutablePointer<hck_arena>, _ index: UInt32) -> Slot {
  UnsafeMutableRawPointer(arena)
    .advanced(by: Int(HCK_FIRST_SLOT) &+ Int(index) &* Int(HCK_SLOT_BYTES))
    .assumingMemoryBound(to: hck_slot.self)
}

private func entriesInside(_ slot: Slot) -> UnsafeMutablePointer<hck_entry> {
  UnsafeMutableRawPointer(slot)
    .advanced(by: Int(HCK_SLOT_BYTES) &- Int(HCK_SLOT_ENTRIES) &* MemoryLayout<hck_entry>.stride)
    .assumingMemoryBound(to: hck_entry.self)
}

/// Drops what any thread is on record to hold at `address`: the resource there was made anew or
/// given back by a thread that did not take it. Looks at every slot: for rare calls only.
public func forget(
  _ word: ResourceWord, in arena: UnsafeMutablePointer<hck_arena>, tid: UInt32? = nil
) {
  var index: UInt32 = 0
  let slots = hck_load32(&arena.pointee.slots)
  while index < slots {
    let slot = slotAt(arena, index)
    index &+= 1
    let state = hck_load32(&slot.pointee.state)
    if state != HCK_SLOT_LIVE.rawValue && state != HCK_SLOT_EXITED.rawValue { continue }
    if let tid, slot.pointee.tid != tid { continue }
    let count = hck_load64(&slot.pointee.count)
    if count == 0 || count > slot.pointee.capacity { continue }
    let held = UnsafeMutableRawPointer(arena).advanced(by: Int(slot.pointee.held_offset))
      .assumingMemoryBound(to: hck_entry.self)
    var entry = 0
    while entry < Int(count) {
      let seen = hck_load64(&held[entry].resource)
      if seen & ~heldFlags == word { _ = hck_cas64(&held[entry].resource, seen, holeBit) }
      entry &+= 1
    }
  }
}
