// WITH(support.swift)
// Circles through several kinds of resource at once; the first argument says which. Threads that only
// wait behind a circle are called victim-N: they are no part of it.
import Foundation
import Synchronization

@main enum Mixes {
  static func main() {
    play([
      "four": four, "four-main": fourMain, "four-two": fourTwo, "five": five, "six": six,
      "join": join, "rwlock": rwlock, "barrier": barrier, "condition": condition,
      "operation": operation, "perform": perform, "task": task,
      "two-circles": twoCircles, "shared": shared, "logger": logger, "shutdown": shutdown,
    ])
  }
}

let lock = NSLock()
let queue = DispatchQueue(label: "mix.queue")
let group = DispatchGroup()
let semaphore = DispatchSemaphore(value: 0)

// MARK: a lock, a queue, a once, a group

/// locker: holds the lock, wants the queue · queuer: runs on the queue, wants the value · maker: makes
/// the value, waits for the group · member: of the group, wants the lock.
enum Made {
  static let value: Int = {  // HOLDS(maker)
    meet(4)
    group.wait()  // WAITS(maker)
    return 1
  }()
}
func fourThreads() -> [Thread] {
  let locker = start("locker") {
    lock.lock()  // HOLDS(locker)
    meet(4)
    queue.sync {}  // WAITS(locker)
    lock.unlock()
  }
  queue.async {
    call("queuer")
    meet(4)
    print(Made.value)  // WAITS(queuer)
  }
  DispatchQueue.global().async(group: group) {
    call("member")
    meet(4)
    lock.lock()  // WAITS(member)
    lock.unlock()
  }
  let maker = start("maker") { print(Made.value) }
  return [locker, maker]
}
func four() {
  let threads = fourThreads()
  pause(150)
  start("victim-0") {
    lock.lock()
    lock.unlock()
  }
  start("victim-1") { queue.sync {} }
  start("victim-2") { print(Made.value) }
  start("victim-3") { group.wait() }
  watch(threads[0], threads[1])
}

/// The same, and the main thread waits behind it for good.
func fourMain() {
  _ = fourThreads()
  pause(150)
  start("victim-0") { print(Made.value) }
  group.wait()
}

/// Two threads are enough, each in two of them.
enum Pair {
  static let value: Int = {  // HOLDS(opener)
    meet(2)
    queue.sync {}  // WAITS(opener)
    return 1
  }()
}
func fourTwo() {
  DispatchQueue.global().async(group: group) {
    call("opener")
    lock.lock()
    print(Pair.value)
    lock.unlock()
  }
  watch(
    start("closer") {
      queue.sync {  // HOLDS(closer)
        meet(2)
        group.wait()  // WAITS(closer)
      }
    })
}

// MARK: more kinds

final class Shelf: Sendable {
  let books = Mutex(0)
}
let shelf = Shelf()
let readWrite = {
  let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
  pthread_rwlock_init(lock, nil)
  return lock
}()

/// A lock, a mutex value, a concurrent queue's barrier, a read-write lock, a recursive lock.
func five() {
  let table = DispatchQueue(label: "mix.table", attributes: .concurrent)
  let recursive = NSRecursiveLock()
  let rw = readWrite
  watch(
    start("one") {
      lock.lock()  // HOLDS(one)
      meet(5)
      shelf.books.withLock { $0 += 1 }  // WAITS(one)
    },
    start("two") {
      shelf.books.withLock { _ in
        meet(5)
        table.sync(flags: .barrier) {}  // WAITS(two)
      }
    },
    start("three") {
      table.sync {  // HOLDS(three)
        meet(5)
        pthread_rwlock_wrlock(rw)  // WAITS(three)
      }
    },
    start("four") {
      pthread_rwlock_rdlock(rw)  // HOLDS(four)
      meet(5)
      recursive.lock()  // WAITS(four)
    },
    start("five") {
      recursive.lock()  // HOLDS(five)
      meet(5)
      lock.lock()  // WAITS(five)
    })
}

/// Nobody can wake anybody: a semaphore, a group, a condition, an operation, a lock, a join.
func six() {
  let condition = NSCondition()
  let operations = OperationQueue()
  var isReady = false
  let operation = BlockOperation {
    call("operator")
    meet(4)
    semaphore.wait()  // WAITS(operator)
  }
  operations.addOperation(operation)
  group.enter()
  start("grouper") {
    meet(4)
    condition.lock()
    while !isReady { condition.wait() }  // WAITS(grouper)
    condition.unlock()
    group.leave()
  }
  start("signaller") {
    meet(4)
    group.wait()  // WAITS(signaller)
    semaphore.signal()
  }
  meet(4)
  operation.waitUntilFinished()  // WAITS(six:main)
  condition.lock()
  isReady = true
  condition.signal()
  condition.unlock()
}

/// A join under a lock, and the joined thread waits for a group of blocks that want the lock.
func join() {
  var thread = pthread_t()
  lock.lock()  // HOLDS(join:main)
  pthread_create(
    &thread, nil,
    { _ in
      call("joined")
      DispatchQueue.global().async(group: group) {
        call("guest")
        lock.lock()  // WAITS(guest)
        lock.unlock()
      }
      group.wait()  // WAITS(joined)
      return nil
    }, nil)
  pthread_join(thread, nil)  // WAITS(join:main)
  lock.unlock()
}

/// A reader syncs onto a queue whose block wants to write.
func rwlock() {
  let rw = readWrite
  watch(
    start("reader") {
      pthread_rwlock_rdlock(rw)  // HOLDS(reader)
      meet(2)
      queue.sync {}  // WAITS(reader)
      pthread_rwlock_unlock(rw)
    },
    start("writer") {
      queue.sync {  // HOLDS(writer)
        meet(2)
        pthread_rwlock_wrlock(rw)  // WAITS(writer)
        pthread_rwlock_unlock(rw)
      }
    })
}

