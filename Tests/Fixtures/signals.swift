// WITH(support.swift)
// Conditions whose signal was lost, or never comes, or is guarded wrongly; the first argument says
// which.
import Foundation

@main enum Signals {
  static func main() {
    play([
      "early": early, "bare": bare, "one-of-two": oneOfTwo, "wrong-one": wrongOne,
      "state": state, "state-lost": stateLost, "state-lock": stateLock, "two-locks": twoLocks,
      "held": held, "queue": queue, "both-wait": bothWait, "unlocked": unlocked, "raw-two": rawTwo,
      "starved": starved,
    ])
  }
}

/// The signal comes before the wait, and nothing remembers it.
func early() {
  let condition = NSCondition()
  let loader = start("loader") {
    condition.lock()
    condition.signal()
    condition.unlock()
  }
  watch(loader)
  condition.lock()
  condition.wait()  // WAITS(early:main)
  condition.unlock()
}

/// The same by broadcast, with several who come late.
func bare() {
  let condition = NSCondition()
  let all = DispatchGroup()
  condition.lock()
  condition.broadcast()
  condition.unlock()
  for i in 0..<3 {
    all.enter()
    start("late-\(i)") {
      condition.lock()
      condition.wait()  // WAITS(late-*)
      condition.unlock()
      all.leave()
    }
  }
  all.wait()  // WAITS(bare:main)
}

/// Two wait, and one signal is all that ever comes.
func oneOfTwo() {
  let condition = NSCondition()
  var isOpen = false
  let all = DispatchGroup()
  for i in 0..<2 {
    all.enter()
    start("guest-\(i)") {
      condition.lock()
      while !isOpen { condition.wait() }  // WAITS(guest-*)
      condition.unlock()
      all.leave()
    }
  }
  pause(100)
  condition.lock()
  isOpen = true
  condition.signal()
  condition.unlock()
  all.wait()  // WAITS(one-of-two:main)
}

/// One condition for two questions: the signal wakes whom it does not concern.
func wrongOne() {
  let condition = NSCondition()
  var (items, room) = (0, 0)
  let all = DispatchGroup()
  all.enter()
  start("producer") {
    condition.lock()
    while room == 0 { condition.wait() }  // WAITS(producer)
    condition.unlock()
    all.leave()
  }
  pause(300)
  all.enter()
  start("consumer") {
    condition.lock()
    while items == 0 { condition.wait() }  // WAITS(consumer)
    room += 1
    condition.signal()
    condition.unlock()
    all.leave()
  }
  pause(300)
  condition.lock()
  items += 1
  condition.signal()
  condition.unlock()
  all.wait()  // WAITS(wrong-one:main)
}

// MARK: NSConditionLock

/// Waits for a state that nobody sets.
func state() {
  let lock = NSConditionLock(condition: 0)
  let worker = start("worker") {
    lock.lock(whenCondition: 0)
    lock.unlock(withCondition: 1)
  }
  watch(worker)
  lock.lock(whenCondition: 2)  // WAITS(state:main)
  lock.unlock()
}

/// A state that was there and is gone before anybody looked.
func stateLost() {
  let lock = NSConditionLock(condition: 0)
  lock.lock()
  lock.unlock(withCondition: 1)
  lock.lock()
  lock.unlock(withCondition: 0)
  let late = start("late") {
    lock.lock(whenCondition: 1)  // WAITS(late)
    lock.unlock()
  }
  lock.lock(whenCondition: 1)  // WAITS(state-lost:main)
  lock.unlock()
  watch(late)
}

/// Who would set the state waits for a lock that the one who waits for it holds.
func stateLock() {
  let (lock, other) = (NSConditionLock(condition: 0), NSLock())
  start("setter") {
    meet(2)
    other.lock()  // WAITS(setter)
    lock.lock()
    lock.unlock(withCondition: 1)
    other.unlock()
  }
  other.lock()  // HOLDS(state-lock:main)
  meet(2)
  lock.lock(whenCondition: 1)  // WAITS(state-lock:main)
  lock.unlock()
  other.unlock()
}

