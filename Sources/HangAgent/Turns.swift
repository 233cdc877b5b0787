// What comes around again and again on the main thread and on the main queue: that it does is what
// hangcheck watches it for.
public import CHangAgent
public import CHangcheck

public typealias Turns = UnsafeMutablePointer<hck_turns>

/// Something begins now, or nothing; what was done before took until now.
@inline(__always) private func turn(_ turns: Turns, _ slot: Slot, isBusy: Bool) {
  let now = hck_monotonic_ns()
  let before = hck_load64(&turns.pointee.activity)
  if before & 1 != 0, now &- before > HCK_LONG_TURN {
    hck_store64(&turns.pointee.long_began, before & ~1)
    hck_store64(&turns.pointee.long_ended, now)
  }
  if turns.pointee.tid != slot.pointee.tid { hck_store32(&turns.pointee.tid, slot.pointee.tid) }
  hck_store64(&turns.pointee.activity, now & ~1 | (isBusy ? 1 : 0))
}

/// Foundation's run loops poll, whether they wait or only look: between two polls lies a turn.
/// Any other thread's, and the program's own calls, go through.
@c(ppoll) public func poll(
  _ descriptors: UnsafeMutablePointer<pollfd>?, _ count: nfds_t, _ time: UnsafePointer<timespec>?,
  _ mask: UnsafePointer<sigset_t>?
) -> Int32 {
  guard calledByFoundation(hck_frame()), let slot = currentSlot(),
    let arena = hck_arena_get(), arena.pointee.pid == slot.pointee.tid
  else { return hck_real_ppoll(descriptors, count, time, mask) }
  let turns = mainLoop(arena)
  turn(turns, slot, isBusy: false)
  let result = hck_real_ppoll(descriptors, count, time, mask)
  turn(turns, slot, isBusy: true)
  return result
}

@inline(__always) private func calledByFoundation(_ frame: UnsafeRawPointer) -> Bool {
  hck_in_foundation(frame.load(fromByteOffset: 8, as: UInt64.self)) != 0
}

/// An item of the main queue begins: returns what `endMainItem` puts back, for the item may run the
/// main queue itself.
func beginMainItem(_ slot: Slot) -> UInt64 {
  guard let arena = hck_arena_get() else { return 0 }
  let turns = mainQueue(arena)
  let before = hck_load64(&turns.pointee.activity)
  turn(turns, slot, isBusy: true)
  return before & 1 == 0 ? 0 : before
}

func endMainItem(_ slot: Slot, _ before: UInt64) {
  guard let arena = hck_arena_get() else { return }
  let turns = mainQueue(arena)
  turn(turns, slot, isBusy: false)
  if before != 0 { hck_store64(&turns.pointee.activity, before) }
}

@inline(__always) private func mainLoop(_ arena: UnsafeMutablePointer<hck_arena>) -> Turns {
  withUnsafeMutablePointer(to: &arena.pointee.main_loop) { $0 }
}

@inline(__always) private func mainQueue(_ arena: UnsafeMutablePointer<hck_arena>) -> Turns {
  withUnsafeMutablePointer(to: &arena.pointee.main_queue) { $0 }
}
