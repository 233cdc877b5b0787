// The whole of what a module needs to be swapped.
import InstrumentedLocks

typealias NSLock = InstrumentedLock
typealias NSRecursiveLock = InstrumentedRecursiveLock
typealias DispatchQueue = InstrumentedQueue
typealias DispatchGroup = InstrumentedGroup
typealias Operation = InstrumentedOperation
typealias BlockOperation = InstrumentedBlockOperation
typealias OperationQueue = InstrumentedOperationQueue
