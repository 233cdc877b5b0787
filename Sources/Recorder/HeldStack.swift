// The recorder's hot path: what a thread holds and waits for, in its own slot.
//
// Compiled twice: as the module Recorder (in-process drop-ins) and, through a symbolic link, inside
// HangAgent, where it is Embedded Swift. Nothing here allocates, locks, calls the runtime, or calls
// what the agent interposes. Every function may be interrupted by a signal whose handler records
// too: see the invariants in hck_layout.h.
public import CHangcheck

/// What a held or awaited resource is, in one word: address, kind and flags (`hck_layout.h`).
public typealias ResourceWord = UInt64

public typealias Slot = UnsafeMutablePointer<hck_slot>

@inlinable @inline(__always)
public func resourceWord(_ address: UnsafeRawPointer, _ kind: hck_kind, _ flags: UInt64 = 0)
  -> ResourceWord
{
  UInt64(UInt(bitPattern: address)) | UInt64(kind.rawValue) &<< UInt64(HCK_KIND_SHIFT) | flags
}

/// The calling thread's slot; nil while or where nothing can be recorded. Async-signal-safe.
@inlinable @inline(__always)
public func currentSlot() -> Slot? {
  if let slot = hck_slot_of_thread() { return slot }
  return beginThread()
}

/// Says that the thread may block from here on. The clock of the wait is the reader's: it sees when
/// the wait began. Returns what `endWait` puts back: in a signal's handler, the wait that the
/// signal interrupted.
@inlinable @inline(__always) @discardableResult
public func beginWait(_ slot: Slot, _ word: ResourceWord) -> ResourceWord {
  let before = slot.pointee.wait
  slot.pointee.wait = word
  hck_order()
  return before
}

@inlinable @inline(__always)
public func endWait(_ slot: Slot, _ before: ResourceWord) {
  hck_order()
  slot.pointee.wait = before
}

/// Pushes what was just acquired (with `timedBit` what was not waited for, or not for ever), with the
/// site that `frame` (of the recorder's entry point) stands
/// for, and passes `result` on, so that the rare case is a tail call and the usual one keeps few
/// registers: each is a store that the next locked operation waits for.
@inlinable @inline(__always) @discardableResult
public func acquired(
  _ slot: Slot, _ word: ResourceWord, _ frame: UnsafeRawPointer, _ result: Int32 = 0
) -> Int32 {
  let index = slot.pointee.count
  let end = hck_site_end(slot, frame)
  if index >= slot.pointee.capacity || hck_site_is_short(frame, end) != 0 {
    return acquiredUnusually(slot, word, frame, result)
  }
  slot.pointee.count = index &+ 1
  hck_order()
  let entry = slot.pointee.held + Int(truncatingIfNeeded: index)
  let isOrder = index != 0 || (slot.pointee.order_base != 0 && entry.pointee.looked_at != word)
  hck_whole_site(entry, frame, end)
  hck_order()
  entry.pointee.resource = word
  if isOrder { nested(slot, index) }
  return result
}

/// Where there is no room for one more, or less than a whole site to keep.
@usableFromInline @inline(never)
func acquiredUnusually(
  _ slot: Slot, _ word: ResourceWord, _ frame: UnsafeRawPointer, _ result: Int32
) -> Int32 {
  let index = slot.pointee.count
  if index >= slot.pointee.capacity {
    let error = hck_errno()
    let hasRoom = growHeldStack(slot)
    hck_set_errno(error)
    return hasRoom ? acquiredUnusually(slot, word, frame, result) : result
  }
  slot.pointee.count = index &+ 1
  hck_order()
  let entry = slot.pointee.held + Int(truncatingIfNeeded: index)
  let isOrder = index != 0 || (slot.pointee.order_base != 0 && entry.pointee.looked_at != word)
  if hck_keeps_callers() != 0 {
    hck_callers_site(entry, frame)
  } else {
    hck_site(slot, entry, frame)
  }
  hck_order()
  entry.pointee.resource = word
  if isOrder { nested(slot, index) }
  return result
}

/// Takes the newest entry of that resource off; false when the thread does not hold it. The mode is
/// not compared: an unlock does not say what it unlocks.
@inlinable @inline(__always) @discardableResult
public func released(_ slot: Slot, _ word: ResourceWord) -> Bool {
  releasedNewest(slot, word) || releasedUnusually(slot, word)
}

/// The same where that is the newest entry of all, without a hole below it; else nothing is done,
/// and the answer is false.
@inlinable @inline(__always)
public func releasedNewest(_ slot: Slot, _ word: ResourceWord) -> Bool {
  let count = slot.pointee.count
  if count == 0 { return false }
  let top = slot.pointee.held + Int(truncatingIfNeeded: count &- 1)
  if top.pointee.resource & ~heldFlags != word { return false }
  if count > 1, (top - 1).pointee.resource == holeBit { return false }
  top.pointee.resource = 0
  hck_order()
  slot.pointee.count = count &- 1
  return true
}

