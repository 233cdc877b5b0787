// Permits and enters: what a thread did to resources that have no owner in the sense of a lock.
//
// Each thread counts in a few records of its own; what finds no room there, what a thread leaves
// behind, and where each resource was made lie in a table that all threads share. A signal's
// handler may count at any point: while the records change (`busy`) it goes to the table, whose
// records are claimed by compare-and-swap.
public import CHangcheck

public typealias Tally = UnsafeMutablePointer<hck_tally>

/// Counts one operation on a resource, by call site; the site is kept the first time. Touches memory
/// of the calling thread alone while the site is known. Async-signal-safe.
@inlinable @inline(__always)
public func tally(
  _ slot: Slot, _ word: ResourceWord, _ operation: hck_operation, _ frame: UnsafeRawPointer
) {
  if hck_tally_again(slot, word, operation.rawValue, frame) == 0 {
    tallyFirst(slot, word, operation, frame)
  }
}

/// Says that the resource was made here, with that initial value, and forgets what was done to
/// another one at its address. Async-signal-safe.
@inline(never)
public func tallyCreation(
  _ slot: Slot, _ word: ResourceWord, value: UInt64, _ frame: UnsafeRawPointer
) {
  let error = hck_errno()
  defer { hck_set_errno(error) }
  guard let arena = hck_arena_get() else { return }
  forgetOwnTallies(slot, word)
  guard let table = sharedTallies(arena, make: true) else { return }
  forgetTallies(word, in: arena)
  guard let index = claimTally(table, word) else {
    hck_count64(&arena.pointee.unrecorded)
    return
  }
  let record = hck_shared_tally(table, index)
  fillTally(record, slot, word, HCK_CREATE, frame)
  record.pointee.count = value
  record.pointee.key = word | UInt64(HCK_CREATE.rawValue) << 60
  publishTally(table, index, word)
}

/// Forgets what the table has on the resource, which is no more. Threads may still have it on their
/// own record; that is left out when it finds no record of the creation in the table.
public func forgetTallies(_ word: ResourceWord, in arena: UnsafeMutablePointer<hck_arena>) {
  guard let table = sharedTallies(arena, make: false) else { return }
  let start = hck_shared_tally_start(word)
  var step: UInt32 = 0
  while step < UInt32(HCK_TALLY_RUN) {
    let place = hck_shared_tally_word(table, start &+ step)
    let there = hck_load64(place)
    if there > 1, (there ^ word) & addressMask == 0 {
      hck_shared_tally(table, start &+ step).pointee.key = 0
      hck_order()
      _ = hck_cas64(place, there, 0)
    }
    step &+= 1
  }
}

/// Where a resource was made, on record; nil when that is not known.
public func creationTally(_ word: ResourceWord, in arena: UnsafeMutablePointer<hck_arena>) -> Tally?
{
  guard let table = sharedTallies(arena, make: false) else { return nil }
  let start = hck_shared_tally_start(word)
  var step: UInt32 = 0
  while step < UInt32(HCK_TALLY_RUN) {
    if hck_load64(hck_shared_tally_word(table, start &+ step)) == word {
      let record = hck_shared_tally(table, start &+ step)
      if record.pointee.operation == HCK_CREATE.rawValue { return record }
    }
    step &+= 1
  }
  return nil
}

@inlinable @inline(__always) var addressMask: UInt64 { 0x00ff_ffff_ffff_ffff }

/// The first time that this thread does this here, or the first time since its record went to the
/// table.
@usableFromInline @inline(never)
func tallyFirst(
  _ slot: Slot, _ word: ResourceWord, _ operation: hck_operation, _ frame: UnsafeRawPointer
) {
  let error = hck_errno()
  defer { hck_set_errno(error) }
  guard let arena = hck_arena_get() else { return }
  guard let tallies = slot.pointee.tallies ?? makeTallies(slot, arena) else { return }
  let key = hck_tally_key(slot, tallies, word, operation.rawValue, frame)
  if tallies.pointee.busy != 0 {
    tallyAside(slot, word, operation, key, frame, arena)
    return
  }
  tallies.pointee.busy = 1
  hck_order()
  if let record = findTally(tallies, key) {
    record.pointee.count &+= 1
    record.pointee.last = hck_load32(&arena.pointee.clock)
    hck_tally_hint(tallies, key, record)
  } else {
    let record = roomForTally(tallies, word, operation, frame)
    if record.pointee.key != 0 { shareTally(record, slot.pointee.tid, nil, arena) }
    record.pointee.key = 0
    hck_order()
    fillTally(record, slot, word, operation, frame)
    record.pointee.count = 1
    hck_order()
    record.pointee.key = key
    hck_tally_hint(tallies, key, record)
  }
  hck_order()
  tallies.pointee.busy = 0
}