func twoLocks() {
  let (a, b) = (NSConditionLock(condition: 0), NSConditionLock(condition: 0))
  watch(
    start("left") {
      a.lock()  // HOLDS(left)
      meet(2)
      b.lock()  // WAITS(left)
      b.unlock()
      a.unlock()
    },
    start("right") {
      b.lock()  // HOLDS(right)
      meet(2)
      a.lock()  // WAITS(right)
      a.unlock()
      b.unlock()
    })
}

// MARK: what a wait does not give back

/// The wait gives its own lock back, and not the other one, which the signaller needs.
func held() {
  let (condition, outer) = (NSCondition(), NSLock())
  var isReady = false
  start("signaller") {
    meet(2)
    outer.lock()  // WAITS(signaller)
    condition.lock()
    isReady = true
    condition.signal()
    condition.unlock()
    outer.unlock()
  }
  outer.lock()  // HOLDS(held:main)
  condition.lock()
  meet(2)
  while !isReady { condition.wait() }  // WAITS(held:main)
  condition.unlock()
  outer.unlock()
}

/// The signaller is queued behind the one who waits.
func queue() {
  let queue = DispatchQueue(label: "mailbox")
  let condition = NSCondition()
  var letters = 0
  let isDone = DispatchSemaphore(value: 0)
  queue.async {
    call("receiver")
    condition.lock()
    while letters == 0 { condition.wait() }  // WAITS(receiver)
    condition.unlock()
    isDone.signal()
  }
  queue.async {
    condition.lock()
    letters += 1
    condition.signal()
    condition.unlock()
  }
  isDone.wait()  // WAITS(queue:main)
}

/// Each waits before it signals.
func bothWait() {
  let (one, two) = (NSCondition(), NSCondition())
  var (a, b) = (false, false)
  start("second") {
    two.lock()
    while !b { two.wait() }  // WAITS(second)
    two.unlock()
    one.lock()
    a = true
    one.signal()
    one.unlock()
  }
  one.lock()
  while !a { one.wait() }  // WAITS(both-wait:main)
  one.unlock()
  two.lock()
  b = true
  two.signal()
  two.unlock()
}

// MARK: guarded wrongly

/// The flag is set and signalled without the lock, between the question and the wait.
func unlocked() {
  let condition = NSCondition()
  let (asked, told) = (Flag(), Flag())
  start("setter") {
    asked.poll()
    condition.signal()
    told.set()
  }
  condition.lock()
  asked.set()
  told.poll()
  condition.wait()  // WAITS(unlocked:main)
  condition.unlock()
}

/// One condition of pthread's, waited on with two mutexes.
func rawTwo() {
  let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  let mutexes = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 2)
  pthread_cond_init(condition, nil)
  pthread_mutex_init(mutexes, nil)
  pthread_mutex_init(mutexes + 1, nil)
  let threads = (0..<2).map { i in
    start("waiter-\(i)") {
      pthread_mutex_lock(mutexes + i)
      meet(2)
      pthread_cond_wait(condition, mutexes + i)
      pthread_mutex_unlock(mutexes + i)
    }
  }
  pause(200)
  pthread_cond_broadcast(condition)
  watch(threads[0], threads[1])
}

/// All workers of a pool wait for a job of which each would be a part.
func starved() {
  let condition = NSCondition()
  var jobs: [() -> Void] = []
  func next() -> () -> Void {
    condition.lock()
    while jobs.isEmpty { condition.wait() }
    let job = jobs.removeFirst()
    condition.unlock()
    return job
  }
  func submit(_ job: @escaping () -> Void) {
    condition.lock()
    jobs.append(job)
    condition.signal()
    condition.unlock()
  }
  for i in 0..<2 { start("pool-\(i)") { while true { next()() } } }
  let all = DispatchGroup()
  for _ in 0..<2 {
    all.enter()
    submit {
      meet(2)
      let part = DispatchSemaphore(value: 0)
      submit { part.signal() }
      part.wait()  // WAITS(pool-*)
      all.leave()
    }
  }
  all.wait()  // WAITS(starved:main)
}
