import Foundation
import InstrumentedLocks
import Synchronization

/// What is wrong, or would be a trap, without any deadlock.
let misuseScenarios: [String: @Sendable () -> Void] = [
  "foreignUnlock": {
    let lock = NSLock()
    lock.lock()
    elsewhere { lock.unlock() }
    lock.lock()
    lock.unlock()
  },
  "foreignUnlockOfCondition": {
    let condition = NSCondition()
    condition.lock()
    elsewhere { condition.unlock() }
    condition.withLock {}
  },
  "foreignUnlockOfConditionLock": {
    let lock = NSConditionLock()
    lock.lock()
    elsewhere { lock.unlock(withCondition: 1) }
    lock.lock(whenCondition: 1)
    lock.unlock()
  },
  "foreignUnlockOfRecursive": {
    let lock = NSRecursiveLock()
    lock.lock()
    elsewhere { lock.unlock() }
    lock.unlock()
  },
  "foreignUnlockOfWriter": {
    let lock = InstrumentedReadWriteLock()
    lock.writeLock()
    elsewhere { lock.unlock() }
    lock.withReadLock {}
  },
  "foreignUnlockOfUnfair": {
    let lock = InstrumentedUnfairLock()
    lock.lock()
    elsewhere { lock.unlock() }
  },
  "unlockOfUnlocked": {
    NSLock().unlock()
  },
  "unlockOfUnlockedCondition": {
    NSCondition().unlock()
  },
  "unlockOfUnlockedConditionLock": {
    let lock = NSConditionLock()
    lock.unlock(withCondition: 3)
    lock.lock(whenCondition: 3)
    lock.unlock()
  },
  "unlockOfUnlockedUnfair": {
    InstrumentedUnfairLock().unlock()
  },
  "dropped": {
    let lock = NSLock(name: "dropped")
    lock.lock()
  },
  "droppedCondition": {
    let condition = NSCondition()
    condition.lock()
  },
  "droppedConditionLock": {
    let lock = NSConditionLock()
    lock.lock()
  },
  "droppedReadWrite": {
    let lock = InstrumentedReadWriteLock()
    lock.readLock()
  },
  "conditionWithoutMutex": {
    let condition = NSCondition()
    say(condition.wait(until: Date(timeIntervalSinceNow: 0.01)))
    condition.unlock()
  },
  "conditionOfAnother": {
    let condition = NSCondition()
    let held = Meeting(2)
    thread("holder") {
      condition.lock()
      held.arrive()
      usleep(300_000)
      condition.unlock()
    }
    held.arrive()
    say(condition.wait(until: Date(timeIntervalSinceNow: 0.01)))
  },
  "writeTwice": {
    let lock = InstrumentedReadWriteLock()
    lock.writeLock()
    say(lock.writeLock() == EDEADLK, lock.readLock() == EDEADLK)
    lock.unlock()
  },
  "identityChanged": {
    let holder = Holder()
    synchronized(holder.items) { holder.items = NSMutableArray() }
  },
  "synchronizedNil": {
    let nothing: NSObject? = nil
    synchronized(nothing) { say("unreachable") }
  },
  "semaphoreLow": {
    let semaphore = DispatchSemaphore(value: 2, name: "connections")
    semaphore.wait()
  },
  "onceReentered": {
    let once = InstrumentedOnce(name: "settings")
    once { once {} }
  },
  "lazyReentered": {
    let cell = LazyCell()
    cell.lazy = InstrumentedLazy { (cell.lazy?.value ?? 0) + 1 }
    say(cell.lazy?.value ?? 0)
  },
]

