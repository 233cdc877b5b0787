#if Detection
  internal import CHangcheck

  /// The clocks of locks, queues and all else that orders threads, by address.
  ///
  /// A table of short lists, each with a lock of its own that is held for moments: nothing of the
  /// program runs meanwhile. A clock lives until its object says that it ends.
  enum SyncClocks {
    private struct Node {
      var key: UInt64
      var clock = VectorClock()
      /// A thread that knows all that the clock does; 0 for none. While it comes back alone, as to a
      /// lock that nobody else uses, there is nothing to join.
      var knower: UInt64 = 0
      /// The knower's changes when the clock had all that it knew.
      var changes: UInt64 = 0
      var next: UnsafeMutablePointer<Node>?
    }
    // A line of the cache each.
    private struct List {
      var lock: UInt32 = 0
      var first: UnsafeMutablePointer<Node>?
      var padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)
    }
    private static let bits = 10
    // The lists have locks; the memory lives as long as the process.
    nonisolated(unsafe) private static let lists: UnsafeMutablePointer<List> = {
      let lists = UnsafeMutablePointer<List>.allocate(capacity: 1 << bits)
      lists.initialize(repeating: List(), count: 1 << bits)
      return lists
    }()

    private static func list(_ key: UInt64) -> UnsafeMutablePointer<List> {
      lists + Int((key &* 0x9e37_79b9_7f4a_7c15) >> UInt64(64 - bits))
    }

    private static func find(
      _ key: UInt64, in list: UnsafeMutablePointer<List>
    ) -> UnsafeMutablePointer<Node>? {
      var next = list.pointee.first
      while let node = next, node.pointee.key != key { next = node.pointee.next }
      return next
    }

    /// What `thread` has done and seen comes before whatever acquires `key` later.
    static func release(_ key: UInt64, _ thread: RaceThread) {
      let list = list(key)
      hck_spin_lock(&list.pointee.lock)
      let node =
        find(key, in: list)
        ?? {
          let node = UnsafeMutablePointer<Node>.allocate(capacity: 1)
          node.initialize(to: Node(key: key, next: list.pointee.first))
          list.pointee.first = node
          return node
        }()
      let isKnower = node.pointee.knower == identity(thread)
      if !isKnower || node.pointee.changes != thread.pointee.changes {
        node.pointee.clock.join(VectorClock(of: thread))
        node.pointee.knower = isKnower ? node.pointee.knower : 0
        node.pointee.changes = thread.pointee.changes
      }
      node.pointee.clock.raise(
        Int(thread.pointee.index), to: hck_bump64(&thread.pointee.epoch).clock)
      hck_spin_unlock(&list.pointee.lock)
    }

    /// What was released to `key` comes before what `thread` does next.
    static func acquire(_ key: UInt64, _ thread: RaceThread) {
      let list = list(key)
      hck_spin_lock(&list.pointee.lock)
      if let node = find(key, in: list), node.pointee.knower != identity(thread) {
        var clock = VectorClock(of: thread)
        let isNews = clock.join(node.pointee.clock)
        clock.store(in: thread, isNews: isNews)
        node.pointee.knower = identity(thread)
        // Until it releases, the clock may lack what it knows.
        node.pointee.changes = UInt64.max
      }
      hck_spin_unlock(&list.pointee.lock)
    }

    /// Of the thread that has the record now.
    private static func identity(_ thread: RaceThread) -> UInt64 {
      UInt64(thread.pointee.index) << 32 | UInt64(thread.pointee.lives)
    }

    /// The object at that address is no more.
    static func forget(_ key: UInt64) {
      let list = list(key)
      hck_spin_lock(&list.pointee.lock)
      defer { hck_spin_unlock(&list.pointee.lock) }
      guard let node = find(key, in: list) else { return }
      if list.pointee.first == node {
        list.pointee.first = node.pointee.next
      } else {
        var before = list.pointee.first
        while let this = before, this.pointee.next != node { before = this.pointee.next }
        before?.pointee.next = node.pointee.next
      }
      node.pointee.clock.end()
      node.deallocate()
    }
  }
#endif
