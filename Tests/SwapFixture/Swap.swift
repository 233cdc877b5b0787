// The whole of what a module needs to be swapped.
import InstrumentedLocks

typealias NSLock = InstrumentedLock
typealias NSRecursiveLock = InstrumentedRecursiveLock
typealias DispatchQueue = InstrumentedQueue
typealias DispatchGroup = InstrumentedGroup
typealias Operation = InstrumentedOperation
typealias BlockOperation = InstrumentedBlockOperation
typealias OperationQueue = InstrumentedOperationQueue
typealias NSCondition = InstrumentedCondition
typealias NSConditionLock = InstrumentedConditionLock
typealias Mutex = InstrumentedMutex
typealias DispatchSemaphore = InstrumentedSemaphore
// swift-format-ignore: TypeNamesShouldBeCapitalized
typealias pthread_rwlock_t = InstrumentedReadWriteLock
