// All that a module needs: its other files go on saying NSLock.
import InstrumentedLocks

typealias NSLock = InstrumentedLock
typealias NSRecursiveLock = InstrumentedRecursiveLock
