// Foundation's locks in Swift; the first argument says which scenario. Deadlocks must be reported as
// `deadlock` with the threads and resources of fixtures.tsv and the marked lines: `WAITS(thread)` is
// where that thread waits, `HOLDS(thread)` where it took what the cycle is made of. Where a lock is
// taken through a function, that function's line and its caller's are both marked. The others are
// near misses: nothing may be said of them above a note.
import Foundation
import Synchronization

setvbuf(stdout, nil, _IOLBF, 0)
alarm(60)

// Threads meet without any call that is watched, so that each deadlock closes on every run.
let place = Atomic<Int>(0)
func meet(_ all: Int) {
  place.add(1, ordering: .sequentiallyConsistent)
  while place.load(ordering: .sequentiallyConsistent) < all { usleep(1000) }
}
@discardableResult
func start(_ name: String, _ body: @escaping () -> Void) -> Thread {
  // Foundation forgets a name that comes before `start` has returned, and can lose one that another
  // thread gives.
  let started = DispatchSemaphore(value: 0)
  let thread = Thread {
    started.wait()
    Thread.current.name = name
    body()
  }
  thread.start()
  started.signal()
  return thread
}
func wait(_ threads: Thread...) {
  while !threads.allSatisfy({ $0.isFinished }) { usleep(5000) }
}

// Called by one of two threads that do the same: an optimised build would make one function of both,
// which then has no lines at all.
@inline(never)
func note() { place.add(0, ordering: .relaxed) }

let a = NSLock()
let b = NSLock()
let c = NSLock()
let ra = NSRecursiveLock()
let rb = NSRecursiveLock()
let condition = NSCondition()

// MARK: two locks, two orders

func transfer() {
  note()
  note()
  a.lock()  // HOLDS(transfer)
  meet(2)
  b.lock()  // WAITS(transfer)
  b.unlock()
  a.unlock()
}
func audit() {
  note()
  b.lock()  // HOLDS(audit)
  meet(2)
  a.lock()  // WAITS(audit)
  a.unlock()
  b.unlock()
}
func abba() { wait(start("transfer", transfer), start("audit", audit)) }

func recursive() {
  wait(
    start("inner") {
      ra.lock()  // HOLDS(inner)
      ra.lock()
      meet(2)
      rb.lock()  // WAITS(inner)
      rb.unlock()
      ra.unlock()
      ra.unlock()
    },
    start("outer") {
      rb.lock()  // HOLDS(outer)
      meet(2)
      ra.lock()  // WAITS(outer)
      ra.unlock()
      rb.unlock()
    })
}

func conditionAsLock() {
  wait(
    start("producer") {
      condition.lock()  // HOLDS(producer)
      meet(2)
      a.lock()  // WAITS(producer)
      a.unlock()
      condition.unlock()
    },
    start("consumer") {
      a.lock()  // HOLDS(consumer)
      meet(2)
      condition.lock()  // WAITS(consumer)
      condition.unlock()
      a.unlock()
    })
}

func three() {
  func pair(_ name: String, _ body: @escaping () -> Void) -> Thread { start(name, body) }
  wait(
    pair("red") {
      a.lock()  // HOLDS(red)
      meet(3)
      b.lock()  // WAITS(red)
      b.unlock()
    },
    pair("green") {
      b.lock()  // HOLDS(green)
      meet(3)
      c.lock()  // WAITS(green)
      c.unlock()
    },
    pair("blue") {
      c.lock()  // HOLDS(blue)
      meet(3)
      a.lock()  // WAITS(blue)
      a.unlock()
    })
}

// MARK: the main thread is one of the two

func mainIn() {
  start("worker") {
    b.lock()  // HOLDS(worker)
    meet(2)
    a.lock()  // WAITS(worker)
    a.unlock()
    b.unlock()
  }
  a.lock()  // HOLDS(main)
  meet(2)
  b.lock()  // WAITS(main)
  b.unlock()
  a.unlock()
}

// MARK: one thread alone

// A callback that runs under the lock asks for what the lock guards.
final class Cache {
  private let lock = NSLock()
  private var values: [String: Int] = [:]
  func value(_ key: String, orElse make: () -> Int) -> Int {
    lock.lock()  // HOLDS(caller) WAITS(caller)
    defer { lock.unlock() }
    if let value = values[key] { return value }
    let value = make()
    values[key] = value
    return value
  }
}
func selfLock() {
  let cache = Cache()
  wait(
    start("caller") {
      let value = cache.value("area") {  // HOLDS(caller)
        cache.value("width") { 3 } * cache.value("height") { 4 }  // WAITS(caller)
      }
      print(value)
    })
}

// MARK: ways to take a lock

