// Lock orders: which lock a thread takes while it holds which others.
//
// Known orders cost one probe of the thread's own memory; a new one goes to the log that all
// threads share (OrderTables.swift). The key of what is held is a hash of all that lies below it,
// as in Linux's lockdep, and of where in the code each was taken.
internal import CHangcheck

typealias ThreadOrders = UnsafeMutablePointer<hck_thread_orders>
typealias Orders = UnsafeMutablePointer<hck_orders>

// A constructor may take its new object's lock in any order: nobody else knows it yet. What was made
// that long ago, in milliseconds of the arena's clock, is no news any more.
private let freshness: UInt32 = 250
// So often met in one thread, an order is settled for it.
private let settledAfter: UInt32 = 16

/// Something was acquired while something else was held: learns the order, unless the thread knows
/// it. Async-signal-safe.
///
/// Nothing is kept across a call: that would be a store, for which the next locked operation waits.
@usableFromInline @inline(never)
func nested(_ slot: Slot, _ index: UInt64) {
  if slot.pointee.trial.lock != 0 { gotOn(slot, index) }
  let base = slot.pointee.order_base
  guard let orders = slot.pointee.orders, let shared = sharedOrders(orders),
    base != onAnyQueue || index > 1
  else { return nestedUnusually(slot, index) }
  nested(slot, index, base, orders, shared)
}

@inline(__always)
private func nested(
  _ slot: Slot, _ index: UInt64, _ base: UInt64, _ orders: ThreadOrders, _ shared: Orders
) {
  let entry = slot.pointee.held + Int(truncatingIfNeeded: index)
  let below = keyBelow(slot, index, base, shared)
  // One after the other: both at once would need registers that are stored first.
  hck_order()
  let key = hck_order_key(shared, below, entry)
  let known = hck_known(orders, key)
  if known.pointee.key == key,
    known.pointee.segment == slot.pointee.segment || known.pointee.segment == HCK_SETTLED
  {
    entry.pointee.order = key
    entry.pointee.node = known.pointee.node
    if index == 0 { lookedAt(entry, slot.pointee.order_base) }
    return
  }
  learn(slot, index, key)
}

/// On a thread whose queue changes, or that knows no order yet.
@inline(never)
private func nestedUnusually(_ slot: Slot, _ index: UInt64) {
  guard let arena = hck_arena_get(), learnsOrders(arena),
    let orders = slot.pointee.orders ?? makeThreadOrders(slot, arena),
    let shared = sharedOrders(orders)
  else { return unlearned(slot, index) }
  nested(slot, index, baseKey(slot), orders, shared)
}

/// Nothing is known of the entry's order.
private func unlearned(_ slot: Slot, _ index: UInt64) {
  let entry = slot.pointee.held + Int(truncatingIfNeeded: index)
  entry.pointee.order = 0
  entry.pointee.node = 0
  if index == 0 { lookedAt(entry, slot.pointee.order_base) }
}

/// On a thread whose queue is always the same, the outermost lock's order is looked for when it is
/// another lock than before: the usual one, the same again, costs a comparison.
@inline(__always) private func lookedAt(_ entry: UnsafeMutablePointer<hck_entry>, _ base: UInt64) {
  entry.pointee.looked_at = base == onAnyQueue ? 0 : entry.pointee.resource
}

@inline(__always) private func sharedOrders(_ orders: ThreadOrders) -> Orders? {
  Orders(bitPattern: UInt(orders.pointee.shared))
}

/// The key of what lies below an entry. The outermost lock's own is made when it is asked for: most
/// have nothing above them.
@inline(__always)
private func keyBelow(_ slot: Slot, _ index: UInt64, _ base: UInt64, _ shared: Orders) -> UInt64 {
  if index == 0 { return base }
  let below = slot.pointee.held + Int(truncatingIfNeeded: index &- 1)
  if index > 1 { return below.pointee.order }
  return below.pointee.resource == holeBit ? base : hck_order_key(shared, base, below)
}

/// An entry has become a hole: those above it have lost one that they were taken under.
func releasedBelow(_ slot: Slot, _ index: UInt64) {
  guard let orders = slot.pointee.orders, let shared = sharedOrders(orders) else { return }
  let base = baseKey(slot)
  let hole = slot.pointee.held + Int(truncatingIfNeeded: index)
  hole.pointee.order = keyBelow(slot, index, base, shared)
  hole.pointee.node = 0
  var at = index &+ 1
  while at < slot.pointee.count {
    let entry = slot.pointee.held + Int(truncatingIfNeeded: at)
    let below = keyBelow(slot, at, base, shared)
    entry.pointee.order =
      entry.pointee.resource == holeBit ? below : hck_order_key(shared, below, entry)
    entry.pointee.node = 0
    at &+= 1
  }
}

/// A lock is made at an address: it is another one than what lay there before, and nobody knows it.
public func madeLock(_ word: ResourceWord) {
  guard let arena = hck_arena_get(), learnsOrders(arena) else { return }
  goneLock(word, arena)
  if let slot = hck_slot_of_thread() { hck_made(slot, word, hck_load32(&arena.pointee.clock)) }
}

