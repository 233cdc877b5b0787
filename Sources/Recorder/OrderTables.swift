// The log of lock orders, which all threads share: see hck_order.h. Lock-free throughout: a record is
// claimed by compare-and-swap, and found by others once it is whole.
internal import CHangcheck

// A record whose lock is gone is used again after so long, in milliseconds of the arena's clock: by
// then whoever analyses the log has seen it.
private let quarantine: UInt32 = 3000

extension OrderLog {
  /// The node of a lock taken at an entry's site above a parent; 0 where there is no room.
  mutating func place(
    _ word: ResourceWord, _ parent: UInt32, _ entry: UnsafeMutablePointer<hck_entry>,
    _ flags: UInt32
  ) -> UInt32 {
    let bare = word & ~heldFlags
    guard let lock = findLock(bare, shared, arena) ?? addLock(bare, flags) else { return 0 }
    let site = site(entry)
    let lockGeneration = lockAt(lock, shared, arena).pointee.generation
    let parentGeneration = parent == 0 ? 0 : nodeAt(parent, shared, arena).pointee.generation
    var hash = hck_mixed(word &+ UInt64(parent) &* 0x9e37_79b9_7f4a_7c15)
    hash = hck_mixed(hash &+ UInt64(site) &* 0xd6e8_feb8_6659_fd93)
    let chain = hck_node_chain(shared, hash)
    while true {
      let head = hck_load32(chain)
      var number = head
      var free: UInt32 = 0
      while number != 0 {
        let node = nodeAt(number, shared, arena)
        if node.pointee.word == word, node.pointee.parent == parent, node.pointee.site == site,
          node.pointee.lock == lock, node.pointee.lock_generation == lockGeneration,
          node.pointee.parent_generation == parentGeneration
        {
          return number
        }
        if free == 0, isStale(node) { free = number }
        number = node.pointee.next
      }
      if free != 0 {
        let node = nodeAt(free, shared, arena)
        let generation = hck_load32(&node.pointee.generation)
        guard generation & 1 == 0,
          hck_cas32(&node.pointee.generation, generation, generation &+ 1) != 0
        else { continue }
        fill(node, word, lock, lockGeneration, parent, parentGeneration, site)
        hck_store32(&node.pointee.generation, generation &+ 2)
        hck_count64(&shared.pointee.changes)
        return free
      }
      guard let fresh = newRecord(HCK_PAGES_NODES, hck_order_node.self, shared, arena) else {
        return 0
      }
      let node = nodeAt(fresh, shared, arena)
      node.pointee.occurrences = 0
      fill(node, word, lock, lockGeneration, parent, parentGeneration, site)
      node.pointee.generation = 2
      node.pointee.next = head
      if hck_cas32(chain, head, fresh) != 0 {
        hck_count64(&shared.pointee.changes)
        return fresh
      }
      // Somebody else was first, perhaps with the same; what was taken is lost.
    }
  }

  private func fill(
    _ node: UnsafeMutablePointer<hck_order_node>, _ word: ResourceWord, _ lock: UInt32,
    _ lockGeneration: UInt32, _ parent: UInt32, _ parentGeneration: UInt32, _ site: UInt32
  ) {
    node.pointee.word = word
    node.pointee.lock = lock
    node.pointee.lock_generation = lockGeneration
    node.pointee.parent = parent
    node.pointee.parent_generation = parentGeneration
    node.pointee.site = site
    node.pointee.met = 0
    node.pointee.first = hck_load32(&arena.pointee.clock)
  }

  /// Its lock, or a lock that it was taken under, is gone long since.
  private func isStale(_ node: UnsafeMutablePointer<hck_order_node>) -> Bool {
    let lock = lockAt(node.pointee.lock, shared, arena)
    if lock.pointee.generation != node.pointee.lock_generation { return isOld(lock) }
    guard node.pointee.parent != 0 else { return false }
    let parent = nodeAt(node.pointee.parent, shared, arena)
    if parent.pointee.generation != node.pointee.parent_generation { return true }
    let above = lockAt(parent.pointee.lock, shared, arena)
    return above.pointee.generation != parent.pointee.lock_generation && isOld(above)
  }

