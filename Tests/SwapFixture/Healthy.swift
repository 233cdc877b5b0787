import Foundation

/// Two seconds of everything that is no deadlock.
func healthy() {
  let (gate, a, b, nested) = (NSLock(), NSLock(), NSLock(), NSRecursiveLock())
  let (count, countLock, ended) = (
    UnsafeMutablePointer<Int>.allocate(capacity: 1), NSLock(), Meeting(7)
  )
  count.initialize(to: 0)
  nonisolated(unsafe) let shared = count
  let end = Date(timeIntervalSinceNow: 2)
  for (first, second) in [(a, b), (b, a)] {
    thread("gated") {
      while Date() < end {
        gate.withLock {
          first.withLock { second.withLock { countLock.withLock { shared.pointee += 1 } } }
        }
      }
      ended.arrive()
    }
    thread("backs off") {
      while Date() < end {
        first.lock()
        if second.try() { second.unlock() }
        first.unlock()
      }
      ended.arrive()
    }
  }
  thread("holds long") {
    nested.lock()
    sleep(1)
    nested.lock()
    nested.unlock()
    nested.unlock()
    ended.arrive()
  }
  thread("waits long") {
    usleep(100_000)
    nested.lock()
    nested.unlock()
    ended.arrive()
  }
  ended.arrive()
  say(countLock.withLock { count.pointee } > 0)
}