/// A lock is gone.
public func goneLock(_ word: ResourceWord) {
  if let arena = hck_arena_get() { goneLock(word, arena) }
}

@inline(__always) func goneLock(_ word: ResourceWord, _ arena: UnsafeMutablePointer<hck_arena>) {
  guard let shared = ordersOf(arena), let lock = findLock(word, shared, arena) else { return }
  retire(lock, word, shared, arena)
}

@inline(__always) func learnsOrders(_ arena: UnsafeMutablePointer<hck_arena>) -> Bool {
  arena.pointee.flags & HCK_FLAG_ORDERS != 0
}

/// The way through the log to the node of an entry, and what it says.
@inline(never)
private func learn(_ slot: Slot, _ index: UInt64, _ key: UInt64) {
  let error = hck_errno()
  defer { hck_set_errno(error) }
  unlearned(slot, index)
  if slot.pointee.order_base == onAnyQueue { takeOverFromQueue(slot) }
  if let arena = hck_arena_get(), arena.pointee.flags & HCK_FLAG_IN_PROCESS != 0,
    slot.pointee.tid == arena.pointee.pid
  {
    // It may have joined some.
    takeOver(slot, everybody)
  }
  guard let arena = hck_arena_get(), let orders = slot.pointee.orders,
    let shared = sharedOrders(orders), orders.pointee.busy == 0
  else { return }
  let entry = slot.pointee.held + Int(truncatingIfNeeded: index)
  orders.pointee.busy = 1
  hck_order()
  defer {
    hck_order()
    orders.pointee.busy = 0
  }
  entry.pointee.order = key
  if isFresh(slot, index, hck_load32(&arena.pointee.clock)) { return }
  var log = OrderLog(slot: slot, orders: orders, shared: shared, arena: arena)
  let parent = log.node(below: index)
  let isEvent = parent != 0 && entry.pointee.resource & timedBit == 0
  let step = log.step(parent, entry, isHeld: !isEvent)
  guard step.node != 0 else { return }
  entry.pointee.node = step.node
  var isSettled = true
  if step.isNewLock, isEvent {
    isSettled = log.meet(step.node) >= settledAfter
  }
  makeRoom(orders, arena)
  let known = hck_known(orders, key)
  known.pointee.key = 0
  hck_order()
  known.pointee.segment = isSettled ? HCK_SETTLED : slot.pointee.segment
  known.pointee.node = step.node
  known.pointee.key = key
}

/// More room for what is known, where much of it drives the rest out.
private func makeRoom(_ orders: ThreadOrders, _ arena: UnsafeMutablePointer<hck_arena>) {
  orders.pointee.misses &+= 1
  let count = UInt32(1) << (64 &- orders.pointee.shift)
  guard orders.pointee.misses > count &* 4, count < UInt32(HCK_MOST_KNOWN_ORDERS) else { return }
  orders.pointee.misses = 0
  let bytes = UInt64(count &* 4) &* UInt64(MemoryLayout<hck_known_order>.stride)
  guard let offset = takeChunk(arena, bytes: bytes) else { return }
  orders.pointee.orders = UnsafeMutableRawPointer(arena).advanced(by: Int(offset))
    .assumingMemoryBound(to: hck_known_order.self)
  orders.pointee.shift &-= 2
}

/// A block that was not followed from its submission knows what all know that submitted one to its
/// queue.
private func takeOverFromQueue(_ slot: Slot) {
  guard slot.pointee.orders?.pointee.is_block ?? 0 == 0, let queue = currentQueue(slot) else {
    return
  }
  takeOver(slot, resourceWord(queue, HCK_QUEUE))
}

private func isFresh(_ slot: Slot, _ index: UInt64, _ clock: UInt32) -> Bool {
  var at: UInt64 = 0
  while at <= index {
    let word = (slot.pointee.held + Int(truncatingIfNeeded: at)).pointee.resource
    if hck_is_fresh(slot, word & ~heldFlags, clock, freshness) != 0 { return true }
    at &+= 1
  }
  return false
}

/// One thread's walk through the log.
struct OrderLog {
  let slot: Slot
  let orders: UnsafeMutablePointer<hck_thread_orders>
  let shared: UnsafeMutablePointer<hck_orders>
  let arena: UnsafeMutablePointer<hck_arena>

  /// The node of what is held below an entry; 0 for nothing.
  mutating func node(below index: UInt64) -> UInt32 {
    var at = index
    var node: UInt32 = 0
    while at > 0 {
      let below = slot.pointee.held + Int(truncatingIfNeeded: at &- 1)
      // The outermost one's may be left from an earlier time.
      if below.pointee.resource != holeBit, at > 1, below.pointee.node != 0 {
        node = below.pointee.node
        break
      }
      at &-= 1
    }
    if at == 0 { node = nodeOfQueue() }
    while at < index {
      let entry = slot.pointee.held + Int(truncatingIfNeeded: at)
      if entry.pointee.resource != holeBit {
        node = step(node, entry, isHeld: node == 0).node
        entry.pointee.node = node
      }
      at &+= 1
    }
    return node
  }

