// Groups: enters and leaves are counted by call site, waits are waits.
public import CHangAgent
public import CHangcheck

@inline(__always) func groupWord(_ group: UnsafeRawPointer) -> ResourceWord {
  resourceWord(group, HCK_GROUP)
}

@c(dispatch_group_create) public func dispatchGroupCreate() -> UnsafeMutableRawPointer? {
  let group = hck_real_dispatch_group_create()
  if let group, let slot = currentSlot() {
    hck_saw_group(group)
    tallyCreation(slot, groupWord(group), value: 0, hck_frame())
  }
  return group
}

@c(dispatch_group_enter) public func dispatchGroupEnter(_ group: DispatchObject) {
  if let slot = currentSlot() { tally(slot, groupWord(group), HCK_TAKE, hck_frame()) }
  hck_real_dispatch_group_enter(group)
}

/// libdispatch leaves by this function too, after a block that was submitted with the group.
@c(dispatch_group_leave) public func dispatchGroupLeave(_ group: DispatchObject) {
  let frame = hck_frame()
  if let slot = currentSlot() {
    if hck_knows_groups() != 0, hck_group_count(group) == 0 {
      raise(HCK_ALARM_GROUP_OVERLEFT, groupWord(group), waits: true, frame)
    }
    if hck_is_inner(frame) != 0 {
      leftByBlock(slot, group, frame)
    } else {
      tally(slot, groupWord(group), HCK_GIVE, frame)
    }
    handOver(slot, groupWord(group))
  }
  hck_real_dispatch_group_leave(group)
}

/// Each work item has a group that the program never sees: only one that it made is counted.
@inline(__always) private func leftByBlock(
  _ slot: Slot, _ group: DispatchObject, _ frame: UnsafeRawPointer
) {
  if hck_tally_again(slot, groupWord(group), HCK_GIVE_BY_BLOCK.rawValue, frame) == 0 {
    leftByBlockFirst(slot, group, frame)
  }
}

@inline(never) private func leftByBlockFirst(
  _ slot: Slot, _ group: DispatchObject, _ frame: UnsafeRawPointer
) {
  guard let arena = hck_arena_get(), creationTally(groupWord(group), in: arena) != nil else {
    return
  }
  tally(slot, groupWord(group), HCK_GIVE_BY_BLOCK, frame)
}

@c(dispatch_group_wait) public func dispatchGroupWait(_ group: DispatchObject, _ timeout: UInt64)
  -> Int
{
  // A wait for a work item is one for its group, which the program never sees.
  guard timeout != 0, let slot = currentSlot(), hck_is_inner(hck_frame()) == 0 else {
    return hck_real_dispatch_group_wait(group, timeout)
  }
  let before = beginWait(
    slot, timeout == UInt64.max ? groupWord(group) : groupWord(group) | timedBit)
  let result = hck_real_dispatch_group_wait(group, timeout)
  endWait(slot, before)
  if result == 0 { takeOver(slot, groupWord(group)) }
  return result
}

/// The program's last reference goes while the group has been entered. Blocks that run will leave
/// it; who entered it by hand and has nothing left to leave it with never will. In C the group may
/// be used beyond that, for the enter keeps it: so this is about Swift's wrappers alone.
func checkAbandoned(_ group: DispatchObject, _ frame: UnsafeRawPointer) {
  let count = UInt64(hck_group_count(group))
  guard count > 0, let arena = hck_arena_get(),
    hck_in_swift_dispatch(frame.load(fromByteOffset: 8, as: UInt64.self)) != 0
  else { return }
  let byHand = outstanding(groupWord(group), HCK_TAKE, HCK_GIVE, arena)
  let byBlock = outstanding(groupWord(group), HCK_TAKE_BY_BLOCK, HCK_GIVE_BY_BLOCK, arena)
  // Blocks end while this is added up, and records of another group that lay here may be left: what
  // does not tally is not said.
  guard byHand > 0, byBlock >= 0, byHand &+ byBlock == Int64(count),
    UInt64(hck_group_count(group)) == count
  else { return }
  raise(HCK_ALARM_GROUP_ABANDONED, groupWord(group), other: UInt64(byHand), frame)
}

private func outstanding(
  _ word: ResourceWord, _ take: hck_operation, _ give: hck_operation,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> Int64 {
  Int64(truncatingIfNeeded: talliedCount(word, take, in: arena))
    &- Int64(truncatingIfNeeded: talliedCount(word, give, in: arena))
}
