#if Detection
  internal import CHangcheck
  internal import Recorder

  /// What the drop-ins tell of the order that they make, for checked values and for lock orders. Each
  /// call is one load and a branch while nobody asks.
  ///
  /// Not to be called in a signal's handler that interrupted one of these.
  enum RaceOrder {
    @inline(__always) static var isOn: Bool { hck_is_ordering() != 0 }

    /// Readers release to a key of their own, which writers acquire as well.
    private static let readers: UInt64 = 1

    // MARK: - Locks

    /// The thread has taken a lock: for reading where `word` says so.
    @inline(__always) static func took(_ word: ResourceWord) { if isOn { tookNow(word) } }

    /// The thread is about to give it back, in whichever mode it has it.
    @inline(__always) static func gives(_ word: ResourceWord) { if isOn { givesNow(word) } }

    @inline(never) static func tookNow(_ word: ResourceWord) {
      guard hck_is_racing() != 0, let thread = RaceThreads.current else { return }
      let key = word & HCK_ADDRESS_MASK
      SyncClocks.acquire(key, thread)
      if word & sharedBit == 0 && hasReaders(word) { SyncClocks.acquire(key | readers, thread) }
      if thread.pointee.unseen > 0 { RaceThreads.settle(thread) }
      if thread.pointee.held_count < UInt32(HCK_RACE_HELD) {
        hck_race_held(thread)[Int(thread.pointee.held_count)] = word & ~timedBit
        thread.pointee.held_count += 1
      }
    }

    private static func hasReaders(_ word: ResourceWord) -> Bool {
      let kind = UInt32(truncatingIfNeeded: word >> UInt64(HCK_KIND_SHIFT)) & 15
      return kind != HCK_MUTEX.rawValue && kind != HCK_FUTEX_LOCK.rawValue
    }

    @inline(never) static func givesNow(_ word: ResourceWord) {
      guard hck_is_racing() != 0, let thread = RaceThreads.current else { return }
      let key = word & HCK_ADDRESS_MASK
      let wasShared = forgetHeld(key, thread).map { $0 & sharedBit != 0 } ?? false
      release(wasShared ? key | readers : key, thread)
    }

    private static func forgetHeld(_ key: UInt64, _ thread: RaceThread) -> ResourceWord? {
      let held = hck_race_held(thread)
      var index = Int(thread.pointee.held_count)
      while index > 0 {
        index -= 1
        guard held[index] & HCK_ADDRESS_MASK == key else { continue }
        let word = held[index]
        for next in index..<Int(thread.pointee.held_count) - 1 { held[next] = held[next + 1] }
        thread.pointee.held_count -= 1
        return word
      }
      return nil
    }

    /// The primitive at that address is no more.
    @inline(__always) static func ends(_ address: UInt64) { if isOn { endsNow(address) } }

    @inline(never) private static func endsNow(_ address: UInt64) {
      if hck_learns_lock_orders() != 0 {
        for kind in [HCK_MUTEX, HCK_RWLOCK, HCK_QUEUE, HCK_FUTEX_LOCK] {
          goneLock(address | UInt64(kind.rawValue) << UInt64(HCK_KIND_SHIFT))
        }
        goneObject(address)
      }
      guard hck_is_racing() != 0 else { return }
      SyncClocks.forget(address)
      SyncClocks.forget(address | readers)
    }

    // MARK: - Whatever else orders threads

    /// Before what the thread does next lies what was released to `address`.
    @inline(__always) static func acquire(_ address: UInt64) { if isOn { acquireNow(address) } }

    /// What the thread has done lies before whatever acquires `address` later.
    @inline(__always) static func release(_ address: UInt64) { if isOn { releaseNow(address) } }

    @inline(never) private static func acquireNow(_ address: UInt64) {
      if hck_learns_lock_orders() != 0, let slot = currentSlot() { takeOver(slot, address) }
      guard hck_is_racing() != 0, let thread = RaceThreads.current else { return }
      SyncClocks.acquire(address, thread)
      // It goes with the end of a work item to who waits for that.
      if thread.pointee.unseen > 0 { RaceThreads.settle(thread) }
    }

    @inline(never) private static func releaseNow(_ address: UInt64) {
      if hck_learns_lock_orders() != 0, let slot = currentSlot() {
        handOver(slot, toObject: address)
      }
      if hck_is_racing() != 0, let thread = RaceThreads.current { release(address, thread) }
    }

    static func release(_ key: UInt64, _ thread: RaceThread) {
      // What a task has seen came with it from other threads.
      if RaceThreads.isUnseen(thread) { RaceThreads.joinAll(thread) }
      SyncClocks.release(key, thread)
    }

    /// All that was done so far lies before what the thread does next.
    static func acquireAll() {
      if hck_learns_lock_orders() != 0, let slot = currentSlot() { takeOverAll(slot) }
      if hck_is_racing() != 0, let thread = RaceThreads.current { RaceThreads.joinAll(thread) }
    }

    /// What the thread has done and seen lies before all that is done later.
    static func releaseAll() {
      if hck_learns_lock_orders() != 0, let slot = currentSlot() { handOverToAll(slot) }
      guard hck_is_racing() != 0, let thread = RaceThreads.current else { return }
      if RaceThreads.isUnseen(thread) { RaceThreads.joinAll(thread) }
      RaceThreads.settle(thread)
    }

    static func key(_ object: AnyObject) -> UInt64 {
      UInt64(UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()))
    }
    /// A second clock of the same object, such as that of its end.
    static func endKey(_ object: AnyObject) -> UInt64 { key(object) | 2 }
  }
#endif