@usableFromInline @inline(never)
func releasedUnusually(_ slot: Slot, _ word: ResourceWord) -> Bool {
  let count = slot.pointee.count
  if count == 0 { return false }
  let top = slot.pointee.held + Int(truncatingIfNeeded: count &- 1)
  if top.pointee.resource & ~heldFlags != word { return releasedOutOfOrder(slot, word) }
  top.pointee.resource = 0
  hck_order()
  slot.pointee.count = count &- 1
  dropHoles(slot)
  return true
}

// The shifted macros of hck_layout.h are not imported into Swift.
@inlinable @inline(__always) public var sharedBit: UInt64 { 1 << 60 }
@inlinable @inline(__always) public var timedBit: UInt64 { 1 << 61 }
@inlinable @inline(__always) public var holeBit: UInt64 { 1 << 62 }
/// What an unlock does not say: how it was taken.
@inlinable @inline(__always) public var heldFlags: UInt64 { 3 << 60 }

/// Leaves a hole where something was released that is not the newest (hand over hand), so that no
/// entry moves.
private func releasedOutOfOrder(_ slot: Slot, _ word: ResourceWord) -> Bool {
  var index = slot.pointee.count
  while index > 0 {
    index &-= 1
    let entry = slot.pointee.held + Int(index)
    if entry.pointee.resource & ~heldFlags == word {
      entry.pointee.resource = holeBit
      releasedBelow(slot, index)
      return true
    }
  }
  return false
}

func dropHoles(_ slot: Slot) {
  while slot.pointee.count > 0 {
    let top = slot.pointee.held + Int(slot.pointee.count &- 1)
    if top.pointee.resource != holeBit { return }
    top.pointee.resource = 0
    hck_order()
    slot.pointee.count &-= 1
  }
}

/// Room for more entries. Where half of them are holes, as behind a thread that goes hand over hand
/// for ever, the others move together; else there is twice the room, from the arena's chunks. The
/// slot keeps it for the threads that use it later.
private func growHeldStack(_ slot: Slot) -> Bool {
  dropHoles(slot)
  if slot.pointee.count < slot.pointee.capacity { return true }
  guard let arena = hck_arena_get() else { return false }
  // A signal's handler records nothing while the entries move.
  let isOwn = hck_slot_of_thread() == slot
  let closed = hck_closed()
  if isOwn {
    hck_set_closed(2)
    hck_set_slot_of_thread(nil)
    hck_order()
  }
  let done = moveEntries(slot, arena)
  if isOwn {
    hck_order()
    hck_set_slot_of_thread(slot)
    hck_set_closed(closed)
  }
  return done
}

/// Copies all but the holes to where there is room, and only then lets the slot point there: a
/// reader sees the entries of before or those of now.
private func moveEntries(_ slot: Slot, _ arena: UnsafeMutablePointer<hck_arena>) -> Bool {
  let count = Int(truncatingIfNeeded: slot.pointee.count)
  let old = slot.pointee.held
  var live: UInt64 = 0
  var index = 0
  while index < count {
    if old[index].resource != holeBit { live &+= 1 }
    index &+= 1
  }
  let capacity =
    live &* 2 > slot.pointee.capacity ? slot.pointee.capacity &* 2 : slot.pointee.capacity
  var offset = slot.pointee.spare_offset
  if slot.pointee.spare_capacity < capacity {
    guard let fresh = takeChunk(arena, bytes: capacity &* UInt64(MemoryLayout<hck_entry>.stride))
    else {
      hck_count64(&arena.pointee.unrecorded)
      return false
    }
    offset = fresh
  }
  let chunk = UnsafeMutableRawPointer(arena).advanced(by: Int(offset))
    .assumingMemoryBound(to: hck_entry.self)
  var next = 0
  index = 0
  while index < count {
    if old[index].resource != holeBit {
      chunk[next] = old[index]
      next &+= 1
    }
    index &+= 1
  }
  while next < Int(truncatingIfNeeded: capacity) {
    chunk[next].resource = 0
    next &+= 1
  }
  slot.pointee.spare_offset = slot.pointee.held_offset
  slot.pointee.spare_capacity = slot.pointee.capacity
  hck_order()
  slot.pointee.held_offset = offset
  slot.pointee.held = chunk
  hck_order()
  slot.pointee.count = live
  slot.pointee.capacity = capacity
  return true
}

/// Room from the arena's end downwards; nil when slots and chunks would meet.
func takeChunk(_ arena: UnsafeMutablePointer<hck_arena>, bytes: UInt64) -> UInt64? {
  while true {
    let end = hck_load64(&arena.pointee.chunks_end)
    let slotsEnd =
      UInt64(HCK_FIRST_SLOT) &+ UInt64(hck_load32(&arena.pointee.slots)) &* UInt64(HCK_SLOT_BYTES)
    guard end > bytes, end &- bytes > slotsEnd &+ UInt64(HCK_SLOT_BYTES) else { return nil }
    guard
      end &- bytes >= hck_load64(&arena.pointee.ready_high)
        || hck_arena_ready(arena, 0, end &- bytes) == 0
    else { return nil }
    if hck_cas64(&arena.pointee.chunks_end, end, end &- bytes) != 0 { return end &- bytes }
  }
}
