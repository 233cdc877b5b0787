import Foundation

let scenarios: [String: @Sendable () -> Void] = [
  "abba": {
    let (a, b, meeting) = (NSLock(), NSLock(), Meeting(2))
    thread("cancel") { cancel(a, b, meeting) }
    thread("submit") { submit(a, b, meeting) }
    waitForEver()
  },
  "three": {
    ring(3)
    waitForEver()
  },
  "hundred": {
    ring(100)
    waitForEver()
  },
  "self": {
    let lock = NSLock()
    lock.lock()
    say("again")
    lock.lock()
  },
  "recursive": {
    let (lock, meeting) = (NSRecursiveLock(), Meeting(2))
    for _ in 0..<500 { lock.lock() }
    lock.withLock { lock.withLock {} }
    for _ in 0..<500 { lock.unlock() }
    thread("other") {
      lock.lock()
      meeting.arrive()
      sleep(1)
      lock.unlock()
    }
    meeting.arrive()
    lock.lock()
    lock.unlock()
  },
  "timed": {
    let (a, b, meeting, ended) = (NSLock(), NSLock(), Meeting(2), Meeting(3))
    thread("one") { timed(a, b, meeting, ended) }
    thread("two") { timed(b, a, meeting, ended) }
    ended.arrive()
  },
  "named": {
    let (a, b, meeting) = (NSLock(name: "accounts"), NSRecursiveLock(), Meeting(2))
    b.name = "journal"
    thread("cancel") { takeBoth(a, b, meeting) }
    thread("submit") { takeBoth(b, a, meeting) }
    waitForEver()
  },
  "with": {
    let (a, b, meeting) = (NSLock(), NSLock(), Meeting(2))
    thread("outer") { nested(a, b, meeting) }
    thread("inner") { nested(b, a, meeting) }
    waitForEver()
  },
  "exited": {
    let lock = NSLock()
    let (left, ended) = (Meeting(2), Meeting(2))
    thread("leaver") {
      lock.lock()
      left.arrive()
      ended.arrive()
    }
    left.arrive()
    ended.arrive()
    usleep(100_000)
    lock.lock()
  },
  "handed": {
    // A lock that one thread takes and another gives back, over and over: legal for a normal mutex.
    let (turn, back) = (NSLock(), NSLock())
    back.lock()
    thread("giver") {
      for _ in 0..<2000 {
        back.lock()
        turn.unlock()
      }
    }
    for _ in 0..<2001 {
      turn.lock()
      back.unlock()
    }
    turn.unlock()
  },
  "healthy": healthy,
  "parity": { say(parity()) },
  "parity of dispatch": { say(parityOfQueues(), parityOfGroups(), parityOfMixtures()) },
  "parity of operations": { say(parityOfOperations()) },
  "trap": {
    // Dates that NSLock cannot count in nanoseconds end the program there as well.
    let lock = NSLock()
    lock.lock()
    _ = lock.lock(before: .distantFuture)
  },
  "queues": {
    // libdispatch's workers block most signals.
    let (a, b, meeting) = (NSLock(), NSLock(), Meeting(2))
    DispatchQueue.global().async { cancel(a, b, meeting) }
    DispatchQueue.global().async { submit(a, b, meeting) }
    waitForEver()
  },
  "short": {
    // Locks that come and go at the same addresses.
    for round in 0..<20_000 {
      let lock = round % 2 == 0 ? NSLock() : NSLock(name: "round \(round)")
      lock.lock()
      lock.unlock()
    }
  },
  "blocked": {
    let (a, b, meeting) = (NSLock(), NSLock(), Meeting(2))
    thread("deaf") {
      var all = sigset_t()
      sigfillset(&all)
      pthread_sigmask(SIG_SETMASK, &all, nil)
      takeBoth(a, b, meeting)
    }
    thread("hearing") { takeBoth(b, a, meeting) }
    waitForEver()
  },
  "thousand": {
    ring(1000)
    waitForEver()
  },
  "two": {
    ring(2)
    usleep(500_000)
    ring(2)
    waitForEver()
  },
]

@inline(never) func cancel(_ a: NSLock, _ b: NSLock, _ meeting: Meeting) {
  a.lock()
  meeting.arrive()
  b.lock()
  say("unreachable")
}

@inline(never) func submit(_ a: NSLock, _ b: NSLock, _ meeting: Meeting) {
  b.lock()
  meeting.arrive()
  a.lock()
  say("unreachable")
}

@inline(never) func nested(_ a: NSLock, _ b: NSLock, _ meeting: Meeting) {
  a.withLock {
    meeting.arrive()
    b.withLock { say("unreachable") }
  }
}

@inline(never) func timed(_ a: NSLock, _ b: NSLock, _ meeting: Meeting, _ ended: Meeting) {
  a.lock()
  meeting.arrive()
  let isTaken = b.lock(before: Date(timeIntervalSinceNow: 0.7))
  // On a slow machine the other thread has given it back by now.
  let again = b.lock(before: Date())
  let tried = b.try()
  say(isTaken, again, tried)
  for taken in [isTaken, again, tried] where taken { b.unlock() }
  a.unlock()
  ended.arrive()
}

func ring(_ count: Int) {
  let (locks, meeting) = ((0..<count).map { _ in NSLock() }, Meeting(count))
  for index in 0..<count {
    thread("ring \(index)") { takeBoth(locks[index], locks[(index + 1) % count], meeting) }
  }
}
