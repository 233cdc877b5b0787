// Written for pthread_rwlock_t, like Parity.swift. A typealias swaps a type; functions are found by
// an import.
import Foundation
import InstrumentedLocks

func readWriteParity() -> Bool {
  var lock = pthread_rwlock_t()
  var right = pthread_rwlock_init(&lock, nil) == 0
  right = right && pthread_rwlock_rdlock(&lock) == 0 && pthread_rwlock_tryrdlock(&lock) == 0
  right = right && pthread_rwlock_trywrlock(&lock) == EBUSY
  pthread_rwlock_unlock(&lock)
  right = right && pthread_rwlock_unlock(&lock) == 0 && pthread_rwlock_wrlock(&lock) == 0
  right = right && pthread_rwlock_tryrdlock(&lock) == EBUSY
  pthread_rwlock_unlock(&lock)
  pthread_rwlock_destroy(&lock)
  let pointer = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
  pointer.initialize(to: pthread_rwlock_t())
  pthread_rwlock_init(pointer, nil)
  pthread_rwlock_wrlock(pointer)
  pthread_rwlock_unlock(pointer)
  pthread_rwlock_destroy(pointer)
  pointer.deinitialize(count: 1)
  pointer.deallocate()
  return right
}