@inline(never)
func acquire(_ lock: NSLock) {
  lock.lock()  // HOLDS(wrapped-1,wrapped-2) WAITS(wrapped-1,wrapped-2)
  place.add(0, ordering: .relaxed)
}
@inline(never)
func release(_ lock: NSLock) {
  lock.unlock()
  place.add(0, ordering: .relaxed)
}
func wrappers() {
  wait(
    start("wrapped-1") {
      acquire(a)  // HOLDS(wrapped-1)
      meet(2)
      acquire(b)  // WAITS(wrapped-1)
      release(b)
      release(a)
    },
    start("wrapped-2") {
      note()
      acquire(b)  // HOLDS(wrapped-2)
      meet(2)
      acquire(a)  // WAITS(wrapped-2)
      release(a)
      release(b)
    })
}

func closures() {
  wait(
    start("scope-1") {
      a.withLock {  // HOLDS(scope-1)
        meet(2)
        b.withLock { print("never") }  // WAITS(scope-1)
      }
    },
    start("scope-2") {
      note()
      b.withLock {  // HOLDS(scope-2)
        meet(2)
        a.withLock { print("never") }  // WAITS(scope-2)
      }
    })
}

@inline(never)
func guarded<L: NSLocking, T>(_ lock: L, _ body: () -> T) -> T {
  lock.lock()  // HOLDS(generic-1,generic-2) WAITS(generic-1,generic-2)
  defer { lock.unlock() }
  return body()
}
func generic() {
  wait(
    start("generic-1") {
      guarded(a) {  // HOLDS(generic-1)
        meet(2)
        guarded(ra) { print("never") }  // WAITS(generic-1)
      }
    },
    start("generic-2") {
      note()
      guarded(ra) {  // HOLDS(generic-2)
        meet(2)
        guarded(a) { print("never") }  // WAITS(generic-2)
      }
    })
}

@inline(__always)
func quick(_ lock: NSLock) {
  lock.lock()  // HOLDS(inlined-1,inlined-2) WAITS(inlined-1,inlined-2)
}
func inlined() {
  wait(
    start("inlined-1") {
      quick(a)  // HOLDS(inlined-1)
      meet(2)
      quick(b)  // WAITS(inlined-1)
      b.unlock()
    },
    start("inlined-2") {
      note()
      quick(b)  // HOLDS(inlined-2)
      meet(2)
      quick(a)  // WAITS(inlined-2)
      a.unlock()
    })
}

class Account {
  let lock = NSLock()
  var balance = 100
  func send(_ amount: Int, to other: Account) {
    lock.lock()  // HOLDS(payer,payee)
    defer { lock.unlock() }
    meet(2)
    other.lock.lock()  // WAITS(payer,payee)
    defer { other.lock.unlock() }
    balance -= amount
    other.balance += amount
  }
}
func methods() {
  let mine = Account()
  let yours = Account()
  wait(start("payer") { mine.send(5, to: yours) }, start("payee") { yours.send(7, to: mine) })
}

// The last reference goes while another lock is held, and the deinit wants the registry's.
final class Registered {
  deinit {
    a.lock()  // WAITS(dropper)
    a.unlock()
  }
}
func deinits() {
  wait(
    start("dropper") {
      var object: Registered? = Registered()
      b.lock()  // HOLDS(dropper)
      meet(2)
      if object != nil { object = nil }
      b.unlock()
    },
    start("register") {
      a.lock()  // HOLDS(register)
      meet(2)
      b.lock()  // WAITS(register)
      b.unlock()
      a.unlock()
    })
}

func defers() {
  func update() {
    a.lock()  // HOLDS(deferring)
    defer { a.unlock() }
    defer {
      b.lock()  // WAITS(deferring)
      b.unlock()
    }
    meet(2)
  }
  wait(
    start("deferring", update),
    start("other") {
      b.lock()  // HOLDS(other)
      meet(2)
      a.lock()  // WAITS(other)
      a.unlock()
      b.unlock()
    })
}

// A condition wait wants its lock back, and other locks stay held meanwhile.
func nsConditionWait() {
  wait(
    start("waiter") {
      a.lock()  // HOLDS(waiter)
      condition.lock()
      meet(2)
      condition.wait()  // WAITS(waiter)
      condition.unlock()
      a.unlock()
    },
    start("signaller") {
      meet(2)
      condition.lock()  // HOLDS(signaller)
      condition.broadcast()
      a.lock()  // WAITS(signaller)
      a.unlock()
      condition.unlock()
    })
}

// MARK: near misses