  /// Of a lock that is gone, or is another one by now.
  private func isOld(_ lock: UnsafeMutablePointer<hck_order_lock>) -> Bool {
    hck_load32(&arena.pointee.clock) &- lock.pointee.died >= quarantine
  }

  private mutating func addLock(_ word: ResourceWord, _ flags: UInt32) -> UInt32? {
    let chain = hck_lock_chain(shared, hck_mixed(word))
    while true {
      let head = hck_load32(chain)
      var number = head
      while number != 0 {
        let lock = lockAt(number, shared, arena)
        let there = hck_load64(&lock.pointee.word)
        if there == word { return number }
        if there == 0, isOld(lock), hck_cas64(&lock.pointee.word, 0, word) != 0 {
          lock.pointee.flags = flags
          hck_name_lock(lock, label(word))
          return number
        }
        number = lock.pointee.next
      }
      guard let fresh = newRecord(HCK_PAGES_LOCKS, hck_order_lock.self, shared, arena) else {
        return nil
      }
      let lock = lockAt(fresh, shared, arena)
      lock.pointee.word = word
      lock.pointee.generation = 2
      lock.pointee.flags = flags
      hck_name_lock(lock, label(word))
      lock.pointee.next = head
      if hck_cas32(chain, head, fresh) != 0 { return fresh }
    }
  }

  /// A queue's label, or the name that the program gave to a lock, for the time when it is no more.
  private func label(_ word: ResourceWord) -> UnsafePointer<CChar>? {
    guard kind(word) == HCK_QUEUE.rawValue else {
      return nameRecord(address(word), in: arena).map {
        UnsafeRawPointer($0).advanced(by: 8).assumingMemoryBound(to: CChar.self)
      }
    }
    return hck_knows_queue_layout() != 0 ? hck_queue_label(pointer(word)) : nil
  }

  private mutating func site(_ entry: UnsafeMutablePointer<hck_entry>) -> UInt32 {
    guard entry.pointee.length >= 16 else { return 0 }
    var key = hck_mixed(entry.pointee.window.1)
    if entry.pointee.levels > 0 { key = hck_mixed(key &+ entry.pointee.chain.1) }
    if entry.pointee.levels > 1 { key = hck_mixed(key &+ entry.pointee.chain.3) }
    // A call that goes on: its whole stack is there.
    let kind = kind(entry.pointee.resource)
    let goesOn = kind == HCK_QUEUE.rawValue || kind == HCK_ONCE.rawValue
    if goesOn { key = hck_mixed(key &+ hck_program_return(slot, entry)) }
    let chain = hck_site_chain(shared, key)
    while true {
      let head = hck_load32(chain)
      var number = head
      while number != 0 {
        let site = siteAt(number, shared, arena)
        if site.pointee.key == key { return number }
        number = site.pointee.next
      }
      guard let fresh = newRecord(HCK_PAGES_SITES, hck_order_site.self, shared, arena) else {
        return 0
      }
      let site = siteAt(fresh, shared, arena)
      site.pointee.key = key
      site.pointee.site = entry.pointee
      // Of another entry below, the frame may have been left since.
      if goesOn || entry == slot.pointee.held + Int(truncatingIfNeeded: slot.pointee.count &- 1) {
        hck_order_more(slot, site, entry)
      } else {
        site.pointee.more_words = 0
      }
      site.pointee.next = head
      if hck_cas32(chain, head, fresh) != 0 { return fresh }
    }
  }

