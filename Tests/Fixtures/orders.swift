// WITH(support.swift)
// Orders over Swift's own primitives that could deadlock and in this run do not, and others that look
// like it and could not. Flags make one act after the other without any call that is watched.
import Foundation
import Synchronization

@main enum Orders {
  static func main() {
    play([
      "locks": locks, "recursive": recursive, "condition": condition, "transfers": transfers,
      "values": values, "async-lock": asyncLock, "main-lock": mainLock, "barrier-lock": barrierLock,
      "read-lock": readLock, "read-read": readRead, "target": target, "three-kinds": threeKinds,
      "pool": pool, "serial": serial, "block-then-block": blockThenBlock,
      "thread-then-block": threadThenBlock, "grouped": grouped, "notified": notified,
      "signalled": signalled, "sync-async": syncAsync, "lock-async": lockAsync,
      "operations": operations, "dependent": dependent, "once-inside": onceInside,
      "once-done": onceDone, "permits": permits, "tasks": tasks, "awaited": awaited, "actor": actor,
      "main-actor": mainActor, "valued": valued, "slept": slept, "timer": timer,
      "actors-slept": actorsSlept,
    ])
  }
}

let a = NSLock()
let b = NSLock()
let first = Flag()
let second = Flag()

/// Who makes a lock may take it in any order at first: here that is nobody of those concerned.
func makeLocks() { _ = (a, b) }

func nest(_ outer: NSLocking, _ inner: NSLocking) {
  outer.lock()  // HOLDS(one,two)
  inner.lock()  // WAITS(one,two)
  inner.unlock()
  outer.unlock()
}

/// Threads one and two, one after the other, with nothing between them but a flag.
func inTurn(_ one: @escaping () -> Void, _ two: @escaping () -> Void) {
  let threads = [
    start("one") {
      one()
      first.set()
    },
    start("two") {
      first.poll()
      two()
    },
  ]
  watch(threads[0], threads[1])
}

// MARK: locks

func locks() { inTurn({ nest(a, b) }, { nest(b, a) }) }
func recursive() {
  let x = NSRecursiveLock()
  inTurn({ nest(x, b) }, { nest(b, x) })
}
/// A condition is a lock as well.
func condition() {
  let x = NSCondition()
  inTurn({ nest(x, b) }, { nest(b, x) })
}

/// Accounts are locked by their numbers, whoever pays.
func transfers() {
  final class Account: @unchecked Sendable {
    let number: Int
    let lock = NSLock()
    var money = 100
    init(_ number: Int) { self.number = number }
  }
  let accounts = (0..<10).map(Account.init)
  let tellers = (0..<4).map { teller in
    start("teller \(teller)") {
      var generator = SystemRandomNumberGenerator()
      for _ in 0..<2000 {
        let from = accounts.randomElement(using: &generator)!
        let to = accounts.randomElement(using: &generator)!
        if from === to { continue }
        let (low, high) = from.number < to.number ? (from, to) : (to, from)
        low.lock.withLock {
          high.lock.withLock {
            from.money -= 1
            to.money += 1
          }
        }
      }
    }
  }
  for teller in tellers { watch(teller) }
}

/// Uncontended, a Mutex calls nothing that could be seen.
func values() {
  final class Two: Sendable {
    let left = Mutex(0), right = Mutex(0)
  }
  let two = Two()
  inTurn(
    { two.left.withLock { n in two.right.withLock { n += $0 } } },
    { two.right.withLock { n in two.left.withLock { n += $0 } } })
}

// MARK: queues

/// A block that runs on a queue holds it.
func asyncLock() {
  let queue = DispatchQueue(label: "cache")
  let threads = [
    start("sender") {
      queue.async {
        call("worker")
        a.lock()  // WAITS(async-lock:worker)
        a.unlock()
        first.set()
      }
    },
    start("syncer") {
      first.poll()
      a.lock()  // HOLDS(syncer)
      queue.sync {}  // WAITS(syncer)
      a.unlock()
    },
  ]
  watch(threads[0], threads[1])
}

func mainLock() {
  let worker = start("worker") {
    a.lock()  // HOLDS(main-lock:worker)
    DispatchQueue.main.sync {}  // WAITS(main-lock:worker)
    a.unlock()
    first.set()
  }
  while !first.isSet { RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.01)) }
  DispatchQueue.main.async {
    a.lock()  // WAITS(main-lock:main)
    a.unlock()
    second.set()
  }
  while !second.isSet { RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.01)) }
  watch(worker)
}

