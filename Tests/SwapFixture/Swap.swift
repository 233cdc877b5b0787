// The whole of what a module needs to be swapped.
import InstrumentedLocks

typealias NSLock = InstrumentedLock
typealias NSRecursiveLock = InstrumentedRecursiveLock
