#if Detection
  internal import CHangcheck
  internal import Foundation
  internal import Recorder

  /// What a lock's own memory says against the call that is about to be made. All of it lies off
  /// the usual path.
  enum Misuse {
    /// A mutex as glibc keeps it: locked or not, and the thread that it says it belongs to.
    static func state(_ mutex: MutexPointer) -> (isLocked: Bool, owner: UInt32) {
      hck_sanitizer_ignore_begin()
      defer { hck_sanitizer_ignore_end() }
      let memory = UnsafeRawPointer(mutex)
      return (
        memory.load(as: UInt32.self) != 0,
        memory.load(fromByteOffset: hck_mutex_owner_offset(), as: UInt32.self)
      )
    }

    /// A mutex is unlocked that this thread is not on record to hold: if another one is, it holds
    /// it no longer, unless the kind of mutex refuses.
    @inline(never) static func unlocksOthers(
      _ mutex: MutexPointer, _ slot: Slot, isRefused: Bool, _ frame: UnsafeRawPointer
    ) {
      let word = resourceWord(mutex, HCK_MUTEX)
      let (isLocked, owner) = state(mutex)
      if !isLocked {
        raise(HCK_ALARM_UNLOCK_OF_UNLOCKED, word, frame)
        return
      }
      guard owner != 0, owner != slot.pointee.tid, let arena = hck_arena_get() else { return }
      // The lock of a fork's parent thread is its copy's in the child, under another id.
      if hck_lives_here(owner) != 0 {
        raise(HCK_ALARM_FOREIGN_UNLOCK, word, other: UInt64(owner), frame)
      }
      if isRefused { return }
      hck_store32(&arena.pointee.handed_over, 1)
      forget(word, in: arena, tid: owner)
    }

    /// A condition's wait gives a mutex back that this thread does not hold.
    @inline(never) static func waitsWithout(
      _ mutex: MutexPointer, _ condition: ResourceWord, _ slot: Slot, _ frame: UnsafeRawPointer
    ) {
      let (isLocked, owner) = state(mutex)
      if isLocked && (owner == slot.pointee.tid || hck_lives_here(owner) == 0) { return }
      raise(
        HCK_ALARM_CONDITION_WITHOUT_MUTEX, condition, other: UInt64(UInt(bitPattern: mutex)), frame)
    }

    /// The last reference to a mutex goes while somebody holds it.
    @inline(never) static func endsHeld(_ mutex: MutexPointer, _ frame: UnsafeRawPointer) {
      guard hck_arena_get() != nil else { return }
      raise(
        HCK_ALARM_DESTROY_HELD, resourceWord(mutex, HCK_MUTEX), other: UInt64(state(mutex).owner),
        frame)
    }
  }
#endif
