// Happens-before: what one thread knew when it handed over to another, by creation, join, semaphore,
// condition, group or asynchronous block; never by a lock, whose order another schedule may turn
// around.
//
// Vector clocks (Fidge, Mattern), whose epochs tick only where a lock order is met: a program that
// nests no locks keeps none. A clock grows word by word, so nobody needs a lock to join one.
public import CHangcheck

/// What the thread did so far happens before whatever another one does after `takeOver` of the same
/// resource. Costs two loads while nothing is known that is new to it. Async-signal-safe.
@inlinable @inline(__always)
public func handOver(_ slot: Slot, _ word: ResourceWord) {
  slot.pointee.segment &+= 1
  let knows = slot.pointee.knows
  if knows != 0, slot.pointee.given_to != word || slot.pointee.given != knows {
    giveKnowledge(slot, word)
  }
}

/// The same of an object whose address may be another one's by now, so that what the thread handed
/// over to that address last proves nothing.
@inlinable @inline(__always)
public func handOver(_ slot: Slot, toObject word: ResourceWord) {
  slot.pointee.segment &+= 1
  if slot.pointee.knows != 0 { giveKnowledge(slot, word) }
}

/// The object at that address is no more, and nobody uses it: another one there begins with nothing.
public func goneObject(_ word: ResourceWord) {
  guard let arena = hck_arena_get(), let shared = ordersOf(arena),
    let record = handover(word, shared, arena, make: false), hck_load32(&record.pointee.clock) != 0
  else { return }
  // Its next clock counts its versions from the start.
  hck_add32(&record.pointee.generation, 1)
  let clock = hck_load32(&record.pointee.clock)
  if hck_cas32(&record.pointee.clock, clock, 0) != 0 { freeClock(clock, shared, arena) }
}

/// What the thread made so far may be known to others from here on.
@inlinable @inline(__always)
public func published(_ slot: Slot) { slot.pointee.segment &+= 1 }

/// What others had handed over there happens before what the thread does from here on.
@inlinable @inline(__always)
public func takeOver(_ slot: Slot, _ word: ResourceWord) {
  guard let arena = hck_arena_get() else { return }
  let handovers = hck_load64(&arena.pointee.handovers)
  if handovers != 0, slot.pointee.taken_from != word || slot.pointee.taken != handovers {
    takeKnowledge(slot, word, arena)
  }
}

@usableFromInline @inline(never)
func giveKnowledge(_ slot: Slot, _ word: ResourceWord) {
  if let arena = hck_arena_get(), arena.pointee.flags & HCK_FLAG_SEMAPHORES != 0,
    gaveBackPermit(slot, word, arena)
  {
    return
  }
  guard let orders = slot.pointee.orders else { return }
  slot.pointee.given_to = word
  slot.pointee.given = slot.pointee.knows
  let memory = hck_known_hand(orders, word)
  if memory.pointee.word == word, memory.pointee.given == slot.pointee.knows, isCurrent(memory) {
    return
  }
  guard let arena = hck_arena_get(), let shared = ordersOf(arena), orders.pointee.busy == 0 else {
    return
  }
  orders.pointee.busy = 1
  hck_order()
  defer {
    hck_order()
    orders.pointee.busy = 0
  }
  guard let record = handover(word, shared, arena, make: true) else { return }
  if memory.pointee.word != word || !isCurrent(memory) { memory.pointee.taken = 0 }
  remember(word, record, memory)
  memory.pointee.given = slot.pointee.knows
  if growClock(&record.pointee.clock, by: orders, shared, arena) {
    hck_count64(&arena.pointee.handovers)
  }
}

/// Where semaphores count as locks: one that lets one thread in is given back, perhaps by another
/// thread than took it, and hands nothing over.
private func gaveBackPermit(
  _ slot: Slot, _ word: ResourceWord, _ arena: UnsafeMutablePointer<hck_arena>
) -> Bool {
  guard word >> UInt64(HCK_KIND_SHIFT) == UInt64(HCK_SEMAPHORE.rawValue),
    let semaphore = UnsafeRawPointer(bitPattern: UInt(word & addressMask)),
    hck_semaphore_first(semaphore) == 1
  else { return false }
  if !released(slot, word) { forget(word, in: arena) }
  slot.pointee.given_to = 0
  return true
}

