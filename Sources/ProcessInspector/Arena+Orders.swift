internal import CHangcheck
internal import WaitForGraph

/// The log of lock orders, copied out of the arena at one moment: see `hck_order.h`. Numbers are those
/// of the log, so that two copies of one log agree; 0 is none.
struct RecordedOrders {
  struct Lock {
    var key: ResourceKey
    var prefersWriters: Bool
    var isGone: Bool
    /// Of a queue, or what the program called it; "" for neither.
    var label: String
  }
  struct Node {
    var number: UInt32
    var parent: UInt32
    var lock: Int
    var isShared: Bool
    var isRequest: Bool
    var site: UInt32
  }
  struct Occurrence {
    var node: UInt32
    var context: UInt64
    var isBlock: Bool
    var tid: KernelThreadID
    var name: String
    var component: Int
    var start: UInt32
    var epoch: UInt32
    /// When it was met, on the arena's clock in milliseconds.
    var time: UInt32
    var clock: [UInt32]
  }
  var locks: [Lock] = []
  var nodes: [Node] = []
  var occurrences: [Occurrence] = []
}

extension Arena {
  /// How much has been written to the log; 0 where there is none.
  var orderChanges: UInt64 { orders.map { hck_load64(&$0.pointee.changes) } ?? 0 }

  private var orders: UnsafeMutablePointer<hck_orders>? {
    let offset = hck_load64(&base.pointee.orders)
    guard offset != 0, offset % 8 == 0, offset <= size,
      size - offset >= UInt64(MemoryLayout<hck_orders>.stride)
    else { return nil }
    return UnsafeMutableRawPointer(base).advanced(by: Int(offset))
      .assumingMemoryBound(to: hck_orders.self)
  }

  /// The whole log, without what is being written and what is known to be stale.
  func recordedOrders() -> RecordedOrders {
    var result = RecordedOrders()
    guard let orders else { return result }
    let locks = OrderPages(self, orders, HCK_PAGES_LOCKS, hck_order_lock.self)
    let nodes = OrderPages(self, orders, HCK_PAGES_NODES, hck_order_node.self)
    let occurrences = OrderPages(self, orders, HCK_PAGES_OCCURRENCES, hck_occurrence.self)
    let clocks = OrderPages(self, orders, HCK_PAGES_CLOCKS, hck_clock.self)
    // One lock at an address in one generation.
    struct Identity: Hashable {
      var lock: UInt32
      var generation: UInt32
    }
    var lockNumbers: [Identity: Int] = [:]
    var known = [Bool](repeating: false, count: Int(nodes.count) + 1)
    for number in 1..<max(1, nodes.count + 1) {
      guard let record = nodes[number] else { continue }
      let generation = hck_load32(&record.pointee.generation)
      let node = record.pointee
      guard generation != 0, generation & 1 == 0, node.lock != 0, node.lock <= locks.count,
        node.parent <= nodes.count
      else { continue }
      if node.parent != 0 {
        guard let parent = nodes[node.parent],
          parent.pointee.generation == node.parent_generation
        else { continue }
      }
      let identity = Identity(lock: node.lock, generation: node.lock_generation)
      let index = lockNumbers[identity] ?? result.locks.count
      if lockNumbers[identity] == nil {
        lockNumbers[identity] = index
        let lock = locks[node.lock]?.pointee
        result.locks.append(
          .init(
            key: key(node.word), prefersWriters: (lock?.flags ?? 0) & HCK_LOCK_WRITERS_FIRST != 0,
            isGone: lock?.generation != node.lock_generation,
            label: label(lock, node.lock_generation)))
      }
      guard hck_load32(&record.pointee.generation) == generation else { continue }
      known[Int(number)] = true
      result.nodes.append(
        .init(
          number: number, parent: node.parent, lock: index,
          isShared: node.word & (1 << 60) != 0, isRequest: node.word & (1 << 61) == 0,
          site: node.site))
      var left = min(node.met, UInt32(HCK_OCCURRENCES))
      var next = node.occurrences
      while left > 0, next != 0, let record = occurrences[next] {
        left -= 1
        if let occurrence = occurrence(record, number, clocks) {
          result.occurrences.append(occurrence)
        }
        next = record.pointee.next
      }
    }
    // A node whose ancestors are not all there says nothing.
    var isWhole = [Bool](repeating: false, count: known.count)
    isWhole[0] = true
    // Parents were written before their children, but for records that are used again.
    for _ in 0..<3 {
      for node in result.nodes where isWhole[Int(node.parent)] { isWhole[Int(node.number)] = true }
    }
    result.nodes.removeAll { !isWhole[Int($0.number)] }
    result.occurrences.removeAll { !isWhole[Int($0.node)] }
    return result
  }

