import Foundation
import InstrumentedLocks

// Data races, and what looks like one: the classes of Go's race tests (mutex, read-write mutex,
// wait group, once, condition, channel as semaphore) and what Swift has besides.

/// A value for two threads, and what tells them when to go on without ordering them: `Meeting` is no
/// drop-in.
final class Shared: @unchecked Sendable {
  @RaceChecked(name: "shared") var value = 0
  let met = Meeting(2)
  let ended = Meeting(2)
}

/// A thread whose beginning is known.
func racer(_ name: String, _ body: @escaping @Sendable () -> Void) {
  InstrumentedThread {
    try? name.write(toFile: "/proc/thread-self/comm", atomically: false, encoding: .utf8)
    body()
  }.start()
}

/// Two threads that do one thing after the other, in this order in time; ordered by nothing but what
/// they do themselves.
func inTurn(
  _ first: @escaping @Sendable (Shared) -> Void, _ second: @escaping @Sendable (Shared) -> Void
) {
  let (shared, ended) = (Shared(), Meeting(3))
  racer("first") {
    first(shared)
    shared.met.arrive()
    ended.arrive()
  }
  racer("second") {
    shared.met.arrive()
    second(shared)
    ended.arrive()
  }
  ended.arrive()
}

/// For ever: a lock that is gone when a report of a race is written has no name.
func kept<Lock: AnyObject>(_ lock: Lock) -> Lock {
  Unmanaged.passRetained(lock).takeUnretainedValue()
}

@inline(never) func write(_ shared: Shared) { shared.value = 1 }
@inline(never) func read(_ shared: Shared) { _ = shared.value }

let races: [String: @Sendable () -> Void] = [
  "race: write and write": { inTurn(write, { $0.value = 2 }) },
  "race: write and read": { inTurn(write, read) },
  "race: read and write": { inTurn(read, write) },
  "race: added to": { inTurn({ $0.value += 1 }, { $0.value += 1 }) },
  "race: two mutexes": {
    let (a, b) = (kept(NSLock(name: "a")), kept(NSLock(name: "b")))
    inTurn({ shared in a.withLock { write(shared) } }, { shared in b.withLock { write(shared) } })
  },
  "race: once without the mutex": {
    let lock = kept(NSLock(name: "guard"))
    inTurn(
      { shared in for _ in 0..<9 { lock.withLock { shared.value += 1 } } }, { $0.value += 1 })
  },
  "race: written under a read lock": {
    let lock = InstrumentedReadWriteLock(name: "guard")
    inTurn(
      { shared in lock.withReadLock { write(shared) } },
      { shared in lock.withReadLock { write(shared) } })
  },
  "race: read before the group's end": {
    let (group, shared) = (DispatchGroup(), Shared())
    DispatchQueue.global().async(group: group) {
      write(shared)
      shared.met.arrive()
    }
    shared.met.arrive()
    read(shared)
    group.wait()
  },
  "race: around the once": {
    let once = InstrumentedOnce()
    inTurn({ shared in once.run { write(shared) } }, read)
  },
  "race: signalled before": {
    let semaphore = DispatchSemaphore(value: 0)
    inTurn(
      { shared in
        semaphore.signal()
        write(shared)
      },
      { shared in
        semaphore.wait()
        read(shared)
      })
  },
  "race: condition without its mutex": {
    let condition = NSCondition()
    inTurn(
      { shared in
        condition.withLock { condition.signal() }
        write(shared)
      },
      { shared in condition.withLock { read(shared) } })
  },
  "race: two queues": {
    let (one, other, shared) = (
      DispatchQueue(label: "one"), DispatchQueue(label: "other"), Shared()
    )
    one.async {
      write(shared)
      shared.met.arrive()
      shared.ended.arrive()
    }
    other.async {
      shared.met.arrive()
      write(shared)
      shared.ended.arrive()
    }
    let group = DispatchGroup()
    one.async(group: group) {}
    other.async(group: group) {}
    group.wait()
  },
  "race: concurrent queue without a barrier": {
    let (queue, shared) = (DispatchQueue(label: "all", attributes: .concurrent), Shared())
    for index in 0..<2 {
      queue.async {
        if index == 1 { shared.met.arrive() }
        shared.value = index
        if index == 0 { shared.met.arrive() }
        shared.ended.arrive()
      }
    }
    queue.sync(flags: .barrier) {}
  },
  "race: operations without a dependency": {
    let (queue, shared) = (OperationQueue(), Shared())
    for index in 0..<2 {
      queue.addOperation {
        if index == 1 { shared.met.arrive() }
        shared.value = index
        if index == 0 { shared.met.arrive() }
        shared.ended.arrive()
      }
    }
    queue.waitUntilAllOperationsAreFinished()
  },
  "race: plain threads at once": {
    // Nothing is known of how they begin: only what they do once both are there.
    let (shared, begun, ended) = (Shared(), Meeting(2), Meeting(3))
    thread("first") {
      NSLock().withLock {}
      begun.arrive()
      write(shared)
      shared.met.arrive()
      ended.arrive()
    }
    thread("second") {
      NSLock().withLock {}
      begun.arrive()
      shared.met.arrive()
      write(shared)
      ended.arrive()
    }
    ended.arrive()
  },
  "stale write": {
    RaceChecking.notesStaleWrites = true
    let (lock, shared, turn) = (kept(NSLock(name: "guard")), Shared(), Meeting(2))
    racer("slow") {
      let seen = lock.withLock { shared.value }
      shared.met.arrive()
      turn.arrive()
      lock.withLock { shared.value = seen + 1 }
      shared.ended.arrive()
    }
    shared.met.arrive()
    lock.withLock { shared.value += 10 }
    turn.arrive()
    shared.ended.arrive()
  },
]