/// A barrier of pthread's for three: the third waits for a lock that one of the two holds.
func barrier() {
  let place = UnsafeMutablePointer<pthread_barrier_t>.allocate(capacity: 1)
  pthread_barrier_init(place, nil, 3)
  start("early") {
    lock.lock()  // HOLDS(early)
    meet(2)
    pthread_barrier_wait(place)  // WAITS(early)
    lock.unlock()
  }
  start("late") {
    meet(2)
    lock.lock()  // WAITS(late)
    lock.unlock()
    pthread_barrier_wait(place)
  }
  pthread_barrier_wait(place)  // WAITS(barrier:main)
}

/// A condition's wait on a serial queue that keeps the one block away that would signal.
func condition() {
  let condition = NSCondition()
  var isReady = false
  start("preparer") {
    meet(2)
    queue.sync {  // WAITS(preparer)
      condition.lock()
      isReady = true
      condition.signal()
      condition.unlock()
    }
  }
  queue.sync {  // HOLDS(condition:main)
    condition.lock()
    meet(2)
    while !isReady { condition.wait() }  // WAITS(condition:main)
    condition.unlock()
  }
}

/// An operation waits for the queue whose block waits for the operation, with a lock in between.
func operation() {
  let operations = OperationQueue()
  let work = BlockOperation {
    call("operator")
    meet(2)
    lock.lock()  // WAITS(operator)
    lock.unlock()
  }
  watch(
    start("owner") {
      lock.lock()  // HOLDS(owner)
      operations.addOperation(work)
      meet(2)
      queue.sync {
        work.waitUntilFinished()  // WAITS(owner)
      }
      lock.unlock()
    })
}

/// Iterations hold locks and want each other's, the queue's block waits for all of them.
func perform() {
  let locks = (0..<2).map { _ in NSLock() }
  let rendezvous = Meeting()
  queue.async {
    DispatchQueue.concurrentPerform(iterations: 2) { i in
      call("iteration-\(i)")
      locks[i].lock()  // HOLDS(iteration-*)
      rendezvous(2)
      locks[1 - i].lock()  // WAITS(iteration-*)
    }
  }
  pause(100)
  start("victim-0") { queue.sync {} }
  while true { pause(50) }
}

/// A task holds an actor and waits for a thread; the thread waits for the actor under a lock, for
/// which a queue waits, onto which the task's signaller syncs.
actor Host {
  func serve() {
    call("host")
    meet(3)
    waitSemaphore()
  }
  nonisolated func waitSemaphore() {
    semaphore.wait()  // WAITS(host)
  }
  func ping() {}
}
func task() {
  let host = Host()
  Task.detached { await host.serve() }
  start("asker") {
    lock.lock()  // HOLDS(asker)
    meet(3)
    let answered = DispatchSemaphore(value: 0)
    Task.detached {
      await host.ping()
      answered.signal()
    }
    answered.wait()  // WAITS(asker)
    lock.unlock()
  }
  queue.async {
    call("taker")
    meet(3)
    lock.lock()  // WAITS(taker)
    lock.unlock()
  }
  pause(150)
  queue.sync {}  // WAITS(task:main)
  semaphore.signal()
}

// MARK: more than one

func pair(_ names: [String], _ a: NSLock, _ b: DispatchQueue, _ meeting: Meeting) {
  start(names[0]) {
    a.lock()  // HOLDS(red,blue)
    meeting(2)
    b.sync {}  // WAITS(red,blue)
  }
  start(names[1]) {
    b.sync {  // HOLDS(green,black)
      meeting(2)
      a.lock()  // WAITS(green,black)
    }
  }
}

/// Two circles that have nothing to do with each other.
func twoCircles() {
  pair(["red", "green"], lock, queue, Meeting())
  pair(["blue", "black"], NSLock(), DispatchQueue(label: "mix.other"), Meeting())
  while true { pause(50) }
}

/// One thread holds what two circles need; it waits in one of them only.
func shared() {
  let other = DispatchQueue(label: "mix.other")
  start("hub") {
    lock.lock()  // HOLDS(hub)
    meet(2)
    queue.sync {}  // WAITS(hub)
  }
  start("spoke") {
    queue.sync {  // HOLDS(spoke)
      meet(2)
      lock.lock()  // WAITS(spoke)
    }
  }
  pause(100)
  start("victim-0") {
    other.sync {
      pause(50)
      lock.lock()
    }
  }
  start("victim-1") { other.sync {} }
  while true { pause(50) }
}

// MARK: from life

/// A logger writes on its queue and flushes under its lock; what it logs describes itself under the
/// lock of a model, whose changes are logged.
func logger() {
  let flush = NSRecursiveLock()
  let model = DispatchQueue(label: "model")
  func log(_ text: @escaping () -> String) {
    flush.lock()  // HOLDS(flusher) WAITS(changer)
    defer { flush.unlock() }
    print(text())
  }
  watch(
    start("flusher") {
      log {
        meet(2)
        return model.sync { "model" }  // WAITS(flusher)
      }
    },
    start("changer") {
      model.sync {  // HOLDS(changer)
        meet(2)
        pause(30)
        log { "changed" }  // WAITS(changer)
      }
    })
}

/// Shutting down on the main queue waits for workers that report to the main queue.
func shutdown() {
  for i in 0..<3 {
    DispatchQueue.global().async(group: group) {
      call("worker-\(i)")
      pause(80)
      DispatchQueue.main.sync { print("worker ended") }  // WAITS(worker-*)
    }
  }
  DispatchQueue.main.async {
    group.wait()  // WAITS(shutdown:main)
    done()
  }
  RunLoop.main.run()
}