func barrierLock() {
  let queue = DispatchQueue(label: "store", attributes: .concurrent)
  inTurn(
    {
      queue.sync(flags: .barrier) {
        a.lock()
        a.unlock()
      }
    },
    {
      a.lock()
      queue.sync {}
      a.unlock()
    })
}

/// Readers of a concurrent queue keep nobody out.
func readLock() {
  let queue = DispatchQueue(label: "store", attributes: .concurrent)
  inTurn({ queue.sync { a.withLock {} } }, { a.withLock { queue.sync {} } })
}
func readRead() {
  let left = DispatchQueue(label: "left", attributes: .concurrent)
  let right = DispatchQueue(label: "right", attributes: .concurrent)
  inTurn({ left.sync { right.sync {} } }, { right.sync { left.sync {} } })
}

/// Two queues run on one target: who is on one keeps the other from running.
func target() {
  let base = DispatchQueue(label: "base")
  let left = DispatchQueue(label: "left", target: base)
  let right = DispatchQueue(label: "right", target: base)
  inTurn({ left.sync { a.withLock {} } }, { a.withLock { right.sync {} } })
}

/// Over a mutex, a read-write lock that is written and a queue.
func threeKinds() {
  let queue = DispatchQueue(label: "kind three")
  let door = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
  pthread_rwlock_init(door, nil)
  let threads = [
    start("ann") {
      a.lock()  // HOLDS(ann)
      pthread_rwlock_wrlock(door)  // WAITS(ann)
      pthread_rwlock_unlock(door)
      a.unlock()
      first.set()
    },
    start("ben") {
      first.poll()
      pthread_rwlock_wrlock(door)  // HOLDS(ben)
      queue.sync {}  // WAITS(ben)
      pthread_rwlock_unlock(door)
      second.set()
    },
    start("cat") {
      second.poll()
      queue.sync {  // HOLDS(cat)
        a.lock()  // WAITS(cat)
        a.unlock()
      }
    },
  ]
  watch(threads[0], threads[1], threads[2])
}

/// One worker may well run both blocks: they are two all the same, and another time two workers do.
func pool() {
  let queue = DispatchQueue(label: "pool", attributes: .concurrent)
  queue.async {
    nest(a, b)
    first.set()
  }
  first.poll()
  pause(50)
  queue.async {
    nest(b, a)
    second.set()
  }
  second.poll()
}

// MARK: one after the other

/// The blocks of a serial queue never run at once.
func serial() {
  let queue = DispatchQueue(label: "serial")
  queue.async { nest(a, b) }
  queue.async {
    nest(b, a)
    second.set()
  }
  second.poll()
}
func blockThenBlock() {
  let queue = DispatchQueue(label: "pool", attributes: .concurrent)
  queue.async {
    nest(a, b)
    queue.async {
      nest(b, a)
      second.set()
    }
  }
  second.poll()
}
func threadThenBlock() {
  let thread = start("one") {
    nest(a, b)
    DispatchQueue.global().async {
      nest(b, a)
      second.set()
    }
  }
  second.poll()
  watch(thread)
}
func grouped() {
  let group = DispatchGroup()
  DispatchQueue.global().async(group: group) { nest(a, b) }
  group.wait()
  nest(b, a)
}
func notified() {
  let group = DispatchGroup()
  DispatchQueue.global().async(group: group) { nest(a, b) }
  group.notify(queue: .global()) {
    nest(b, a)
    second.set()
  }
  second.poll()
}
func signalled() {
  let semaphore = DispatchSemaphore(value: 0)
  let threads = [
    start("one") {
      nest(a, b)
      semaphore.signal()
    },
    start("two") {
      semaphore.wait()
      nest(b, a)
    },
  ]
  watch(threads[0], threads[1])
}
func syncAsync() {
  let left = DispatchQueue(label: "left")
  let right = DispatchQueue(label: "right")
  inTurn({ left.sync { right.async {} } }, { right.sync { left.async {} } })
  left.sync {}
  right.sync {}
}
/// What is queued under a lock runs without it.
func lockAsync() {
  inTurn(
    { a.withLock { DispatchQueue.global().async { b.withLock { second.set() } } } },
    {
      second.poll()
      nest(b, a)
    })
}

// MARK: operations, once, semaphores