  private func occurrence(
    _ record: UnsafeMutablePointer<hck_occurrence>, _ node: UInt32,
    _ clocks: OrderPages<hck_clock>
  ) -> RecordedOrders.Occurrence? {
    let generation = hck_load32(&record.pointee.generation)
    guard generation != 0, generation & 1 == 0 else { return nil }
    let name = withUnsafeBytes(of: &record.pointee.name) {
      String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
    var clock: [UInt32] = [0]
    var (part, seen) = (record.pointee.known, 0)
    while part != 0, seen < 4096, let words = clocks[part] {
      seen += 1
      for index in 0..<UInt32(HCK_CLOCK_EPOCHS) {
        clock.append(hck_load32(hck_clock_epoch(words, index)))
      }
      part = words.pointee.next
    }
    let value = record.pointee
    guard hck_load32(&record.pointee.generation) == generation else { return nil }
    return RecordedOrders.Occurrence(
      node: node, context: value.context & ~(1 << 63), isBlock: value.context >> 63 != 0,
      tid: KernelThreadID(Int32(truncatingIfNeeded: value.tid)), name: name,
      component: Int(value.component), start: value.start, epoch: value.epoch, time: value.clock,
      clock: clock)
  }

  private func label(_ lock: hck_order_lock?, _ generation: UInt32) -> String {
    // One that is gone keeps its name until the record is used again.
    guard var lock, lock.generation == generation || lock.word == 0 else { return "" }
    return withUnsafeBytes(of: &lock.name) {
      String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
  }

  /// Where in the code something was taken.
  func orderSite(_ number: UInt32) -> RecordedSite? {
    guard number != 0, let orders else { return nil }
    let sites = OrderPages(self, orders, HCK_PAGES_SITES, hck_order_site.self)
    guard let record = sites[number] else { return nil }
    var place = withUnsafeMutablePointer(to: &record.pointee.site) { site($0) }
    let more = Int(min(record.pointee.more_words, UInt32(HCK_ORDER_WORDS))) * 8
    withUnsafeBytes(of: &record.pointee.more) { place?.window += $0.prefix(more) }
    return place
  }
}

/// The records of one kind, by number.
private struct OrderPages<Record> {
  private let arena: Arena
  private let table: UnsafeMutablePointer<hck_page_table>
  private let perPage = HCK_PAGE_BYTES / UInt32(MemoryLayout<Record>.stride)
  let count: UInt32

  init(
    _ arena: Arena, _ orders: UnsafeMutablePointer<hck_orders>, _ kind: hck_pages,
    _ type: Record.Type
  ) {
    self.arena = arena
    table = hck_order_table(orders, kind)
    count = min(hck_load32(&table.pointee.used), UInt32(HCK_PAGES) * perPage)
  }

  /// nil where its page is not there yet.
  subscript(number: UInt32) -> UnsafeMutablePointer<Record>? {
    guard number > 0, number <= count else { return nil }
    let offset = hck_load64(hck_order_page(table, (number - 1) / perPage))
    guard offset != 0, offset % 8 == 0, offset <= arena.size,
      arena.size - offset >= UInt64(HCK_PAGE_BYTES)
    else { return nil }
    return UnsafeMutableRawPointer(arena.base).advanced(by: Int(offset))
      .assumingMemoryBound(to: Record.self) + Int((number - 1) % perPage)
  }
}
