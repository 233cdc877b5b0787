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
  if memory.pointee.word == word, memory.pointee.given == slot.pointee.knows { return }
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
  if memory.pointee.word != word { memory.pointee.taken = 0 }
  memory.pointee.word = word
  memory.pointee.given = slot.pointee.knows
  memory.pointee.record = UInt64(UInt(bitPattern: record))
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
  if let known, known.pointee.word == word, known.pointee.taken == version { return }
  guard let orders = slot.pointee.orders ?? makeThreadOrders(slot, arena),
    orders.pointee.busy == 0
  else { return }
  orders.pointee.busy = 1
  hck_order()
  let memory = hck_known_hand(orders, word)
  if memory.pointee.word != word { memory.pointee.given = 0 }
  memory.pointee.word = word
  memory.pointee.taken = version
  memory.pointee.record = UInt64(UInt(bitPattern: record))
  if joinClock(&orders.pointee.known, with: first, shared, arena) { slot.pointee.knows &+= 1 }
  hck_order()
  orders.pointee.busy = 0
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
  guard let theirs = other.pointee.orders, theirs.pointee.component | theirs.pointee.known != 0,
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
    if hck_is_worker_name(name) != 0 { slot.pointee.order_base = onAnyQueue }
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

// MARK: - Contexts

/// What a thread knows, as a clock for whom it starts; 0 for nothing.
public func knowledge(of slot: Slot) -> UInt32 {
  slot.pointee.segment &+= 1
  guard let orders = slot.pointee.orders, orders.pointee.component | orders.pointee.known != 0,
    let arena = hck_arena_get(), let shared = ordersOf(arena), orders.pointee.busy == 0
  else { return 0 }
  orders.pointee.busy = 1
  hck_order()
  var clock: UInt32 = 0
  _ = growClock(&clock, by: orders, shared, arena)
  hck_order()
  orders.pointee.busy = 0
  return clock
}

/// A record for work on its way to another thread, with what the calling one knows; nil where there
/// is no room.
public func makeJob(
  _ slot: Slot, _ function: UInt64, _ context: UInt64
) -> UnsafeMutablePointer<hck_job>? {
  guard let arena = hck_arena_get(), learnsOrders(arena), let shared = makeOrders(arena),
    let number = takeRecord(
      HCK_PAGES_JOBS, hck_job.self, { hck_load32(&$0.pointee.next) }, shared, arena)
  else { return nil }
  let job = recordAt(number, HCK_PAGES_JOBS, hck_job.self, shared, arena)
  job.pointee.function = function
  job.pointee.context = context
  job.pointee.entered = 0
  job.pointee.notifies = 0
  job.pointee.number = number
  job.pointee.known = knowledge(of: slot)
  return job
}

public func dropJob(_ job: UnsafeMutablePointer<hck_job>) {
  guard let arena = hck_arena_get(), let shared = ordersOf(arena) else { return }
  giveRecord(
    HCK_PAGES_JOBS, job.pointee.number, { hck_store32(&job.pointee.next, $0) }, shared)
}

/// What a clock says, once more.
public func copyOfKnowledge(_ clock: UInt32) -> UInt32 {
  guard clock != 0, let arena = hck_arena_get(), let shared = ordersOf(arena) else { return 0 }
  return copyClock(clock, shared, arena)
}

/// Gives back what nobody took up.
public func dropKnowledge(_ clock: UInt32) {
  guard clock != 0, let arena = hck_arena_get(), let shared = ordersOf(arena) else { return }
  freeClock(clock, shared, arena)
}

