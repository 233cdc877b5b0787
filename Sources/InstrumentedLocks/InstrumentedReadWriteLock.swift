#if Detection
  internal import CHangcheck
  // Through which pthread's types come once any file of the module has it.
  internal import CoreFoundation
  public import Foundation
  internal import Recorder

  /// A `pthread_rwlock_t` whose deadlocks `Watchdog` explains.
  ///
  /// Each method equals a function of pthread's; those functions are also there for it, so that
  /// `typealias pthread_rwlock_t = InstrumentedReadWriteLock` swaps it throughout a module.
  ///
  /// Costs at most half as much again as the original, and some 80 bytes more a lock. Cannot see
  /// which thread reads a lock that one thread took and another gave back.
  public final class InstrumentedReadWriteLock: @unchecked Sendable {
    private struct Memory {
      var lock = pthread_rwlock_t()
      var created: hck_creation
    }
    private let memory: UnsafeMutablePointer<Memory>
    private let lock: UnsafeMutablePointer<pthread_rwlock_t>
    @inline(__always) private var word: ResourceWord { resourceWord(lock, HCK_RWLOCK) }

    /// What reports call the lock; without one, it is the place where it was made. 55 bytes of it
    /// are kept.
    public var name: String? {
      didSet { if name != nil || oldValue != nil { tellName() } }
    }

    /// A lock that nobody holds; equals `pthread_rwlock_init`.
    public init(name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line) {
      InProcess.begin()
      memory = .allocate(capacity: 1)
      memory.initialize(to: Memory(created: hck_creation(fileID, line)))
      // The first member: the two have one address.
      lock = UnsafeMutableRawPointer(memory).assumingMemoryBound(to: pthread_rwlock_t.self)
      pthread_rwlock_init(lock, nil)
      self.name = name
      if name != nil { tellName() }
    }

    deinit {
      if let slot = hck_slot_of_thread() { while released(slot, word) {} }
      let (writer, readers) = state
      if writer != 0 || readers != 0, hck_arena_get() != nil {
        raise(HCK_ALARM_DESTROY_HELD, word, other: UInt64(writer), hck_frame())
      }
      if name != nil { InProcess.name(UInt64(UInt(bitPattern: lock)), nil) }
      RaceOrder.ends(UInt64(UInt(bitPattern: lock)))
      pthread_rwlock_destroy(lock)
      memory.pointee.created.mark = 0
      memory.deinitialize(count: 1)
      memory.deallocate()
    }

    private func tellName() { InProcess.name(UInt64(UInt(bitPattern: lock)), name) }

    /// The lock as glibc keeps it.
    private var state: (writer: UInt32, readers: UInt32) {
      hck_sanitizer_ignore_begin()
      defer { hck_sanitizer_ignore_end() }
      let memory = UnsafeRawPointer(lock)
      return (
        memory.load(fromByteOffset: hck_rwlock_writer_offset(), as: UInt32.self),
        memory.load(fromByteOffset: hck_rwlock_readers_offset(), as: UInt32.self) >> 3
      )
    }

    /// Takes the lock for reading; equals `pthread_rwlock_rdlock`. 0, or EDEADLK where this thread
    /// writes.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @discardableResult @inline(never) public func readLock() -> Int32 {
      let frame = hck_frame()
      // What is free costs no wait.
      guard let slot = hck_slot_of_thread(), pthread_rwlock_tryrdlock(lock) == 0 else {
        return waitToRead(frame)
      }
      acquired(slot, word | sharedBit, frame)
      RaceOrder.took(word | sharedBit)
      return 0
    }

    /// Takes the lock for writing; equals `pthread_rwlock_wrlock`. 0, or EDEADLK where this thread
    /// writes already.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @discardableResult @inline(never) public func writeLock() -> Int32 {
      let frame = hck_frame()
      guard let slot = hck_slot_of_thread(), pthread_rwlock_trywrlock(lock) == 0 else {
        return waitToWrite(frame)
      }
      acquired(slot, word, frame)
      RaceOrder.took(word)
      return 0
    }

    /// Takes the lock for reading if it can be had at once; equals `pthread_rwlock_tryrdlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) public func tryReadLock() -> Bool {
      guard pthread_rwlock_tryrdlock(lock) == 0 else {
        triedInVain(word | sharedBit, hck_frame())
        return false
      }
      if let slot = currentSlot() { acquired(slot, word | sharedBit | timedBit, hck_frame()) }
      RaceOrder.took(word | sharedBit)
      return true
    }

    /// Takes the lock for writing if it is free; equals `pthread_rwlock_trywrlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) public func tryWriteLock() -> Bool {
      guard pthread_rwlock_trywrlock(lock) == 0 else {
        triedInVain(word, hck_frame())
        return false
      }
      if let slot = currentSlot() { acquired(slot, word | timedBit, hck_frame()) }
      RaceOrder.took(word)
      return true
    }

    /// Takes the lock for reading, or gives up at `limit`; equals `pthread_rwlock_timedrdlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) public func readLock(before limit: Date) -> Bool {
      guard var time = LockCore.time(until: limit) else { return tryReadLock() }
      return take(sharedBit | timedBit, hck_frame()) { pthread_rwlock_timedrdlock($0, &time) } == 0
    }

    /// Takes the lock for writing, or gives up at `limit`; equals `pthread_rwlock_timedwrlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) public func writeLock(before limit: Date) -> Bool {
      guard var time = LockCore.time(until: limit) else { return tryWriteLock() }
      return take(timedBit, hck_frame()) { pthread_rwlock_timedwrlock($0, &time) } == 0
    }

    /// Gives the lock back, however it was taken; equals `pthread_rwlock_unlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @discardableResult @inline(never) public func unlock() -> Int32 {
      if !RaceOrder.isOn, let slot = hck_slot_of_thread(), releasedNewest(slot, word) {
        return pthread_rwlock_unlock(lock)
      }
      return unlockUnusually(hck_frame())
    }

    @inline(never) private func unlockUnusually(_ frame: UnsafeRawPointer) -> Int32 {
      RaceOrder.gives(word)
      if let slot = currentSlot(), !released(slot, word) { unlocksOthers(slot, frame) }
      return pthread_rwlock_unlock(lock)
    }

    @inline(never) private func waitToRead(_ frame: UnsafeRawPointer) -> Int32 {
      take(sharedBit, frame) { pthread_rwlock_rdlock($0) }
    }

    @inline(never) private func waitToWrite(_ frame: UnsafeRawPointer) -> Int32 {
      take(0, frame) { pthread_rwlock_wrlock($0) }
    }

    @inline(__always) private func take(
      _ flags: UInt64, _ frame: UnsafeRawPointer,
      _ call: (UnsafeMutablePointer<pthread_rwlock_t>) -> Int32
    ) -> Int32 {
      guard let slot = currentSlot() else {
        let result = call(lock)
        if result == 0 { RaceOrder.took(word | flags) }
        return result
      }
      slot.pointee.wait_frame = UInt64(UInt(bitPattern: frame))
      let before = beginWait(slot, word | flags)
      let result = call(lock)
      endWait(slot, before)
      if result == 0 {
        acquired(slot, word | flags, frame)
        RaceOrder.took(word | flags)
      } else if result == ETIMEDOUT {
        triedInVain(word | flags, frame)
      } else if result == EDEADLK {
        raise(HCK_ALARM_WRITE_TWICE, word, other: UInt64(slot.pointee.tid), frame)
      }
      return result
    }

    /// Readers are a number alone, so that another thread's read lock may be given back unseen.
    @inline(never) private func unlocksOthers(_ slot: Slot, _ frame: UnsafeRawPointer) {
      let (writer, readers) = state
      if writer == 0 && readers == 0 {
        raise(HCK_ALARM_UNLOCK_OF_UNLOCKED, word, frame)
      } else if writer != 0, writer != slot.pointee.tid {
        if hck_lives_here(writer) != 0 {
          raise(HCK_ALARM_FOREIGN_UNLOCK, word, other: UInt64(writer), frame)
        }
        if let arena = hck_arena_get() { forget(word, in: arena, tid: writer) }
      }
    }
  }
#endif
