// What is no plain lock. Each pair of functions is not generic: what a program's own code compiles
// to.
import Foundation
import InstrumentedLocks
import Synchronization

final class Counted: Sendable {
  let mutex = Mutex(0)
}
final class OurCounted: Sendable {
  let mutex = InstrumentedMutex(0)
}

@inline(never) func pair(_ counted: Counted) -> Double {
  nanoseconds(count) { for _ in 0..<count { counted.mutex.withLock { $0 &+= 1 } } }
}
@inline(never) func ourPair(_ counted: OurCounted) -> Double {
  nanoseconds(count) { for _ in 0..<count { counted.mutex.withLock { $0 &+= 1 } } }
}
@inline(never) func pair(_ semaphore: DispatchSemaphore) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      semaphore.wait()
      semaphore.signal()
    }
  }
}
@inline(never) func ourPair(_ semaphore: InstrumentedSemaphore) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      semaphore.wait()
      semaphore.signal()
    }
  }
}
@inline(never) func pair(_ condition: NSCondition) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      condition.lock()
      condition.signal()
      condition.unlock()
    }
  }
}
@inline(never) func ourPair(_ condition: InstrumentedCondition) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      condition.lock()
      condition.signal()
      condition.unlock()
    }
  }
}
@inline(never) func pair(_ lock: NSConditionLock) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      lock.lock()
      lock.unlock(withCondition: 1)
    }
  }
}
@inline(never) func ourPair(_ lock: InstrumentedConditionLock) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      lock.lock()
      lock.unlock(withCondition: 1)
    }
  }
}
@inline(never) func pair(_ lock: UnsafeMutablePointer<pthread_rwlock_t>) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      pthread_rwlock_rdlock(lock)
      pthread_rwlock_unlock(lock)
    }
  }
}
@inline(never) func ourPair(_ lock: InstrumentedReadWriteLock) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      lock.readLock()
      lock.unlock()
    }
  }
}

/// Two threads that do a little work inside and outside the mutex.
func contended(_ take: @escaping @Sendable () -> Void) -> Double {
  let (count, ended) = (100_000, DispatchSemaphore(value: 0))
  return nanoseconds(count) {
    for _ in 0..<2 {
      Thread {
        for _ in 0..<count {
          take()
          work()
        }
        ended.signal()
      }.start()
    }
    ended.wait()
    ended.wait()
  }
}

func comparePrimitives(_ suffix: String) {
  let (mutex, ourMutex) = (Counted(), OurCounted())
  compare("Mutex" + suffix, rounds: 41, { pair(mutex) }, { ourPair(ourMutex) })
  compare(
    "Mutex, two threads" + suffix, rounds: 21, median: true,
    { contended { mutex.mutex.withLock { _ in work() } } },
    { contended { ourMutex.mutex.withLock { _ in work() } } })
  let (semaphore, ourSemaphore) = (
    DispatchSemaphore(value: 1), InstrumentedSemaphore(value: 1, name: nil)
  )
  compare("semaphore wait + signal" + suffix, { pair(semaphore) }, { ourPair(ourSemaphore) })
  let (condition, ourCondition) = (NSCondition(), InstrumentedCondition())
  compare("condition lock + signal" + suffix, { pair(condition) }, { ourPair(ourCondition) })
  let (lock, ourLock) = (NSConditionLock(), InstrumentedConditionLock())
  compare("condition lock" + suffix, { pair(lock) }, { ourPair(ourLock) })
  let raw = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
  raw.initialize(to: pthread_rwlock_t())
  pthread_rwlock_init(raw, nil)
  let ours = InstrumentedReadWriteLock()
  compare("read lock + unlock" + suffix, { pair(raw) }, { ourPair(ours) })
  pthread_rwlock_destroy(raw)
  raw.deallocate()
  let object = Counted()
  let recursive = NSRecursiveLock()
  compare(
    "synchronized, to NSRecursiveLock" + suffix, { pair(recursive) },
    { nanoseconds(count) { for _ in 0..<count { synchronized(object) {} } } })
}
