// The memory of the log of lock orders: pages from the arena, and what lies in them.
internal import CHangcheck

/// The log of this process; nil while nothing was learned.
@inline(__always)
func ordersOf(_ arena: UnsafeMutablePointer<hck_arena>) -> UnsafeMutablePointer<hck_orders>? {
  let offset = hck_load64(&arena.pointee.orders)
  return offset == 0 ? nil : at(offset, arena).assumingMemoryBound(to: hck_orders.self)
}

@inline(__always)
private func at(
  _ offset: UInt64, _ arena: UnsafeMutablePointer<hck_arena>
) -> UnsafeMutableRawPointer {
  UnsafeMutableRawPointer(arena).advanced(by: Int(truncatingIfNeeded: offset))
}

func makeOrders(
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UnsafeMutablePointer<hck_orders>? {
  if let orders = ordersOf(arena) { return orders }
  guard let offset = takeChunk(arena, bytes: aligned(MemoryLayout<hck_orders>.stride)) else {
    hck_count64(&arena.pointee.unrecorded)
    return nil
  }
  // Chunks come as zeros; one that another thread's made superfluous is left.
  _ = hck_cas64(&arena.pointee.orders, 0, offset)
  return ordersOf(arena)
}

private func aligned(_ bytes: Int) -> UInt64 { (UInt64(bytes) &+ 63) & ~63 }

/// What the calling thread knows of orders, made at its first one and kept by its slot.
@inline(never)
func makeThreadOrders(
  _ slot: Slot, _ arena: UnsafeMutablePointer<hck_arena>
) -> UnsafeMutablePointer<hck_thread_orders>? {
  guard let shared = makeOrders(arena),
    let offset = takeChunk(arena, bytes: aligned(MemoryLayout<hck_thread_orders>.stride))
  else {
    hck_count64(&arena.pointee.unrecorded)
    return nil
  }
  let orders = at(offset, arena).assumingMemoryBound(to: hck_thread_orders.self)
  orders.pointee.shared = UInt64(UInt(bitPattern: shared))
  orders.pointee.start = 1
  orders.pointee.orders = hck_first_orders(orders)
  orders.pointee.shift = 64 - 6
  hck_order()
  slot.pointee.orders = orders
  return orders
}

// MARK: - Records

@inline(__always)
func recordAt<Record>(
  _ number: UInt32, _ kind: hck_pages, _ type: Record.Type,
  _ shared: UnsafeMutablePointer<hck_orders>, _ arena: UnsafeMutablePointer<hck_arena>
) -> UnsafeMutablePointer<Record> {
  let perPage = HCK_PAGE_BYTES / UInt32(MemoryLayout<Record>.stride)
  let index = number &- 1
  let page = hck_load64(hck_order_page(hck_order_table(shared, kind), index / perPage))
  return at(page, arena).assumingMemoryBound(to: type) + Int(index % perPage)
}

@inline(__always)
func lockAt(
  _ number: UInt32, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UnsafeMutablePointer<hck_order_lock> {
  recordAt(number, HCK_PAGES_LOCKS, hck_order_lock.self, shared, arena)
}

@inline(__always)
func nodeAt(
  _ number: UInt32, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UnsafeMutablePointer<hck_order_node> {
  recordAt(number, HCK_PAGES_NODES, hck_order_node.self, shared, arena)
}

@inline(__always)
func siteAt(
  _ number: UInt32, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UnsafeMutablePointer<hck_order_site> {
  recordAt(number, HCK_PAGES_SITES, hck_order_site.self, shared, arena)
}

@inline(__always)
func occurrenceAt(
  _ number: UInt32, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UnsafeMutablePointer<hck_occurrence> {
  recordAt(number, HCK_PAGES_OCCURRENCES, hck_occurrence.self, shared, arena)
}

@inline(__always)
func clockAt(
  _ number: UInt32, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UnsafeMutablePointer<hck_clock> {
  recordAt(number, HCK_PAGES_CLOCKS, hck_clock.self, shared, arena)
}

/// The number of a record of zeros; nil where there is no room.
@inline(never)
func newRecord<Record>(
  _ kind: hck_pages, _ type: Record.Type, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UInt32? {
  let perPage = HCK_PAGE_BYTES / UInt32(MemoryLayout<Record>.stride)
  let table = hck_order_table(shared, kind)
  let number = hck_next32(&table.pointee.used)
  let page = (number &- 1) / perPage
  guard page < UInt32(HCK_PAGES) else {
    // The counter must not come round.
    hck_store32(&table.pointee.used, number &- 1)
    hck_count64(&arena.pointee.unrecorded)
    return nil
  }
  let place = hck_order_page(table, page)
  if hck_load64(place) == 0 {
    guard let offset = takeChunk(arena, bytes: UInt64(HCK_PAGE_BYTES)) else {
      hck_count64(&arena.pointee.unrecorded)
      return nil
    }
    _ = hck_cas64(place, 0, offset)
  }
  return number
}

/// A record that was given back, or a new one. `next` of a free one is its first word.
func takeRecord<Record>(
  _ kind: hck_pages, _ type: Record.Type, _ next: (UnsafeMutablePointer<Record>) -> UInt32,
  _ shared: UnsafeMutablePointer<hck_orders>, _ arena: UnsafeMutablePointer<hck_arena>
) -> UInt32? {
  let table = hck_order_table(shared, kind)
  while true {
    let head = hck_load64(&table.pointee.free)
    let number = UInt32(truncatingIfNeeded: head)
    if number == 0 { return newRecord(kind, type, shared, arena) }
    let after = UInt64(next(recordAt(number, kind, type, shared, arena)))
    if hck_cas64(&table.pointee.free, head, after | ((head >> 32) &+ 1) << 32) != 0 {
      return number
    }
  }
}

func giveRecord(
  _ kind: hck_pages, _ number: UInt32, _ setNext: (UInt32) -> Void,
  _ shared: UnsafeMutablePointer<hck_orders>
) {
  let table = hck_order_table(shared, kind)
  while true {
    let head = hck_load64(&table.pointee.free)
    setNext(UInt32(truncatingIfNeeded: head))
    if hck_cas64(&table.pointee.free, head, UInt64(number) | ((head >> 32) &+ 1) << 32) != 0 {
      return
    }
  }
}

// MARK: - Locks

func findLock(
  _ word: ResourceWord, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UInt32? {
  var number = hck_load32(hck_lock_chain(shared, hck_mixed(word)))
  while number != 0 {
    let lock = lockAt(number, shared, arena)
    if hck_load64(&lock.pointee.word) == word { return number }
    number = lock.pointee.next
  }
  return nil
}

/// The lock is no more: what threads remember of it does not match any longer, and what the log has
/// of it is used again.
func retire(
  _ number: UInt32, _ word: ResourceWord, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) {
  let lock = lockAt(number, shared, arena)
  lock.pointee.died = hck_load32(&arena.pointee.clock)
  hck_add32(&lock.pointee.generation, 2)
  if hck_cas64(&lock.pointee.word, word, 0) != 0 { hck_add32(hck_era(shared, word), 1) }
}
