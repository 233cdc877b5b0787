// All that a module needs: its other files go on saying NSLock.
import InstrumentedLocks

typealias NSLock = InstrumentedLock
typealias NSRecursiveLock = InstrumentedRecursiveLock
typealias NSCondition = InstrumentedCondition
typealias NSConditionLock = InstrumentedConditionLock
typealias Mutex = InstrumentedMutex
typealias DispatchSemaphore = InstrumentedSemaphore
typealias DispatchQueue = InstrumentedQueue
typealias DispatchGroup = InstrumentedGroup
typealias Operation = InstrumentedOperation
typealias BlockOperation = InstrumentedBlockOperation
typealias OperationQueue = InstrumentedOperationQueue
