#if Detection
  internal import CHangcheck
  internal import Foundation
  internal import Recorder

  /// A pthread mutex whose calls are recorded, with the frame of the drop-in's own entry point.
  ///
  /// Expanded where it is used: each entry point has a frame of its own.
  struct RecordedMutex {
    let pointer: MutexPointer

    @inline(__always) var word: ResourceWord { resourceWord(pointer, HCK_MUTEX) }

    @inline(__always) func lock(_ frame: UnsafeRawPointer) {
      guard let slot = hck_slot_of_thread(), slot.pointee.wait == 0 else {
        return lockUnusually(frame)
      }
      slot.pointee.wait_frame = UInt64(UInt(bitPattern: frame))
      beginWait(slot, word)
      let result = pthread_mutex_lock(pointer)
      endWait(slot, 0)
      if result == 0 {
        acquired(slot, word, frame)
        RaceOrder.took(word)
      }
    }

    /// The first lock of a thread, or one in a block of a queue's `sync` or in a signal's handler
    /// that interrupted a wait. Apart, for what is kept across a call costs a store each time.
    @inline(never) private func lockUnusually(_ frame: UnsafeRawPointer) {
      guard let slot = currentSlot() else {
        if InProcess.lock(pointer, frame) == 0 { RaceOrder.took(word) }
        return
      }
      slot.pointee.wait_frame = UInt64(UInt(bitPattern: frame))
      let before = beginWait(slot, word)
      let result = pthread_mutex_lock(pointer)
      endWait(slot, before)
      if result == 0 {
        acquired(slot, word, frame)
        RaceOrder.took(word)
      }
    }

    /// `isAll`: no wait follows where it is in vain.
    @inline(__always) func tryLock(isAll: Bool = true, _ frame: UnsafeRawPointer) -> Bool {
      guard let slot = currentSlot() else {
        return tookUnrecorded(InProcess.tryLock(pointer, frame))
      }
      guard pthread_mutex_trylock(pointer) == 0 else {
        return isAll ? gaveUp(frame) : false
      }
      acquired(slot, word | timedBit, frame)
      RaceOrder.took(word)
      return true
    }

    @inline(__always) func lock(until time: inout timespec, _ frame: UnsafeRawPointer) -> Bool {
      guard let slot = currentSlot() else {
        return tookUnrecorded(InProcess.timedLock(pointer, &time, frame))
      }
      slot.pointee.wait_frame = UInt64(UInt(bitPattern: frame))
      let before = beginWait(slot, word | timedBit)
      let result = pthread_mutex_timedlock(pointer, &time)
      endWait(slot, before)
      guard result == 0 else { return gaveUp(frame) }
      acquired(slot, word | timedBit, frame)
      RaceOrder.took(word)
      return true
    }

    /// Not taken: false.
    @inline(__always) func gaveUp(_ frame: UnsafeRawPointer) -> Bool {
      triedInVain(word, frame)
      return false
    }

    private func tookUnrecorded(_ result: Int32) -> Bool {
      if result == 0 { RaceOrder.took(word) }
      return result == 0
    }

    @inline(__always) func unlock(isOwned: Bool = false, _ frame: UnsafeRawPointer) {
      if RaceOrder.isOn {
        unlockInOrder(isOwned: isOwned, frame)
      } else if let slot = hck_slot_of_thread(), releasedNewest(slot, word) {
        pthread_mutex_unlock(pointer)
      } else {
        unlockUnusually(isOwned: isOwned, frame)
      }
    }

    /// Apart, and from the start on, for the same reason.
    @inline(never) private func unlockInOrder(isOwned: Bool, _ frame: UnsafeRawPointer) {
      RaceOrder.givesNow(word)
      unlockUnusually(isOwned: isOwned, frame)
    }

    @inline(never) private func unlockUnusually(isOwned: Bool, _ frame: UnsafeRawPointer) {
      if let slot = currentSlot(), !released(slot, word) {
        Misuse.unlocksOthers(pointer, slot, isRefused: isOwned, frame)
      }
      pthread_mutex_unlock(pointer)
    }

    /// What is held when its last reference goes is forgotten: the address will be another lock's.
    func end(_ frame: UnsafeRawPointer) {
      if let slot = hck_slot_of_thread() { while released(slot, word) {} }
      if Misuse.state(pointer).isLocked { Misuse.endsHeld(pointer, frame) }
      RaceOrder.ends(word & HCK_ADDRESS_MASK)
      goneLock(word)
      pthread_mutex_destroy(pointer)
    }
  }
#endif