func limits() {
  wait(
    start("limited-1") {
      a.lock()
      meet(2)
      if b.lock(before: Date(timeIntervalSinceNow: 1)) { b.unlock() }
      a.unlock()
    },
    start("limited-2") {
      b.lock()
      meet(2)
      if a.lock(before: Date(timeIntervalSinceNow: 1)) { a.unlock() }
      b.unlock()
    })
}
func tries() {
  let hits = Atomic<Int>(0)
  func polite(_ first: NSLock, _ second: NSLock) {
    while hits.load(ordering: .relaxed) < 2000 {
      first.lock()
      if second.try() {
        hits.add(1, ordering: .relaxed)
        second.unlock()
      }
      first.unlock()
    }
  }
  wait(start("polite-1") { polite(a, b) }, start("polite-2") { polite(b, a) })
}
func ordered() {
  func move(_ x: NSLock, _ y: NSLock) {
    let swapped = unsafeBitCast(x, to: UInt.self) > unsafeBitCast(y, to: UInt.self)
    let first = swapped ? y : x
    let second = swapped ? x : y
    for _ in 0..<5000 {
      first.lock()
      second.lock()
      second.unlock()
      first.unlock()
    }
  }
  wait(
    start("mover-1") { move(a, b) }, start("mover-2") { move(b, a) },
    start("mover-3") { move(b, c) }, start("mover-4") { move(c, a) })
}
func idlePool() {
  let jobs = Atomic<Int>(0)
  let done = Atomic<Int>(0)
  for i in 0..<4 {
    start("idle-\(i)") {
      while true {
        condition.lock()
        while jobs.load(ordering: .relaxed) == 0 { condition.wait() }
        jobs.subtract(1, ordering: .relaxed)
        condition.unlock()
        done.add(1, ordering: .sequentiallyConsistent)
      }
    }
  }
  usleep(1_200_000)
  condition.lock()
  jobs.store(6, ordering: .relaxed)
  condition.broadcast()
  condition.unlock()
  while done.load(ordering: .sequentiallyConsistent) < 6 { usleep(1000) }
}
func conditionLock() {
  // With a limit: without one, Foundation of Swift 6.3 traps on Linux in NSCondition.wait(until:).
  let turn = NSConditionLock(condition: 0)
  let limit = Date(timeIntervalSinceNow: 20)
  wait(
    start("even") {
      for i in 0..<500 {
        guard turn.lock(whenCondition: i * 2, before: limit) else { return }
        turn.unlock(withCondition: i * 2 + 1)
      }
    },
    start("odd") {
      for i in 0..<500 {
        guard turn.lock(whenCondition: i * 2 + 1, before: limit) else { return }
        turn.unlock(withCondition: i * 2 + 2)
      }
    })
  print(turn.condition)
}
func queues() {
  let queue = DispatchQueue(label: "work", attributes: .concurrent)
  let group = DispatchGroup()
  let total = Atomic<Int>(0)
  for i in 0..<500 {
    queue.async(group: group) {
      a.withLock { b.withLock { _ = total.add(i, ordering: .relaxed) } }
    }
  }
  group.wait()
  print(total.load(ordering: .relaxed))
}
func tasks() {
  actor Counter {
    var value = 0
    func add(_ amount: Int) { value += amount }
  }
  let counter = Counter()
  let done = DispatchSemaphore(value: 0)
  Task.detached {
    await withTaskGroup(of: Void.self) { group in
      for i in 0..<200 {
        group.addTask {
          a.withLock { _ = place.add(1, ordering: .relaxed) }
          await counter.add(i)
        }
      }
    }
    print(await counter.value)
    done.signal()
  }
  done.wait()
}
func operations() {
  let queue = OperationQueue()
  queue.maxConcurrentOperationCount = 4
  let total = Atomic<Int>(0)
  for _ in 0..<200 {
    queue.addOperation { ra.withLock { ra.withLock { _ = total.add(1, ordering: .relaxed) } } }
  }
  queue.waitUntilAllOperationsAreFinished()
  print(total.load(ordering: .relaxed))
}
func runLoop() {
  let timer = Timer(timeInterval: 0.2, repeats: true) { timer in
    a.withLock { _ = place.add(1, ordering: .relaxed) }
    if place.load(ordering: .relaxed) == 5 { timer.invalidate() }
  }
  RunLoop.main.add(timer, forMode: .default)
  RunLoop.main.run(until: Date(timeIntervalSinceNow: 1.3))
  print(place.load(ordering: .relaxed))
}

let scenarios: KeyValuePairs<String, () -> Void> = [
  "abba": abba, "recursive": recursive, "condition-as-lock": conditionAsLock, "three": three,
  "main-in": mainIn, "self": selfLock, "wrappers": wrappers, "closures": closures,
  "generic": generic, "inlined": inlined, "methods": methods, "deinit": deinits, "defer": defers,
  "condition-wait": nsConditionWait,
  "limits": limits, "tries": tries, "ordered": ordered, "idle-pool": idlePool,
  "condition-lock": conditionLock, "queues": queues, "tasks": tasks, "operations": operations,
  "run-loop": runLoop,
]
guard let wanted = CommandLine.arguments.dropFirst().first,
  let scenario = scenarios.first(where: { $0.key == wanted })
else {
  for (name, _) in scenarios { print(name) }
  exit(2)
}
scenario.value()
print("DONE")
exit(0)
