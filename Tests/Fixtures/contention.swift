// WITH(support.swift)
// Threads that want permits at the same moment, in all ways that there are; the first argument says
// which. Says what it counted: a permit that is lost or made up ends in another number, or nowhere.
import Foundation
import Synchronization

@main enum Contention {
  static func main() { play(["permits": permits, "handed": handed]) }
}

let inside = Atomic<Int>(0)
let most = Atomic<Int>(0)

/// No more than two at a time, and in the end there are two permits.
func permits() {
  let limiter = DispatchSemaphore(value: 2)
  let threads = (0..<4).map { number in
    start("taker-\(number)") {
      for round in 0..<20_000 {
        switch (round + number) % 3 {
        case 0: limiter.wait()
        case 1: while limiter.wait(timeout: .now()) == .timedOut { sched_yield() }
        default: while limiter.wait(timeout: .now() + 0.0001) == .timedOut {}
        }
        let count = inside.add(1, ordering: .relaxed).newValue
        if count > most.load(ordering: .relaxed) { most.store(count, ordering: .relaxed) }
        if round % 64 == 0 { sched_yield() }
        inside.subtract(1, ordering: .relaxed)
        limiter.signal()
      }
    }
  }
  watch(threads[0], threads[1], threads[2], threads[3])
  var left = 0
  while limiter.wait(timeout: .now()) == .success { left += 1 }
  for _ in 0..<left { limiter.signal() }
  print("at most two inside:", most.load(ordering: .relaxed) <= 2, "permits left:", left)
}

/// Two threads hand over what two others wait for, and one that only tries takes some of it.
func handed() {
  let made = DispatchSemaphore(value: 0)
  let tried = Atomic<Int>(0)
  let hasEnded = Atomic<Bool>(false)
  let trier = start("trier") {
    while !hasEnded.load(ordering: .acquiring) {
      // What it takes it gives back.
      guard made.wait(timeout: .now()) == .success else { continue }
      tried.add(1, ordering: .relaxed)
      made.signal()
    }
  }
  let makers = (0..<2).map { number in
    start("maker-\(number)") { for _ in 0..<20_000 { made.signal() } }
  }
  let takers = (0..<2).map { number in
    start("taker-\(number)") { for _ in 0..<20_000 { made.wait() } }
  }
  watch(makers[0], makers[1], takers[0], takers[1])
  hasEnded.store(true, ordering: .releasing)
  watch(trier)
  print("left:", made.wait(timeout: .now()) == .success)
}