/// A thread begins in the slot, knowing what its creator did.
func beginContext(_ slot: Slot, _ arena: UnsafeMutablePointer<hck_arena>) {
  let inherited = slot.pointee.inherited
  slot.pointee.inherited = 0
  if slot.pointee.orders == nil, inherited == 0 { return }
  guard let orders = slot.pointee.orders ?? makeThreadOrders(slot, arena),
    let shared = ordersOf(arena)
  else { return }
  freeClock(orders.pointee.known, shared, arena)
  orders.pointee.known = inherited
  orders.pointee.start = orders.pointee.epoch &+ 1
  slot.pointee.knows = inherited == 0 ? 0 : 1
  slot.pointee.given = 0
  slot.pointee.taken_from = 0
  orders.pointee.context = 0
  orders.pointee.is_block = 0
  orders.pointee.busy = 0
  hck_forget_orders(orders)
  slot.pointee.segment &+= 1
}

/// What a thread was before it began to run somebody else's block.
public struct OuterContext {
  var context: UInt64 = 0
  var start: UInt32 = 0
  var known: UInt32 = 0
  var isBlock: UInt32 = 0
  var hadOrders = false
}

/// Whether the thread is one of libdispatch's and runs no block that is known, nor holds anything.
public func isAtItsBase(_ slot: Slot) -> Bool {
  slot.pointee.order_base == onAnyQueue && slot.pointee.count == 0
    && slot.pointee.orders?.pointee.is_block ?? 0 == 0
}

/// The thread begins a block that knows what `clock` says, which it takes over, and nothing of what
/// the thread did before. A thread that always runs on one queue goes on: its blocks never meet.
public func beginBlock(_ slot: Slot, knowing clock: UInt32) -> OuterContext {
  var outer = OuterContext()
  guard let arena = hck_arena_get(),
    let orders = slot.pointee.orders
      ?? (clock == 0 ? nil : makeThreadOrders(slot, arena))
  else { return outer }
  if slot.pointee.order_base != onAnyQueue {
    if clock != 0, let shared = ordersOf(arena) {
      if joinClock(&orders.pointee.known, with: clock, shared, arena) {
        slot.pointee.knows &+= 1
      }
      freeClock(clock, shared, arena)
    }
    return outer
  }
  outer.hadOrders = true
  outer.context = orders.pointee.context
  outer.start = orders.pointee.start
  outer.known = orders.pointee.known
  outer.isBlock = orders.pointee.is_block
  enter(slot, orders, context: 0, start: orders.pointee.epoch &+ 1, known: clock, isBlock: 1)
  return outer
}

/// The block has ended: the thread is what it was.
public func endBlock(_ slot: Slot, _ outer: OuterContext) {
  guard slot.pointee.order_base == onAnyQueue, let orders = slot.pointee.orders,
    let arena = hck_arena_get(), let shared = ordersOf(arena)
  else { return }
  let known = orders.pointee.known
  if outer.hadOrders {
    enter(
      slot, orders, context: outer.context, start: outer.start, known: outer.known,
      isBlock: outer.isBlock)
  } else {
    // It had met no order before the block did.
    enter(slot, orders, context: 0, start: orders.pointee.epoch &+ 1, known: 0, isBlock: 0)
  }
  freeClock(known, shared, arena)
}

@inline(__always)
private func enter(
  _ slot: Slot, _ orders: UnsafeMutablePointer<hck_thread_orders>, context: UInt64, start: UInt32,
  known: UInt32, isBlock: UInt32
) {
  orders.pointee.busy = 1
  hck_order()
  orders.pointee.context = context
  orders.pointee.start = start
  orders.pointee.known = known
  orders.pointee.is_block = isBlock
  slot.pointee.knows &+= 1
  slot.pointee.taken_from = 0
  // What is known of this context is not known of the other.
  slot.pointee.segment &+= 1
  hck_order()
  orders.pointee.busy = 0
}

// MARK: - Clocks

