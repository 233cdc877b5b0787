#if Detection
  public import CHangcheck
  internal import Recorder
  public import Synchronization

  /// A `Mutex` whose deadlocks `Watchdog` explains.
  ///
  /// Spelled like `Synchronization.Mutex`, so that `typealias Mutex = InstrumentedMutex` swaps it
  /// throughout a module; over the same lock, whose word in memory names its owner. A thread that
  /// gets it at once leaves one thing behind, the address in the code where it did; only one that
  /// has to wait is put on record.
  ///
  /// Costs a store more than the original, and 56 bytes a mutex; where lock orders are learned, under
  /// `hangcheck` as well, each hold goes on record. Where it was taken at once a
  /// report has the line, but not its callers. What the kernel refuses as a deadlock ends the
  /// program as with the original, once it has been reported.
  public struct InstrumentedMutex<Value: ~Copyable>: ~Copyable {
    @usableFromInline let mark: MutexMark
    // In a cell, whose address may be asked for, right behind the mark.
    @usableFromInline let handle: _Cell<_MutexHandle>
    @usableFromInline let value: _Cell<Value>

    /// A mutex around a value; equals `Mutex.init(_:)`. Reports call it `name` or, without one, by
    /// the place where it was made. 55 bytes of the name are kept.
    @inlinable
    public init(
      _ initialValue: consuming sending Value, name: String? = nil,
      fileID: StaticString = #fileID, line: UInt = #line
    ) {
      mark = MutexMark(name, fileID, line)
      handle = _Cell(_MutexHandle())
      value = _Cell(initialValue)
    }

    deinit { mark.end() }

    /// Runs `body` with the mutex held; equals `Mutex.withLock(_:)`.
    @_transparent
    public borrowing func withLock<Result: ~Copyable, E: Error>(
      _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
      let isRecorded = _takeAtOnce() ? false : _wait()
      mark.taken.store(hck_here(), ordering: .relaxed)
      if hck_is_asked() != 0 { _tellTaken(isRecorded) }
      defer { _giveBack(isRecorded) }
      return try body(&value._address.pointee)
    }

    /// Runs `body` with the mutex held if it is free; equals `Mutex.withLockIfAvailable(_:)`.
    @_transparent
    public borrowing func withLockIfAvailable<Result: ~Copyable, E: Error>(
      _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result? {
      guard handle._address.pointee.unsafeTryLock() else {
        _triedInVain()
        return nil
      }
      mark.taken.store(hck_here(), ordering: .relaxed)
      if hck_is_asked() != 0 || hck_has_tried() != 0 { _tellTaken(false, isTried: true) }
      defer { _giveBack(false) }
      return try body(&value._address.pointee)
    }
  }

  // Like the original: whatever reaches the value holds the lock.
  extension InstrumentedMutex: @unchecked Sendable where Value: ~Copyable {}

  extension InstrumentedMutex where Value: ~Copyable {
    @usableFromInline @_transparent
    borrowing func _takeAtOnce() -> Bool {
      // Trying for a lock that is held costs a system call.
      hck_load32(UnsafePointer(_word)) == 0 && handle._address.pointee.unsafeTryLock()
    }

    @usableFromInline @_transparent
    var _word: UnsafeMutablePointer<UInt32> {
      UnsafeMutableRawPointer(handle._address).assumingMemoryBound(to: UInt32.self)
    }

    @usableFromInline @_transparent
    borrowing func _giveBack(_ isRecorded: Bool) {
      if isRecorded { _forget() }
      if hck_is_asked() != 0 { _tellGiven() }
      handle._address.pointee.unsafeUnlock()
    }

    /// Takes the mutex, waiting for it as long as it takes; whether the hold went on record.
    @usableFromInline @inline(never)
    borrowing func _wait() -> Bool { _wait(hck_frame()) }

    borrowing func _wait(_ frame: UnsafeRawPointer) -> Bool {
      mark.tell(_word)
      guard let slot = currentSlot() else {
        // Under the agent its system call is seen.
        handle._address.pointee.unsafeLock()
        return false
      }
      let word = resourceWord(_word, HCK_FUTEX_LOCK)
      slot.pointee.wait_frame = UInt64(UInt(bitPattern: frame))
      let before = beginWait(slot, word)
      let error = hck_futex_lock(_word, slot.pointee.tid)
      if error != 0 {
        let owner = hck_load32(UnsafePointer(_word)) & 0x3fff_ffff
        raise(HCK_ALARM_FUTEX_DEADLOCK, word, other: UInt64(owner), waits: true, frame)
        // Traps, and says why, as the original would have.
        handle._address.pointee.unsafeLock()
      }
      endWait(slot, before)
      acquired(slot, word, frame)
      return true
    }

    /// Where somebody asks for orders, each hold goes on record.
    @usableFromInline @inline(never)
    borrowing func _tellTaken(_ isRecorded: Bool, isTried: Bool = false) {
      tellTaken(isRecorded, isTried, hck_frame())
    }

    borrowing func tellTaken(_ isRecorded: Bool, _ isTried: Bool, _ frame: UnsafeRawPointer) {
      let word = resourceWord(_word, HCK_FUTEX_LOCK)
      mark.tell(_word)
      if hck_tells_agent() != 0 {
        // It has seen a wait, never a hold.
        InProcess.agentTook(isTried ? word | timedBit : word, frame)
      } else if !isRecorded, hck_learns_lock_orders() != 0, let slot = currentSlot() {
        acquired(slot, isTried ? word | timedBit : word, frame)
      } else if isTried {
        InProcess.gotByTry()
      }
      RaceOrder.tookNow(word)
    }

    @usableFromInline @inline(never)
    borrowing func _triedInVain() { triedInVain(hck_frame()) }

    borrowing func triedInVain(_ frame: UnsafeRawPointer) {
      mark.tell(_word)
      hck_set_tried()
      InProcess.triedInVain(resourceWord(_word, HCK_FUTEX_LOCK), frame)
    }

    @usableFromInline @inline(never)
    borrowing func _tellGiven() {
      let word = resourceWord(_word, HCK_FUTEX_LOCK)
      RaceOrder.givesNow(word)
      if hck_tells_agent() != 0 {
        InProcess.agentGave(word)
      } else if hck_learns_lock_orders() != 0, let slot = hck_slot_of_thread() {
        released(slot, word)
      }
    }

    @usableFromInline @inline(never)
    borrowing func _forget() {
      if let slot = hck_slot_of_thread() { released(slot, resourceWord(_word, HCK_FUTEX_LOCK)) }
    }
  }

  extension InstrumentedMutex where Value == () {
    /// Takes the mutex; equals `Mutex._unsafeLock()`.
    @_transparent
    public borrowing func _unsafeLock() {
      let isAtOnce = _takeAtOnce()
      if !isAtOnce { _waitApart() }
      mark.taken.store(hck_here(), ordering: .relaxed)
      if hck_is_asked() != 0 { _tellTaken(!isAtOnce) }
    }

    /// Takes the mutex if it is free; equals `Mutex._unsafeTryLock()`.
    @_transparent
    public borrowing func _unsafeTryLock() -> Bool {
      guard handle._address.pointee.unsafeTryLock() else {
        _triedInVain()
        return false
      }
      mark.taken.store(hck_here(), ordering: .relaxed)
      if hck_is_asked() != 0 || hck_has_tried() != 0 { _tellTaken(false, isTried: true) }
      return true
    }

    /// Gives the mutex back; equals `Mutex._unsafeUnlock()`, whose trap in a thread that does not
    /// hold it comes after the report.
    @inline(never)
    public borrowing func _unsafeUnlock() {
      let owner = hck_load32(UnsafePointer(_word)) & 0x3fff_ffff
      if let slot = currentSlot() {
        if mark.takeHoldRecorded() { released(slot, resourceWord(_word, HCK_FUTEX_LOCK)) }
        if owner != slot.pointee.tid { _unlocksOthers(owner, hck_frame()) }
      }
      if hck_is_asked() != 0 { _tellGiven() }
      handle._address.pointee.unsafeUnlock()
    }

    /// What `InstrumentedUnfairLock` calls: the site is its caller's.
    borrowing func _lock(from frame: UnsafeRawPointer) {
      let isAtOnce = _takeAtOnce()
      if !isAtOnce { mark.setHoldRecorded(_wait(frame)) }
      mark.taken.store(frame.load(fromByteOffset: 8, as: UInt64.self), ordering: .relaxed)
      if hck_is_asked() != 0 { tellTaken(!isAtOnce, false, frame) }
    }

    borrowing func _tryLock(from frame: UnsafeRawPointer) -> Bool {
      guard handle._address.pointee.unsafeTryLock() else {
        triedInVain(frame)
        return false
      }
      mark.taken.store(frame.load(fromByteOffset: 8, as: UInt64.self), ordering: .relaxed)
      if hck_is_asked() != 0 || hck_has_tried() != 0 { tellTaken(false, true, frame) }
      return true
    }

    borrowing func _mayBeHeldHere(_ isHeld: Bool) -> Bool {
      let owner = hck_load32(UnsafePointer(_word)) & 0x3fff_ffff
      return (owner == currentSlot()?.pointee.tid ?? hck_gettid()) == isHeld
    }

    @usableFromInline @inline(never)
    borrowing func _waitApart() { mark.setHoldRecorded(_wait()) }

    private borrowing func _unlocksOthers(_ owner: UInt32, _ frame: UnsafeRawPointer) {
      let word = resourceWord(_word, HCK_FUTEX_LOCK)
      if owner == 0 {
        raise(HCK_ALARM_UNLOCK_OF_UNLOCKED, word, waits: true, frame)
      } else if hck_lives_here(owner) != 0 {
        raise(HCK_ALARM_FOREIGN_UNLOCK, word, other: UInt64(owner), waits: true, frame)
      }
    }
  }
#endif