  /// Notes that this context met the node, with what it knows of others; says how often it was met.
  mutating func meet(_ number: UInt32) -> UInt32 {
    let node = nodeAt(number, shared, arena)
    if isLastMet(node) { return hck_load32(&node.pointee.met) }
    let met = hck_next32(&node.pointee.met)
    guard met <= UInt32(HCK_OCCURRENCES) || met & (met &- 1) == 0 || knowsAll(node) else {
      return met
    }
    if orders.pointee.context == 0 {
      chooseComponent(orders, shared, arena)
      orders.pointee.context =
        hck_next64(&shared.pointee.contexts) | UInt64(orders.pointee.is_block) << 63
    }
    guard let record = occurrence(of: node, met) else { return met }
    let generation = hck_load32(&record.pointee.generation)
    guard generation & 1 == 0,
      hck_cas32(&record.pointee.generation, generation, generation &+ 1) != 0
    else { return met }
    orders.pointee.epoch &+= 1
    slot.pointee.knows &+= 1
    record.pointee.component = orders.pointee.component
    record.pointee.start = orders.pointee.start
    record.pointee.epoch = orders.pointee.epoch
    record.pointee.tid = slot.pointee.tid
    record.pointee.context = orders.pointee.context
    record.pointee.segment = slot.pointee.segment
    record.pointee.clock = hck_load32(&arena.pointee.clock)
    freeClock(record.pointee.known, shared, arena)
    record.pointee.known = copyClock(orders.pointee.known, shared, arena)
    hck_thread_name(hck_occurrence_name(record))
    hck_store32(&record.pointee.generation, generation &+ 2)
    hck_count64(&shared.pointee.changes)
    return met
  }

  /// Whether the last record is of this very context, which has told nobody anything since.
  private func isLastMet(_ node: UnsafeMutablePointer<hck_order_node>) -> Bool {
    let last = hck_load32(&node.pointee.occurrences)
    guard last != 0, hck_load32(&node.pointee.met) != 0, orders.pointee.context != 0 else {
      return false
    }
    let record = occurrenceAt(last, shared, arena)
    return record.pointee.context == orders.pointee.context
      && record.pointee.segment == slot.pointee.segment
  }

  /// Whether all meetings of the node on record happened before: then this one is of a later phase of
  /// the program. Of those that nothing orders, some stand for all, since what tells more of them
  /// apart costs room in every clock.
  private func knowsAll(_ node: UnsafeMutablePointer<hck_order_node>) -> Bool {
    var number = hck_load32(&node.pointee.occurrences)
    while number != 0 {
      let record = occurrenceAt(number, shared, arena)
      if record.pointee.context != orders.pointee.context,
        epochIn(orders.pointee.known, record.pointee.component, shared, arena)
          < record.pointee.epoch
      {
        return false
      }
      number = record.pointee.next
    }
    return true
  }

  /// A record for the `met`th meeting of a node: half of the first ones stay, for the newest lies
  /// foremost. A node that is used again has the records of its earlier life behind those of this.
  private mutating func occurrence(
    of node: UnsafeMutablePointer<hck_order_node>, _ met: UInt32
  ) -> UnsafeMutablePointer<hck_occurrence>? {
    var count: UInt32 = 0
    var number = hck_load32(&node.pointee.occurrences)
    let half = UInt32(HCK_OCCURRENCES) / 2
    let wanted = met <= UInt32(HCK_OCCURRENCES) ? met &- 1 : met % half
    while number != 0 {
      let record = occurrenceAt(number, shared, arena)
      if count == wanted { return record }
      count &+= 1
      number = record.pointee.next
    }
    guard count < UInt32(HCK_OCCURRENCES),
      let fresh = newRecord(HCK_PAGES_OCCURRENCES, hck_occurrence.self, shared, arena)
    else { return nil }
    let record = occurrenceAt(fresh, shared, arena)
    while true {
      let head = hck_load32(&node.pointee.occurrences)
      record.pointee.next = head
      if hck_cas32(&node.pointee.occurrences, head, fresh) != 0 { return record }
    }
  }
}