/// Adds what a thread knows, and its own epoch. Whether that was news.
private func growClock(
  _ root: UnsafeMutablePointer<UInt32>, by orders: UnsafeMutablePointer<hck_thread_orders>,
  _ shared: UnsafeMutablePointer<hck_orders>, _ arena: UnsafeMutablePointer<hck_arena>
) -> Bool {
  var isNews = joinClock(root, with: orders.pointee.known, shared, arena)
  if orders.pointee.component != 0 {
    isNews =
      raiseClock(root, orders.pointee.component, orders.pointee.epoch, shared, arena) || isNews
  }
  return isNews
}

private func joinClock(
  _ root: UnsafeMutablePointer<UInt32>, with other: UInt32,
  _ shared: UnsafeMutablePointer<hck_orders>, _ arena: UnsafeMutablePointer<hck_arena>
) -> Bool {
  var from = other
  var to = root
  var isNews = false
  while from != 0 {
    let source = clockAt(from, shared, arena)
    guard let target = part(at: to, shared, arena) else { break }
    var index: UInt32 = 0
    while index < UInt32(HCK_CLOCK_EPOCHS) {
      let epoch = hck_load32(hck_clock_epoch(source, index))
      if epoch != 0, hck_clock_raise(hck_clock_epoch(target, index), epoch) != 0 { isNews = true }
      index &+= 1
    }
    from = hck_load32(&source.pointee.next)
    to = hck_clock_next(target)
  }
  if isNews, root.pointee != 0 {
    hck_add32(&clockAt(root.pointee, shared, arena).pointee.version, 1)
  }
  return isNews
}

private func raiseClock(
  _ root: UnsafeMutablePointer<UInt32>, _ component: UInt32, _ epoch: UInt32,
  _ shared: UnsafeMutablePointer<hck_orders>, _ arena: UnsafeMutablePointer<hck_arena>
) -> Bool {
  var to = root
  var left = component &- 1
  while true {
    guard let target = part(at: to, shared, arena) else { return false }
    if left < UInt32(HCK_CLOCK_EPOCHS) {
      guard hck_clock_raise(hck_clock_epoch(target, left), epoch) != 0 else { return false }
      hck_add32(&clockAt(root.pointee, shared, arena).pointee.version, 1)
      return true
    }
    left &-= UInt32(HCK_CLOCK_EPOCHS)
    to = hck_clock_next(target)
  }
}

/// The part of a clock that a link leads to, made where there is none yet.
private func part(
  at link: UnsafeMutablePointer<UInt32>, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UnsafeMutablePointer<hck_clock>? {
  let there = hck_load32(link)
  if there != 0 { return clockAt(there, shared, arena) }
  guard
    let fresh = takeRecord(
      HCK_PAGES_CLOCKS, hck_clock.self, { hck_load32(&$0.pointee.next) }, shared, arena)
  else { return nil }
  let clock = clockAt(fresh, shared, arena)
  hck_clear_clock(clock)
  if hck_cas32(link, 0, fresh) != 0 { return clock }
  freeClock(fresh, shared, arena)
  return clockAt(hck_load32(link), shared, arena)
}

/// What a clock says of one component.
func epochIn(
  _ clock: UInt32, _ component: UInt32, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UInt32 {
  var part = clock
  var left = component &- 1
  while part != 0 {
    let words = clockAt(part, shared, arena)
    if left < UInt32(HCK_CLOCK_EPOCHS) { return hck_load32(hck_clock_epoch(words, left)) }
    left &-= UInt32(HCK_CLOCK_EPOCHS)
    part = hck_load32(&words.pointee.next)
  }
  return 0
}

func copyClock(
  _ clock: UInt32, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UInt32 {
  var copy: UInt32 = 0
  _ = joinClock(&copy, with: clock, shared, arena)
  return copy
}

func freeClock(
  _ clock: UInt32, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) {
  var number = clock
  while number != 0 {
    let record = clockAt(number, shared, arena)
    let next = hck_load32(&record.pointee.next)
    giveRecord(HCK_PAGES_CLOCKS, number, { hck_store32(&record.pointee.next, $0) }, shared)
    number = next
  }
}
