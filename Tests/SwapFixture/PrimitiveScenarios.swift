import Foundation
import InstrumentedLocks
import Synchronization

/// Deadlocks among the drop-ins that are no plain locks.
let primitiveScenarios: [String: @Sendable () -> Void] = [
  "conditions": {
    let (a, b, meeting) = (NSCondition(), NSCondition(), Meeting(2))
    thread("one") { takeBoth(a, b, meeting) }
    thread("two") { takeBoth(b, a, meeting) }
    waitForEver()
  },
  "conditionSelf": {
    let condition = NSCondition(name: "inbox")
    condition.lock()
    condition.lock()
  },
  "conditionNamed": {
    let (a, b, meeting) = (NSCondition(name: "inbox"), NSCondition(), Meeting(2))
    b.name = "outbox"
    thread("one") { takeBoth(a, b, meeting) }
    thread("two") { takeBoth(b, a, meeting) }
    waitForEver()
  },
  "conditionOuter": {
    // A wait gives its own mutex back, but not the lock around it.
    let (outer, inner, meeting) = (NSLock(), NSCondition(), Meeting(2))
    thread("waiter") {
      outer.lock()
      inner.lock()
      meeting.arrive()
      inner.wait()
      say("unreachable")
    }
    thread("signaller") {
      meeting.arrive()
      usleep(100_000)
      outer.lock()
      inner.signal()
      say("unreachable")
    }
    standForEver()
  },
  "conditionLocks": {
    let (a, b, meeting) = (NSConditionLock(), NSConditionLock(condition: 1), Meeting(2))
    thread("one") { takeBoth(a, b, meeting) }
    thread("two") { takeBoth(b, a, meeting) }
    waitForEver()
  },
  "readWrite": {
    let (a, b, meeting) = (InstrumentedReadWriteLock(), InstrumentedReadWriteLock(), Meeting(2))
    thread("writer") {
      a.writeLock()
      meeting.arrive()
      b.writeLock()
    }
    thread("reader") {
      b.readLock()
      meeting.arrive()
      a.readLock()
    }
    waitForEver()
  },
  "upgrade": {
    let lock = InstrumentedReadWriteLock(name: "routes")
    lock.withReadLock { lock.withWriteLock { say("unreachable") } }
  },
  "synchronized": {
    let (a, b, meeting) = (Thing(), Thing(), Meeting(2))
    thread("one") { synchronizeBoth(a, b, meeting) }
    thread("two") { synchronizeBoth(b, a, meeting) }
    waitForEver()
  },
  "fourLocks": {
    let (plain, condition, shared, object) = (
      NSRecursiveLock(), NSConditionLock(), InstrumentedReadWriteLock(), Thing()
    )
    let meeting = Meeting(4)
    thread("plain") { plain.withLock { meet(meeting) { condition.lock() } } }
    thread("condition") { condition.withLock { meet(meeting) { shared.readLock() } } }
    thread("shared") { shared.withWriteLock { meet(meeting) { synchronized(object) {} } } }
    thread("object") { synchronized(object) { meet(meeting) { plain.lock() } } }
    waitForEver()
  },

  "mutexes": {
    let (a, b, meeting) = (Guard("accounts"), Guard("journal"), Meeting(2))
    thread("one") { a.value.withLock { _ in meet(meeting) { b.value.withLock { $0 += 1 } } } }
    thread("two") { b.value.withLock { _ in meet(meeting) { a.value.withLock { $0 += 1 } } } }
    waitForEver()
  },
  "mutexSelf": {
    let guarded = Guard("accounts")
    guarded.value.withLock { _ in guarded.value.withLock { $0 += 1 } }
  },
  "mutexAndLock": {
    let (guarded, lock, meeting) = (Guard("accounts"), NSLock(), Meeting(2))
    thread("one") { guarded.value.withLock { _ in meet(meeting) { lock.lock() } } }
    thread("two") { lock.withLock { meet(meeting) { guarded.value.withLock { $0 += 1 } } } }
    waitForEver()
  },
  "unfair": {
    let (lock, other) = (InstrumentedUnfairLock(initialState: 0), NSLock())
    let meeting = Meeting(2)
    thread("one") { lock.withLockUnchecked { _ in meet(meeting) { other.lock() } } }
    thread("two") { other.withLock { meet(meeting) { lock.withLock { $0 += 1 } } } }
    waitForEver()
  },
  "semaphores": {
    let (a, b) = (DispatchSemaphore(value: 1, name: "a"), DispatchSemaphore(value: 1))
    let meeting = Meeting(2)
    for (name, first, second) in [("one", a, b), ("two", b, a)] {
      thread(name) {
        first.wait()
        meeting.arrive()
        second.wait()
        second.signal()
        first.signal()
      }
    }
    standForEver()
  },
  "semaphoreTwice": {
    let semaphore = DispatchSemaphore(value: 1)
    semaphore.wait()
    semaphore.wait()
  },
  "semaphoreNever": {
    DispatchSemaphore(value: 0).wait()
  },
  "onces": {
    let (a, b, meeting) = (InstrumentedOnce(name: "a"), InstrumentedOnce(), Meeting(2))
    thread("one") { a { meet(meeting) { b {} } } }
    thread("two") { b { meet(meeting) { a {} } } }
    waitForEver()
  },
  "onceAndLock": {
    let (once, lock, meeting) = (InstrumentedOnce(), NSLock(), Meeting(2))
    thread("one") { once.run { meet(meeting) { lock.lock() } } }
    thread("two") { lock.withLock { meet(meeting) { once.run {} } } }
    waitForEver()
  },
  "lazies": {
    let (lock, meeting) = (NSLock(), Meeting(2))
    let lazy = InstrumentedLazy<Int> {
      meet(meeting) { lock.lock() }
      return 1
    }
    thread("one") { say(lazy.value) }
    thread("two") { lock.withLock { meet(meeting) { say(lazy.value) } } }
    waitForEver()
  },
  "conditionNever": {
    // Signalled before anybody waits, and no predicate.
    let condition = NSCondition()
    condition.signal()
    condition.lock()
    condition.wait()
  },
  "conditionLockNever": {
    let lock = NSConditionLock(condition: 1)
    lock.lock(whenCondition: 2)
  },
  "fourKinds": {
    let (lock, guarded, once, semaphore) = (
      NSLock(), Guard("accounts"), InstrumentedOnce(), DispatchSemaphore(value: 1)
    )
    let meeting = Meeting(4)
    thread("lock") { lock.withLock { meet(meeting) { guarded.value.withLock { $0 += 1 } } } }
    thread("mutex") { guarded.value.withLock { _ in meet(meeting) { once {} } } }
    thread("once") { once { meet(meeting) { semaphore.wait() } } }
    thread("semaphore") {
      semaphore.wait()
      meet(meeting) { lock.lock() }
      semaphore.signal()
    }
    standForEver()
  },
]

/// Something to synchronize on.
final class Thing: Sendable { static let shared = Thing() }

/// A mutex that threads can share.
final class Guard: Sendable {
  let value: Mutex<Int>
  init(_ name: String? = nil) { value = Mutex(0, name: name) }
}

/// Goes on once all others are there as well.
func meet(_ meeting: Meeting, _ body: () -> Void) {
  meeting.arrive()
  body()
  say("unreachable")
}

@inline(never) func synchronizeBoth(_ first: Thing, _ second: Thing, _ meeting: Meeting) {
  synchronized(first) {
    meeting.arrive()
    synchronized(second) { say("unreachable") }
  }
}