func operations() {
  let queue = OperationQueue()
  queue.maxConcurrentOperationCount = 2
  queue.addOperation {
    nest(a, b)
    first.set()
  }
  queue.addOperation {
    first.poll()
    nest(b, a)
  }
  queue.waitUntilAllOperationsAreFinished()
}
func dependent() {
  let queue = OperationQueue()
  let before = BlockOperation { nest(a, b) }
  let after = BlockOperation { nest(b, a) }
  after.addDependency(before)
  queue.addOperations([after, before], waitUntilFinished: true)
}

enum Made {
  static let underLock: Int = {
    b.lock()  // WAITS(maker)
    b.unlock()
    return 1
  }()
  static let byLock: Int = a.withLock { 2 }
}
/// The initialiser of a value takes the second lock.
func onceInside() {
  let threads = [
    start("maker") {
      a.lock()  // HOLDS(maker)
      _ = Made.underLock
      a.unlock()
      first.set()
    },
    start("two") {
      first.poll()
      nest(b, a)
    },
  ]
  watch(threads[0], threads[1])
}
/// Were the lock's owner the first to ask for the value, it would wait for itself; asking for a value
/// that is made calls nothing.
func onceDone() { inTurn({ _ = Made.byLock }, { a.withLock { _ = Made.byLock } }) }

/// A permit may be given by anybody: an order over semaphores alone is told only when asked for.
func permits() {
  let left = DispatchSemaphore(value: 1)
  let right = DispatchSemaphore(value: 1)
  func take(_ outer: DispatchSemaphore, _ inner: DispatchSemaphore) {
    outer.wait()
    inner.wait()
    inner.signal()
    outer.signal()
  }
  inTurn({ take(left, right) }, { take(right, left) })
}

/// What `sync` returns is passed on by several functions of the library, above whom the caller is.
func valued() {
  let queue = DispatchQueue(label: "box")
  let value = Atomic<Int>(0)
  let threads = [
    start("getter") {
      a.lock()  // HOLDS(getter)
      let seen = queue.sync { value.load(ordering: .relaxed) }  // WAITS(getter)
      a.unlock()
      print(seen)
      first.set()
    },
    start("setter") {
      first.poll()
      queue.sync {
        a.lock()  // WAITS(setter)
        a.unlock()
      }
    },
  ]
  watch(threads[0], threads[1])
}

/// A timer's handler may run on the very worker that ran the other block.
func timer() {
  makeLocks()
  let source = DispatchSource.makeTimerSource(queue: .global())
  source.schedule(deadline: .now() + 0.2)
  source.setEventHandler {
    nest(b, a)
    second.set()
  }
  source.resume()
  DispatchQueue.global().async { nest(a, b) }
  second.poll()
}

// MARK: tasks

/// What a task does after a sleep has nothing to do with what its thread did before.
func slept() {
  makeLocks()
  Task.detached { nest(a, b) }
  Task.detached {
    try? await Task.sleep(nanoseconds: 200_000_000)
    nest(b, a)
    second.set()
  }
  second.poll()
}
func actorsSlept() {
  actor Clock { func tick() { nest(a, b) } }
  actor Bell { func ring() { nest(b, a) } }
  makeLocks()
  let (clock, bell) = (Clock(), Bell())
  Task.detached { await clock.tick() }
  Task.detached {
    try? await Task.sleep(nanoseconds: 200_000_000)
    await bell.ring()
    second.set()
  }
  second.poll()
}

func tasks() {
  Task.detached {
    nest(a, b)
    first.set()
  }
  first.poll()
  Task.detached {
    nest(b, a)
    second.set()
  }
  second.poll()
}
func awaited() {
  Task.detached {
    await Task.detached { nest(a, b) }.value
    nest(b, a)
    second.set()
  }
  second.poll()
}
/// What one actor does, it does one after the other.
func actor() {
  actor Keeper {
    func forwards() { nest(a, b) }
    func backwards() { nest(b, a) }
  }
  let keeper = Keeper()
  Task.detached {
    await keeper.forwards()
    first.set()
  }
  first.poll()
  Task.detached {
    await keeper.backwards()
    second.set()
  }
  second.poll()
}
func mainActor() {
  Task.detached { await MainActor.run { nest(a, b) } }
  Task.detached {
    await MainActor.run { nest(b, a) }
    second.set()
  }
  while !second.isSet { RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.01)) }
}
