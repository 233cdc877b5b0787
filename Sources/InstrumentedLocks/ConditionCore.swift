#if Detection
  internal import CHangcheck
  internal import Foundation
  internal import Recorder

  /// The memory of a condition: a mutex and a condition variable, and behind each where they were
  /// made.
  ///
  /// A plain value beside the class that owns it; `end` gives the memory back.
  struct ConditionCore {
    private struct Memory {
      var mutex = hck_marked_mutex()
      var condition = pthread_cond_t()
      var created: hck_creation
    }
    private let memory: UnsafeMutablePointer<Memory>
    let condition: UnsafeMutablePointer<pthread_cond_t>
    let mutex: RecordedMutex
    @inline(__always) var word: ResourceWord { resourceWord(condition, HCK_CONDITION) }

    init(fileID: StaticString, line: UInt) {
      InProcess.begin()
      let created = hck_creation(fileID, line)
      memory = .allocate(capacity: 1)
      memory.initialize(to: Memory(created: created))
      memory.pointee.mutex.created = created
      let raw = UnsafeMutableRawPointer(memory)
      // The first member, and the one behind it.
      mutex = RecordedMutex(pointer: raw.assumingMemoryBound(to: pthread_mutex_t.self))
      condition = raw.advanced(by: MemoryLayout<hck_marked_mutex>.stride)
        .assumingMemoryBound(to: pthread_cond_t.self)
      pthread_mutex_init(mutex.pointer, nil)
      pthread_cond_init(condition, nil)
    }

    func end(wasNamed: Bool, _ frame: UnsafeRawPointer) {
      mutex.end(frame)
      RaceOrder.ends(word & HCK_ADDRESS_MASK)
      pthread_cond_destroy(condition)
      if wasNamed { setName(nil) }
      memory.pointee.mutex.created.mark = 0
      memory.pointee.created.mark = 0
      memory.deinitialize(count: 1)
      memory.deallocate()
    }

    func setName(_ name: String?) {
      InProcess.name(UInt64(UInt(bitPattern: mutex.pointer)), name)
      InProcess.name(UInt64(UInt(bitPattern: condition)), name)
    }

    /// Waits without or, given a time of the real-time clock, with a limit; 0 or an errno.
    @inline(__always) func wait(
      until time: UnsafePointer<timespec>?, _ frame: UnsafeRawPointer
    ) -> Int32 {
      guard let slot = currentSlot() else { return call(time) }
      // The mutex is given back while it waits, and held again when it returns, whatever that is.
      if !released(slot, mutex.word) { Misuse.waitsWithout(mutex.pointer, word, slot, frame) }
      let mutexBefore = slot.pointee.wait_aux
      slot.pointee.wait_aux = UInt64(UInt(bitPattern: mutex.pointer))
      slot.pointee.wait_frame = UInt64(UInt(bitPattern: frame))
      hck_order()
      let before = beginWait(slot, time == nil ? word : word | timedBit)
      let result = call(time)
      slot.pointee.wait_aux = mutexBefore
      endWait(slot, before)
      acquired(slot, mutex.word, frame)
      return result
    }

    @inline(__always) private func call(_ time: UnsafePointer<timespec>?) -> Int32 {
      RaceOrder.gives(mutex.word)
      defer {
        RaceOrder.took(mutex.word)
        RaceOrder.acquire(word & HCK_ADDRESS_MASK)
      }
      if let time { return pthread_cond_timedwait(condition, mutex.pointer, time) }
      return pthread_cond_wait(condition, mutex.pointer)
    }

    @inline(__always) func signal(_ frame: UnsafeRawPointer) {
      if let slot = currentSlot() { tally(slot, word, HCK_GIVE, frame) }
      RaceOrder.release(word & HCK_ADDRESS_MASK)
      pthread_cond_signal(condition)
    }

    @inline(__always) func broadcast(_ frame: UnsafeRawPointer) {
      if let slot = currentSlot() { tally(slot, word, HCK_GIVE, frame) }
      RaceOrder.release(word & HCK_ADDRESS_MASK)
      pthread_cond_broadcast(condition)
    }
  }
#endif