/// What comes close to misuse or a deadlock, and is none.
let nearMisses: [String: @Sendable () -> Void] = [
  "allParity": allParity,
  "synchronizing": {
    // The same object again and again, by several threads, through calls, errors and new objects.
    final class Counter: @unchecked Sendable {
      var value = 0
      func increase() { synchronized(self) { value += 1 } }
    }
    struct Failure: Error {}
    let (counter, ended) = (Counter(), Meeting(4))
    for index in 0..<3 {
      thread("count \(index)") {
        for _ in 0..<20_000 {
          synchronized(counter) { synchronized(counter) { counter.increase() } }
          synchronized(Thing.shared) {}
        }
        ended.arrive()
      }
    }
    do { try synchronized(counter) { () throws(Failure) in throw Failure() } } catch {}
    ended.arrive()
    say(synchronized(counter) { counter.value })
  },
  "semaphoreSignals": {
    // No lock: one thread waits, another signals, later and without ever waiting itself.
    let (semaphore, back) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    thread("worker") {
      for _ in 0..<1000 {
        semaphore.wait()
        back.signal()
      }
    }
    for _ in 0..<1000 {
      semaphore.signal()
      back.wait()
    }
    usleep(200_000)
    DispatchQueue.global().asyncAfter(deadline: .now() + 0.5) { semaphore.signal() }
    semaphore.wait()
  },
  "semaphoreBalanced": {
    let limiter = DispatchSemaphore(value: 3)
    limiter.wait()
    limiter.wait()
    elsewhere {
      limiter.signal()
      limiter.signal()
    }
    let raw = InstrumentedSemaphore(value: 1).dispatchSemaphore
    raw.wait()
    raw.signal()
  },
  "mutexesInOrder": {
    let (a, b, ended) = (Guard("accounts"), Guard(), Meeting(4))
    for index in 0..<3 {
      thread("count \(index)") {
        for _ in 0..<20_000 { a.value.withLock { _ in b.value.withLock { $0 += 1 } } }
        ended.arrive()
      }
    }
    ended.arrive()
    say(b.value.withLock { $0 })
  },
  "mutexHeldLong": {
    let (guarded, held) = (Guard("accounts"), Meeting(2))
    thread("holder") {
      guarded.value.withLock { _ in
        held.arrive()
        sleep(1)
      }
    }
    held.arrive()
    guarded.value.withLock { $0 += 1 }
    let unfair = InstrumentedUnfairLock()
    unfair.lock()
    unfair.precondition(.owner)
    elsewhere { unfair.precondition(.notOwner) }
    unfair.unlock()
  },
  "mutexesCome": {
    // Mutexes that come and go at the same addresses, with names.
    for round in 0..<2000 {
      let guarded = Guard(round % 2 == 0 ? "round \(round)" : nil)
      guarded.value.withLock { $0 += 1 }
    }
  },
  "onceContended": {
    let (once, ended) = (InstrumentedOnce(), Meeting(5))
    let lazy = InstrumentedLazy<Int>(name: "settings") {
      usleep(300_000)
      return 7
    }
    for index in 0..<4 {
      thread("asks \(index)") {
        once { usleep(300_000) }
        if lazy.value != 7 { say("wrong") }
        once { say("twice") }
        ended.arrive()
      }
    }
    ended.arrive()
  },
  "readersMeet": {
    // Read locks in opposite orders, no writer; then writers, with limits.
    let (a, b, meeting) = (InstrumentedReadWriteLock(), InstrumentedReadWriteLock(), Meeting(2))
    let ended = Meeting(3)
    for (first, second) in [(a, b), (b, a)] {
      thread("reads") {
        first.withReadLock {
          meeting.arrive()
          second.withReadLock { _ = usleep(200_000) }
        }
        ended.arrive()
      }
    }
    ended.arrive()
    a.writeLock()
    elsewhere {
      say(a.readLock(before: Date(timeIntervalSinceNow: 0.3)), a.tryReadLock(), a.tryWriteLock())
      say(a.writeLock(before: Date(timeIntervalSinceNow: 0.1)))
    }
    a.unlock()
    a.readLock()
    elsewhere { a.withReadLock {} }
    a.unlock()
  },
  "conditionLockTurns": {
    // The original's calls without a limit, which trap there when they have to wait.
    let (lock, ended) = (NSConditionLock(condition: 0), Meeting(3))
    for turn in 0..<2 {
      thread("turn \(turn)") {
        for _ in 0..<5000 {
          lock.lock(whenCondition: turn)
          lock.unlock(withCondition: 1 - turn)
        }
        ended.arrive()
      }
    }
    for _ in 0..<5000 {
      lock.lock()
      lock.unlock()
    }
    ended.arrive()
  },
  "conditionIdle": {
    // A worker that waits for work for ever, while the others work.
    let (condition, inbox) = (NSCondition(), Guard())
    thread("idle") {
      condition.lock()
      while inbox.value.withLock({ $0 }) == 0 { condition.wait() }
      condition.unlock()
    }
    sleep(1)
    condition.lock()
    condition.broadcast()
    condition.unlock()
  },
]

final class Holder: @unchecked Sendable { var items = NSMutableArray() }

final class LazyCell: @unchecked Sendable { var lazy: InstrumentedLazy<Int>? }

/// Runs something on another thread and waits for its end.
func elsewhere(_ body: @escaping @Sendable () -> Void) {
  let ended = Meeting(2)
  thread("elsewhere") {
    body()
    ended.arrive()
  }
  ended.arrive()
}