/// What a thread that ends has counted goes to the table, with its name. Called where it records
/// nothing any more.
func leaveTallies(_ slot: Slot, _ arena: UnsafeMutablePointer<hck_arena>) {
  guard let tallies = slot.pointee.tallies else { return }
  var hasName = false
  var index: UInt32 = 0
  while index < UInt32(HCK_TALLIES) {
    let record = hck_tally_at(tallies, index)
    if record.pointee.key != 0 {
      if !hasName {
        withUnsafeMutablePointer(to: &slot.pointee.name) {
          hck_thread_name(UnsafeMutableRawPointer($0).assumingMemoryBound(to: CChar.self))
        }
        hasName = true
      }
      shareTally(record, slot.pointee.tid, slot, arena)
      record.pointee.key = 0
    }
    index &+= 1
  }
  tallies.pointee.reach = tallyReach
  tallies.pointee.busy = 0
}

private func fillTally(
  _ record: Tally, _ slot: Slot, _ word: ResourceWord, _ operation: hck_operation,
  _ frame: UnsafeRawPointer
) {
  record.pointee.resource = word
  record.pointee.operation = operation.rawValue
  record.pointee.tid = slot.pointee.tid
  withUnsafeMutablePointer(to: &record.pointee.site) { hck_site(slot, $0, frame) }
  hck_more_site(slot, record, frame)
  record.pointee.first = record.pointee.site.since
  record.pointee.last = record.pointee.site.since
  hck_tally_name(record)[0] = 0
}

/// In a signal's handler that interrupted this thread while its records changed.
private func tallyAside(
  _ slot: Slot, _ word: ResourceWord, _ operation: hck_operation, _ key: UInt64,
  _ frame: UnsafeRawPointer, _ arena: UnsafeMutablePointer<hck_arena>
) {
  guard let table = sharedTallies(arena, make: true), let index = claimTally(table, word) else {
    hck_count64(&arena.pointee.unrecorded)
    return
  }
  let record = hck_shared_tally(table, index)
  fillTally(record, slot, word, operation, frame)
  record.pointee.count = 1
  record.pointee.key = key
  publishTally(table, index, word)
}

private func makeTallies(_ slot: Slot, _ arena: UnsafeMutablePointer<hck_arena>)
  -> UnsafeMutablePointer<hck_tallies>?
{
  guard let offset = takeChunk(arena, bytes: UInt64(MemoryLayout<hck_tallies>.stride)) else {
    hck_count64(&arena.pointee.unrecorded)
    return nil
  }
  let tallies = UnsafeMutableRawPointer(arena).advanced(by: Int(offset))
    .assumingMemoryBound(to: hck_tallies.self)
  hck_tally_clear_hints(tallies)
  tallies.pointee.reach = tallyReach
  // A handler that came first made its own, which is as good.
  if let other = slot.pointee.tallies { return other }
  slot.pointee.tallies_offset = offset
  hck_order()
  slot.pointee.tallies = tallies
  return tallies
}

private func findTally(_ tallies: UnsafeMutablePointer<hck_tallies>, _ key: UInt64) -> Tally? {
  var index: UInt32 = 0
  while index < UInt32(HCK_TALLIES) {
    let record = hck_tally_at(tallies, index)
    if record.pointee.key == key { return record }
    index &+= 1
  }
  return nil
}

/// A free record, or the one that was used longest ago. Where one return address is there under
/// many keys, what looks like the caller's frame is none (code without frame pointers has anything
/// at all in rbp), and it takes part in this thread's keys no longer.
private func roomForTally(
  _ tallies: UnsafeMutablePointer<hck_tallies>, _ word: ResourceWord, _ operation: hck_operation,
  _ frame: UnsafeRawPointer
) -> Tally {
  let returnAddress = frame.load(fromByteOffset: 8, as: UInt64.self)
  var same = 0
  var step: UInt32 = 0
  let begin = tallies.pointee.next
  var best = hck_tally_at(tallies, begin % UInt32(HCK_TALLIES))
  while step < UInt32(HCK_TALLIES) {
    let record = hck_tally_at(tallies, (begin &+ step) % UInt32(HCK_TALLIES))
    step &+= 1
    if record.pointee.key == 0 {
      if best.pointee.key != 0 { best = record }
      continue
    }
    if record.pointee.resource == word, record.pointee.operation == operation.rawValue,
      hck_tally_return(record) == returnAddress
    {
      same &+= 1
    }
    if best.pointee.key != 0, record.pointee.last < best.pointee.last { best = record }
  }
  tallies.pointee.next = begin &+ 1
  if same >= 12 { tallies.pointee.reach = 0 }
  return best
}