@usableFromInline @inline(never)
func takeKnowledge(
  _ slot: Slot, _ word: ResourceWord, _ arena: UnsafeMutablePointer<hck_arena>
) {
  slot.pointee.taken = hck_load64(&arena.pointee.handovers)
  slot.pointee.taken_from = word
  guard let shared = ordersOf(arena) else { return }
  let known = slot.pointee.orders.map { hck_known_hand($0, word) }
  var found: UnsafeMutablePointer<hck_handover>?
  if let known, known.pointee.word == word {
    found = UnsafeMutablePointer(bitPattern: UInt(known.pointee.record))
  } else {
    found = handover(word, shared, arena, make: false)
  }
  guard let record = found else { return }
  let first = hck_load32(&record.pointee.clock)
  guard first != 0 else { return }
  let version = hck_load32(&clockAt(first, shared, arena).pointee.version)
  if let known, known.pointee.word == word, known.pointee.taken == version, isCurrent(known) {
    return
  }
  guard let orders = slot.pointee.orders ?? makeThreadOrders(slot, arena),
    orders.pointee.busy == 0
  else { return }
  orders.pointee.busy = 1
  hck_order()
  let memory = hck_known_hand(orders, word)
  if memory.pointee.word != word || !isCurrent(memory) { memory.pointee.given = 0 }
  remember(word, record, memory)
  memory.pointee.taken = version
  if joinClock(&orders.pointee.known, with: first, shared, arena) { slot.pointee.knows &+= 1 }
  hck_order()
  orders.pointee.busy = 0
}

/// Whether what a thread remembers of an address is of what lies there now.
private func isCurrent(_ memory: UnsafeMutablePointer<hck_known_handover>) -> Bool {
  guard let record = UnsafeMutablePointer<hck_handover>(bitPattern: UInt(memory.pointee.record))
  else { return false }
  return hck_load32(&record.pointee.generation) == memory.pointee.generation
}

private func remember(
  _ word: ResourceWord, _ record: UnsafeMutablePointer<hck_handover>,
  _ memory: UnsafeMutablePointer<hck_known_handover>
) {
  memory.pointee.word = word
  memory.pointee.record = UInt64(UInt(bitPattern: record))
  memory.pointee.generation = hck_load32(&record.pointee.generation)
}

private func handover(
  _ word: ResourceWord, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>, make: Bool
) -> UnsafeMutablePointer<hck_handover>? {
  func at(_ number: UInt32) -> UnsafeMutablePointer<hck_handover> {
    recordAt(number, HCK_PAGES_HANDOVERS, hck_handover.self, shared, arena)
  }
  let chain = hck_handover_chain(shared, hck_mixed(word))
  while true {
    let head = hck_load32(chain)
    var number = head
    while number != 0 {
      let record = at(number)
      if record.pointee.word == word { return record }
      number = record.pointee.next
    }
    guard make,
      let fresh = newRecord(HCK_PAGES_HANDOVERS, hck_handover.self, shared, arena)
    else { return nil }
    let record = at(fresh)
    record.pointee.word = word
    record.pointee.next = head
    if hck_cas32(chain, head, fresh) != 0 { return record }
  }
}

/// What a thread without a name of its own hands over to: whoever begins, or asks for all, later.
@inlinable @inline(__always) var everybody: ResourceWord { 2 }

/// What the thread did so far happens before all threads that begin later.
public func handOverToAll(_ slot: Slot) { handOver(slot, everybody) }

/// All that any thread did so far happens before what this one does from here on.
public func takeOverAll(_ slot: Slot) {
  guard let arena = hck_arena_get() else { return }
  takeOver(slot, everybody)
  var index: UInt32 = 0
  let slots = hck_load32(&arena.pointee.slots)
  while index < slots {
    let other = slotAt(arena, index)
    index &+= 1
    if other != slot { takeOver(slot, from: other, arena) }
  }
}

/// A clock that grows meanwhile gives some of what it gets.
private func takeOver(_ slot: Slot, from other: Slot, _ arena: UnsafeMutablePointer<hck_arena>) {
  guard let theirs = other.pointee.orders, hasNews(theirs),
    let orders = slot.pointee.orders ?? makeThreadOrders(slot, arena),
    let shared = ordersOf(arena), orders.pointee.busy == 0
  else { return }
  orders.pointee.busy = 1
  hck_order()
  if growClock(&orders.pointee.known, by: theirs, shared, arena) { slot.pointee.knows &+= 1 }
  hck_order()
  orders.pointee.busy = 0
}

/// Without the agent nobody sees threads begin and be joined: one that is first seen comes after what
/// the main thread did, and after what threads did that somebody could join.
func beginUnseen(_ slot: Slot, _ arena: UnsafeMutablePointer<hck_arena>) {
  guard learnsOrders(arena) else { return }
  if slot.pointee.tid == arena.pointee.pid {
    slot.pointee.order_base = hck_main_thread_queue()
    return
  }
  var name: (UInt64, UInt64) = (0, 0)
  withUnsafeMutablePointer(to: &name) {
    let name = UnsafeMutableRawPointer($0).assumingMemoryBound(to: CChar.self)
    hck_thread_name(name)
    if hck_is_worker_name(name) != 0, hck_at_thread_return({ _ in leaveQueues() }) == 0 {
      slot.pointee.order_base = onAnyQueue
    }
  }
  takeOver(slot, everybody)
  var index: UInt32 = 0
  while index < hck_load32(&arena.pointee.slots) {
    let other = slotAt(arena, index)
    index &+= 1
    guard other.pointee.tid == arena.pointee.pid, other != slot else { continue }
    takeOver(slot, from: other, arena)
    break
  }
}
