// WITH(support.swift)
// Locks and queues used as they must not be, with or without a hang; the first argument says how. For
// each there is a scenario `right-…` that does nearly the same and is right.
import Foundation

@main enum Wrongs {
  static func main() {
    play([
      "foreign": foreign, "right-foreign": rightForeign, "unlocked": unlocked,
      "deinit": deinited, "right-deinit": rightDeinit, "recursive-foreign": recursiveForeign,
      "exit-held": exitHeld, "right-exit": rightExit,
      "barrier-global": barrierGlobal, "right-barrier": rightBarrier,
      "over-resumed": overResumed, "resume-self": resumeSelf,
      "released-suspended": releasedSuspended, "released-source": releasedSource,
      "released-inactive": releasedInactive, "target-cycle": targetCycle,
      "item-twice": itemTwice, "right-item": rightItem, "right-precondition": rightPrecondition,
      "write-twice": writeTwice, "right-write": rightWrite,
    ])
  }
}

// MARK: locks

/// One thread locks, another one unlocks while the first is still at it.
func foreign() {
  let lock = NSLock()
  let isLocked = Flag()
  let isUnlocked = Flag()
  let owner = start("owner") {
    lock.lock()
    isLocked.set()
    isUnlocked.poll()
  }
  start("stranger") {
    isLocked.poll()
    lock.unlock()
    isUnlocked.set()
  }
  watch(owner)
}
func rightForeign() {
  let lock = NSLock()
  let isLocked = Flag()
  let owner = start("owner") {
    lock.lock()
    isLocked.set()
    pause(2700)
    lock.unlock()
  }
  isLocked.poll()
  lock.lock()
  lock.unlock()
  watch(owner)
}

func unlocked() {
  let lock = NSLock()
  lock.lock()
  lock.unlock()
  lock.unlock()
}

/// The object goes with its lock held.
final class Guarded {
  private let lock = NSLock()
  private var value = 0
  func begin() { lock.lock() }
  func end() { lock.unlock() }
}
func deinited() {
  for _ in 0..<3 {
    let guarded = Guarded()
    guarded.begin()
  }
  pause(50)
}
func rightDeinit() {
  for _ in 0..<3000 {
    let guarded = Guarded()
    guarded.begin()
    guarded.end()
  }
}

func recursiveForeign() {
  let lock = NSRecursiveLock()
  let isLocked = Flag()
  let isOver = Flag()
  let owner = start("owner") {
    lock.lock()
    isLocked.set()
    isOver.poll()
    lock.unlock()
  }
  start("stranger") {
    isLocked.poll()
    lock.unlock()
    isOver.set()
  }
  watch(owner)
}

/// A thread returns early, past its unlock, and ends.
func exitHeld() {
  let lock = NSLock()
  func work(_ valid: Bool) {
    lock.lock()
    guard valid else { return }
    lock.unlock()
  }
  watch(start("careless") { work(false) })
  pause(200)
}
func rightExit() {
  let lock = NSLock()
  func work(_ valid: Bool) {
    lock.lock()
    defer { lock.unlock() }
    guard valid else { return }
  }
  for i in 0..<20 { watch(start("careful") { work(i % 2 == 0) }) }
}

// MARK: queues

/// A global queue is everybody's: a barrier on it is none.
func barrierGlobal() {
  let group = DispatchGroup()
  var total = 0
  DispatchQueue.global().async(group: group, flags: .barrier) { total += 1 }
  group.wait()
  DispatchQueue.global().sync(flags: .barrier) { total += 1 }
}
func rightBarrier() {
  let group = DispatchGroup()
  let queue = DispatchQueue(label: "own", attributes: .concurrent, target: .global())
  var total = 0
  queue.async(group: group, flags: .barrier) { total += 1 }
  group.wait()
  queue.sync(flags: .barrier) { total += 1 }
  // On a serial queue it says nothing new, and does no harm.
  DispatchQueue(label: "serial").sync(flags: .barrier) { total += 1 }
  print(total)
}

func overResumed() {
  let queue = DispatchQueue(label: "twice")
  queue.suspend()
  queue.resume()
  queue.resume()
}

/// What would resume the queue stands in it.
func resumeSelf() {
  let queue = DispatchQueue(label: "sleeper")
  queue.suspend()
  queue.async { queue.resume() }
  queue.sync { print("awake") }  // WAITS(resume-self:main)
}

func releasedSuspended() {
  func forget() {
    let queue = DispatchQueue(label: "forgotten")
    queue.suspend()
  }
  forget()
  pause(100)
}

func releasedSource() {
  func forget() {
    let timer = DispatchSource.makeTimerSource(queue: .global())
    timer.setEventHandler {}
    timer.schedule(deadline: .now() + 10)
    timer.resume()
    timer.suspend()
  }
  forget()
  pause(100)
}

func releasedInactive() {
  func forget() { _ = DispatchQueue(label: "inactive", attributes: .initiallyInactive) }
  forget()
  pause(100)
}

func targetCycle() {
  let a = DispatchQueue(label: "a")
  let b = DispatchQueue(label: "b", target: a)
  a.setTarget(queue: b)
  b.async { print("never") }
  pause(200)
}

/// A work item has one waiter at most.
func itemTwice() {
  let item = DispatchWorkItem { pause(1000) }
  DispatchQueue.global().async(execute: item)
  start("first") { item.wait() }
  pause(200)
  item.wait()
}
func rightItem() {
  let item = DispatchWorkItem { pause(300) }
  let told = DispatchGroup()
  for _ in 0..<3 {
    told.enter()
    item.notify(queue: .global()) { told.leave() }
  }
  DispatchQueue.global().async(execute: item)
  item.wait()
  told.wait()
}

func rightPrecondition() {
  let queue = DispatchQueue(label: "checked")
  dispatchPrecondition(condition: .notOnQueue(queue))
  queue.sync { dispatchPrecondition(condition: .onQueue(queue)) }
  print("checked")
}

// MARK: a write lock

/// The second write lock is refused, nobody looks, and the first unlock lets others in.
func writeTwice() {
  let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
  pthread_rwlock_init(lock, nil)
  func change(_ depth: Int) {
    pthread_rwlock_wrlock(lock)
    if depth > 0 { change(depth - 1) }
    pthread_rwlock_unlock(lock)
  }
  watch(start("changer") { change(1) })
}
/// Who looks at the answer knows what to do.
func rightWrite() {
  let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
  pthread_rwlock_init(lock, nil)
  func change(_ depth: Int) {
    let isMine = pthread_rwlock_wrlock(lock) == 0
    if depth > 0 { change(depth - 1) }
    if isMine { pthread_rwlock_unlock(lock) }
  }
  watch(start("changer") { change(1) })
}