  /// The queues that the thread runs on, which it did not wait for.
  private mutating func nodeOfQueue() -> UInt32 {
    guard let queue = currentQueue(slot) else { return 0 }
    var site = hck_entry()
    site.length = 0
    return withUnsafeMutablePointer(to: &site) { site in
      // An actor runs one job at a time, and nobody waits for it under a lock.
      if slot.pointee.order_base == onAnyQueue, let actor = hck_current_actor() {
        site.pointee.resource = resourceWord(actor, HCK_MUTEX)
        return step(0, site, isHeld: true).node
      }
      site.pointee.resource = resourceWord(queue, HCK_QUEUE)
      if hck_queue_width(queue) != 1, hck_queue_runs_barrier(queue) == 0 {
        site.pointee.resource |= sharedBit
      }
      return step(0, site, isHeld: true).node
    }
  }

  /// The node of an entry above a parent. What is held already is no order, but for a reader of a
  /// lock for reading and writing.
  mutating func step(
    _ parent: UInt32, _ entry: UnsafeMutablePointer<hck_entry>, isHeld: Bool
  ) -> (node: UInt32, isNewLock: Bool) {
    var word = entry.pointee.resource & ~timedBit
    var flags: UInt32 = 0
    if kind(word) == HCK_QUEUE.rawValue {
      guard !isRootQueue(word) else { return (parent, false) }
    } else if kind(word) == HCK_RWLOCK.rawValue, hck_rwlock_prefers_writers(address(word)) != 0 {
      flags = HCK_LOCK_WRITERS_FIRST
    }
    if isHeld || entry.pointee.resource & timedBit != 0 { word |= timedBit }
    let isReader = word & sharedBit != 0
    var ancestor = parent
    while ancestor != 0 {
      let node = nodeAt(ancestor, shared, arena)
      if (node.pointee.word ^ word) & ~heldFlags == 0 {
        guard isReader, node.pointee.word & sharedBit != 0, flags != 0 else {
          return (parent, false)
        }
      }
      ancestor = node.pointee.parent
    }
    var node = place(word, parent, entry, flags)
    guard node != 0, kind(word) == HCK_QUEUE.rawValue, hck_knows_queue_layout() != 0 else {
      return (node, node != 0)
    }
    // Whoever holds a queue holds those that it is drained by.
    var queue = pointer(word)
    while let target = hck_queue_target(queue), hck_queue_target(target) != nil {
      queue = UnsafeRawPointer(target)
      if word & timedBit == 0, parent != 0 { _ = meet(node) }
      let isShared = hck_queue_width(queue) == 1 ? 0 : sharedBit
      let next = place(
        resourceWord(queue, HCK_QUEUE) | isShared | word & timedBit, node, entry, 0)
      guard next != 0 else { break }
      node = next
    }
    return (node, true)
  }

  func address(_ word: UInt64) -> UInt64 { word & addressMask }
  func kind(_ word: UInt64) -> UInt32 {
    UInt32(truncatingIfNeeded: word >> UInt64(HCK_KIND_SHIFT)) & 15
  }
  func pointer(_ word: UInt64) -> UnsafeRawPointer {
    // Never nil: a queue lies there.
    UnsafeRawPointer(bitPattern: UInt(address(word))) ?? UnsafeRawPointer(shared)
  }
  /// One of the global queues: whoever runs there holds nothing, and waits for nobody.
  private func isRootQueue(_ word: UInt64) -> Bool {
    address(word) == 0
      || (hck_knows_queue_layout() != 0 && hck_queue_target(pointer(word)) == nil)
  }
}

/// The queue whose block the thread runs outside of any `sync`, where it is one of libdispatch's
/// threads.
func currentQueue(_ slot: Slot) -> UnsafeRawPointer? {
  switch slot.pointee.order_base {
  case onAnyQueue: hck_current_queue().map { UnsafeRawPointer($0) }
  case 0: nil
  default: UnsafeRawPointer(bitPattern: UInt(slot.pointee.order_base))
  }
}

@inline(__always) private func baseKey(_ slot: Slot) -> UInt64 {
  if slot.pointee.order_base == onAnyQueue, let actor = hck_current_actor() {
    return UInt64(UInt(bitPattern: actor))
  }
  return queueKey(slot)
}

@inline(__always) private func queueKey(_ slot: Slot) -> UInt64 {
  UInt64(UInt(bitPattern: currentQueue(slot)))
}

/// The thread's function has returned: libdispatch gives back, once, what it keeps for a thread, and
/// would do so again were it asked for the thread's queue by what runs after that.
public func leaveQueues() {
  if let slot = hck_slot_of_thread(), slot.pointee.order_base == onAnyQueue {
    slot.pointee.order_base = 0
  }
}

/// `order_base` of a thread that runs blocks of changing queues; another value is the address of the
/// queue that it always runs on.
@inlinable @inline(__always) public var onAnyQueue: UInt64 { 1 }
