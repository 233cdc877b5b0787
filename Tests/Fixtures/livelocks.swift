// WITH(support.swift)
// Two threads that fail in turn to take what the other one holds, over each kind of lock, and what looks
// like it.
import Foundation
import Synchronization

@main enum Livelocks {
  static func main() {
    play([
      "tries": tries, "timed": timed, "recursive": recursive, "permits": permits,
      "mutexes": mutexes, "brief": brief, "lucky": lucky, "lucky-mutexes": luckyMutexes,
      "other-way-mutexes": otherWayMutexes, "lucky-permits": luckyPermits, "signals": signals,
      "mailboxes": mailboxes,
    ])
  }
}

/// Two threads go through it in step; no call that is watched says so.
final class Steps: Sendable {
  private let arrived = Atomic<Int>(0)
  private let round = Atomic<Int>(0)
  func callAsFunction() {
    let now = round.load(ordering: .sequentiallyConsistent)
    if arrived.add(1, ordering: .sequentiallyConsistent).newValue == 2 {
      arrived.store(0, ordering: .sequentiallyConsistent)
      round.add(1, ordering: .sequentiallyConsistent)
      return
    }
    while round.load(ordering: .sequentiallyConsistent) == now { usleep(500) }
  }
}
let step = Steps()

/// What both do in every round, `own` being 0 or 1: hold their own, try for the other's within. Now and
/// then, where `isLucky`, one holds nothing, so that the other one gets on.
func inStep(
  seconds: Double = 2.5, isLucky: Bool = false,
  _ round: @escaping (_ own: Int, _ within: () -> Void) -> Void
) {
  let end = Date(timeIntervalSinceNow: seconds)
  let isOver = Flag()
  func live(_ own: Int) {
    var number = 0
    while !isOver.isSet {
      if isLucky, number % 10 == 9 - own {
        step()
        step()
      } else {
        round(own, step.callAsFunction)
      }
      step()
      if own == 0, Date() > end { isOver.set() }
      number += 1
      step()
    }
  }
  let ann = start("ann") { live(0) }
  let ben = start("ben") { live(1) }
  watch(ann, ben)
}

func tries() {
  let locks = [NSLock(), NSLock()]
  inStep { own, within in
    locks[own].lock()  // HOLDS(tries:ann,tries:ben)
    within()
    if locks[1 - own].try() { locks[1 - own].unlock() }  // WAITS(tries:ann,tries:ben)
    within()
    locks[own].unlock()
  }
}

func brief() {
  let locks = [NSLock(), NSLock()]
  inStep(seconds: 0.3) { own, within in
    locks[own].lock()
    within()
    if locks[1 - own].try() { locks[1 - own].unlock() }
    within()
    locks[own].unlock()
  }
}

func timed() {
  let locks = [NSLock(), NSLock()]
  inStep { own, within in
    locks[own].lock()
    within()
    let soon = Date(timeIntervalSinceNow: 0.03)
    let got = locks[1 - own].lock(before: soon)  // WAITS(timed:ann,timed:ben)
    if got { locks[1 - own].unlock() }
    within()
    locks[own].unlock()
  }
}

func recursive() {
  let locks = [NSRecursiveLock(), NSRecursiveLock()]
  inStep { own, within in
    locks[own].lock()
    locks[own].lock()
    within()
    if locks[1 - own].try() { locks[1 - own].unlock() }  // WAITS(recursive:ann,recursive:ben)
    within()
    locks[own].unlock()
    locks[own].unlock()
  }
}

/// Semaphores in the place of locks.
func permits() { withPermits(isLucky: false) }
func luckyPermits() { withPermits(isLucky: true) }
func withPermits(isLucky: Bool) {
  let permits = [DispatchSemaphore(value: 1), DispatchSemaphore(value: 1)]
  inStep(isLucky: isLucky) { own, within in
    permits[own].wait()  // HOLDS(permits:ann,permits:ben)
    within()
    let soon = DispatchTime.now() + 0.03
    let got = permits[1 - own].wait(timeout: soon)
    if got == .success { permits[1 - own].signal() }
    within()
    permits[own].signal()
  }
}

final class Values: Sendable {
  let first = Mutex(0)
  let second = Mutex(0)
}
func mutexes() { withMutexes(isLucky: false) }
func luckyMutexes() { withMutexes(isLucky: true) }
func withMutexes(isLucky: Bool) {
  let values = Values()
  inStep(isLucky: isLucky) { own, within in
    if own == 0 {
      values.first.withLock { _ in
        within()
        _ = values.second.withLockIfAvailable { $0 += 1 }  // WAITS(mutexes:ann)
        within()
      }
    } else {
      values.second.withLock { _ in
        within()
        _ = values.first.withLockIfAvailable { $0 += 1 }  // WAITS(mutexes:ben)
        within()
      }
    }
  }
}

/// Whoever fails begins with the other one the next time, and gets both.
func otherWayMutexes() {
  let values = Values()
  let end = Date(timeIntervalSinceNow: 2.5)
  func live(_ isFirst: Bool) {
    var isFirst = isFirst
    while Date() < end {
      let hasBoth =
        isFirst
        ? values.first.withLock { _ in
          pause(1)
          return values.second.withLockIfAvailable { $0 += 1 } != nil
        }
        : values.second.withLock { _ in
          pause(1)
          return values.first.withLockIfAvailable { $0 += 1 } != nil
        }
      if !hasBoth { isFirst.toggle() }
    }
  }
  let ann = start("ann") { live(true) }
  let ben = start("ben") { live(false) }
  watch(ann, ben)
}

func lucky() {
  let locks = [NSLock(), NSLock()]
  inStep(isLucky: true) { own, within in
    locks[own].lock()
    within()
    if locks[1 - own].try() { locks[1 - own].unlock() }
    within()
    locks[own].unlock()
  }
}

/// A semaphore that is no lock: both look for a signal that comes late.
func signals() {
  let signals = [DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)]
  inStep { own, within in
    within()
    _ = signals[1 - own].wait(timeout: .now() + 0.02)
    within()
  }
  for signal in signals { signal.signal() }
}

/// Two mailboxes at which both look in vain; each has got something from another one once.
func mailboxes() {
  let mailboxes = [DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)]
  let sender = start("sender") { for mailbox in mailboxes { mailbox.signal() } }
  watch(sender)
  let hasLooked = [Flag(), Flag()]
  inStep { own, within in
    if !hasLooked[own].isSet { mailboxes[own].wait() }
    hasLooked[own].set()
    within()
    _ = mailboxes[1 - own].wait(timeout: .now() + 0.02)
    within()
  }
}
