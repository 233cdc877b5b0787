#if Detection
  internal import CHangcheck
  internal import Foundation
  internal import Recorder

  /// A lock with a number: the mutex `lock`, held from lock to unlock; a condition variable for
  /// those who want another number; and that one's mutex, held for moments.
  ///
  /// L1  `number` changes with `lock` held, and `lock` is given back with the condition's mutex
  ///     held: who compared the number and took that mutex before it gave `lock` back misses no
  ///     change.
  struct ConditionLockCore {
    private struct Memory {
      var lock = hck_marked_mutex()
      var number: Int
    }
    private let memory: UnsafeMutablePointer<Memory>
    private let changed: ConditionCore
    let lock: RecordedMutex

    init(_ condition: Int, fileID: StaticString, line: UInt) {
      changed = ConditionCore(fileID: fileID, line: line)
      memory = .allocate(capacity: 1)
      memory.initialize(to: Memory(number: condition))
      memory.pointee.lock.created = hck_creation(fileID, line)
      lock = RecordedMutex(
        pointer: UnsafeMutableRawPointer(memory).assumingMemoryBound(to: pthread_mutex_t.self))
      pthread_mutex_init(lock.pointer, nil)
    }

    func end(wasNamed: Bool, _ frame: UnsafeRawPointer) {
      lock.end(frame)
      if wasNamed { setName(nil) }
      changed.end(wasNamed: false, frame)
      memory.pointee.lock.created.mark = 0
      memory.deinitialize(count: 1)
      memory.deallocate()
    }

    func setName(_ name: String?) {
      InProcess.name(UInt64(UInt(bitPattern: lock.pointer)), name)
      changed.setName(name)
    }

    /// Read without the lock, as the original's is.
    var value: Int {
      hck_sanitizer_ignore_begin()
      defer { hck_sanitizer_ignore_end() }
      return memory.pointee.number
    }

    @inline(__always) func tryLock(when condition: Int, _ frame: UnsafeRawPointer) -> Bool {
      guard lock.tryLock(frame) else { return false }
      if memory.pointee.number == condition { return true }
      lock.unlock(frame)
      return false
    }

    @inline(__always) func lock(
      when condition: Int, until time: UnsafeMutablePointer<timespec>?, _ frame: UnsafeRawPointer
    ) -> Bool {
      while true {
        if let time {
          guard lock.lock(until: &time.pointee, frame) else { return false }
        } else {
          lock.lock(frame)
        }
        if memory.pointee.number == condition { return true }
        changed.mutex.lock(frame)
        lock.unlock(frame)  // L1
        let result = changed.wait(until: time, frame)
        changed.mutex.unlock(frame)
        // The mutex waits no longer than the time either, but a change may have come with it.
        if result == ETIMEDOUT { return tryLock(when: condition, frame) }
      }
    }

    @inline(__always) func unlock(setting condition: Int?, _ frame: UnsafeRawPointer) {
      if let condition { memory.pointee.number = condition }
      // Held for moments, so nobody needs to know.
      pthread_mutex_lock(changed.mutex.pointer)
      if Misuse.state(lock.pointer).isLocked {
        lock.unlock(frame)  // L1
      } else if currentSlot() != nil {
        raise(HCK_ALARM_UNLOCK_OF_UNLOCKED, lock.word, frame)
      }
      changed.broadcast(frame)
      pthread_mutex_unlock(changed.mutex.pointer)
    }
  }
#endif