/// Adds a thread's record to the table; `ended`: the slot of a thread that has ended, for its name.
private func shareTally(
  _ record: Tally, _ tid: UInt32, _ ended: Slot?, _ arena: UnsafeMutablePointer<hck_arena>
) {
  guard let table = sharedTallies(arena, make: true) else { return }
  let word = record.pointee.resource
  let start = hck_shared_tally_start(word)
  var merged: Tally? = nil
  var created: Tally? = nil
  var step: UInt32 = 0
  while step < UInt32(HCK_TALLY_RUN) {
    if hck_load64(hck_shared_tally_word(table, start &+ step)) == word {
      let other = hck_shared_tally(table, start &+ step)
      if other.pointee.operation == HCK_CREATE.rawValue { created = other }
      if other.pointee.key == record.pointee.key {
        if other.pointee.tid == tid || merged == nil { merged = other }
      }
    }
    step &+= 1
  }
  if let created {
    if record.pointee.last < created.pointee.first { return }
  } else if isCreationSeen(word) {
    return
  }
  if let merged, merged.pointee.tid == tid {
    addTally(record, to: merged)
    if let ended { copyName(ended, merged) }
    return
  }
  if let index = claimTally(table, word) {
    let fresh = hck_shared_tally(table, index)
    fresh.pointee = record.pointee
    if let ended { copyName(ended, fresh) }
    publishTally(table, index, word)
  } else if let merged {
    merged.pointee.tid = 0
    addTally(record, to: merged)
  } else {
    hck_count64(&arena.pointee.unrecorded)
  }
}

/// Whether a resource of that kind cannot be used before the recorder has seen it made, and is
/// forgotten when it ends: what is on record without its creation is then of one that has ended.
private func isCreationSeen(_ word: ResourceWord) -> Bool {
  #if hasFeature(Embedded)
    let kind = UInt32(truncatingIfNeeded: word >> 56) & 15
    return kind == HCK_SEMAPHORE.rawValue || kind == HCK_GROUP.rawValue
  #else
    return false
  #endif
}

private func addTally(_ record: Tally, to other: Tally) {
  hck_add64(&other.pointee.count, record.pointee.count)
  if record.pointee.last > other.pointee.last { other.pointee.last = record.pointee.last }
}

private func copyName(_ slot: Slot, _ record: Tally) { record.pointee.name = slot.pointee.name }

/// Reserves a record of the table for that resource.
private func claimTally(_ table: UnsafeMutableRawPointer, _ word: ResourceWord) -> UInt32? {
  let start = hck_shared_tally_start(word)
  var step: UInt32 = 0
  while step < UInt32(HCK_TALLY_RUN) {
    let place = hck_shared_tally_word(table, start &+ step)
    if hck_load64(place) == 0, hck_cas64(place, 0, 1) != 0 { return start &+ step }
    step &+= 1
  }
  return nil
}

private func publishTally(_ table: UnsafeMutableRawPointer, _ index: UInt32, _ word: ResourceWord) {
  hck_store64(hck_shared_tally_word(table, index), word)
}

private func forgetOwnTallies(_ slot: Slot, _ word: ResourceWord) {
  guard let tallies = slot.pointee.tallies, tallies.pointee.busy == 0 else { return }
  var index: UInt32 = 0
  while index < UInt32(HCK_TALLIES) {
    let record = hck_tally_at(tallies, index)
    if (record.pointee.resource ^ word) & addressMask == 0 { record.pointee.key = 0 }
    index &+= 1
  }
}

private func sharedTallies(_ arena: UnsafeMutablePointer<hck_arena>, make: Bool)
  -> UnsafeMutableRawPointer?
{
  var offset = hck_load64(&arena.pointee.shared_tallies)
  if offset == 0 {
    guard make else { return nil }
    guard let fresh = takeChunk(arena, bytes: hck_shared_tallies_bytes()) else {
      hck_count64(&arena.pointee.unrecorded)
      return nil
    }
    if hck_cas64(&arena.pointee.shared_tallies, 0, fresh) == 0 {
      offset = hck_load64(&arena.pointee.shared_tallies)
    } else {
      offset = fresh
    }
  }
  return UnsafeMutableRawPointer(arena).advanced(by: Int(offset))
}

private var tallyReach: UInt64 { 1 << 16 }

/// How often all threads did that to the resource, as far as it is on record. Looks at every slot:
/// for rare calls only.
public func talliedCount(
  _ word: ResourceWord, _ operation: hck_operation, in arena: UnsafeMutablePointer<hck_arena>
) -> UInt64 {
  var count: UInt64 = 0
  if let table = sharedTallies(arena, make: false) {
    let start = hck_shared_tally_start(word)
    var step: UInt32 = 0
    while step < UInt32(HCK_TALLY_RUN) {
      if hck_load64(hck_shared_tally_word(table, start &+ step)) == word {
        let record = hck_shared_tally(table, start &+ step)
        if record.pointee.operation == operation.rawValue { count &+= record.pointee.count }
      }
      step &+= 1
    }
  }
  var index: UInt32 = 0
  let slots = hck_load32(&arena.pointee.slots)
  while index < slots {
    let slot = slotAt(arena, index)
    index &+= 1
    guard hck_load32(&slot.pointee.state) == HCK_SLOT_LIVE.rawValue,
      let tallies = slot.pointee.tallies
    else { continue }
    var at: UInt32 = 0
    while at < UInt32(HCK_TALLIES) {
      let record = hck_tally_at(tallies, at)
      at &+= 1
      if record.pointee.key != 0, record.pointee.resource == word,
        record.pointee.operation == operation.rawValue
      {
        count &+= record.pointee.count
      }
    }
  }
  return count
}
