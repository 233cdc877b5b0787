// WITH(support.swift)
// Pools whose threads are all blocked while the main thread lives on, and what looks like it.
import Foundation
import Synchronization

@main enum Pools {
  static func main() {
    play([
      "cooperative": cooperative, "actor": actorBehind, "global": global, "short": short,
      "exact": exact, "busy": busy, "sleepers": sleepers, "locked": locked, "one": one,
      "sleeper": sleeper, "hops": hops, "moments": moments,
    ])
  }
}

let gate = DispatchSemaphore(value: 0)
let many = ProcessInfo.processInfo.activeProcessorCount + 6

/// The main thread has something to do all the time.
func live(_ milliseconds: Int) { for _ in 0..<milliseconds / 20 { pause(20) } }
func open(_ count: Int) { for _ in 0..<count { gate.signal() } }

/// async code that blocks is what this is about.
@available(*, noasync)
func block() { gate.wait() }
func blocked() { block() }

func cooperative() {
  for _ in 0..<many { Task.detached { blocked() } }
  live(6000)
  open(many)
}

/// An actor's turn waits for a thread of the pool.
func actorBehind() {
  actor Counter {
    var count = 0
    func add() { count += 1 }
  }
  let counter = Counter()
  for _ in 0..<many - 6 { Task.detached { blocked() } }
  live(200)
  for _ in 0..<3 { Task.detached { await counter.add() } }
  live(6000)
  open(many)
}

func global() {
  for _ in 0..<40 { DispatchQueue.global().async { gate.wait() } }
  live(18_000)
  open(40)
}

/// One of them only.
func one() {
  Task.detached { blocked() }
  live(5000)
  open(1)
}

func nap() { sleep(5) }
func sleeper() {
  Task.detached { nap() }
  live(6000)
}

/// Awaits, which blocks nobody.
func hops() {
  actor Counter {
    var count = 0
    func add() async {
      try? await Task.sleep(for: .milliseconds(4500))
      count += 1
    }
  }
  let counter = Counter()
  for _ in 0..<3 { Task.detached { await counter.add() } }
  live(6000)
}

/// A lock, for milliseconds each time.
func moments() {
  let lock = NSLock()
  let end = Flag()
  func use() {
    lock.lock()
    usleep(3000)
    lock.unlock()
  }
  for _ in 0..<2 { Task.detached { while !end.isSet { use() } } }
  live(6000)
  end.set()
}

func short() {
  for _ in 0..<many { Task.detached { blocked() } }
  live(800)
  open(many)
  live(2000)
}

/// Nothing is queued behind them.
func exact() {
  for _ in 0..<many - 6 { Task.detached { blocked() } }
  live(4000)
  open(many)
}

func busy() {
  for _ in 0..<many {
    Task.detached {
      let end = Date(timeIntervalSinceNow: 0.7)
      while Date() < end {}
    }
  }
  live(4000)
}

func sleepers() {
  for _ in 0..<many { Task.detached { pause(3000) } }
  live(4000)
}

/// All wait for a lock, whose holder is one of them and sleeps.
func locked() {
  let lock = NSLock()
  for _ in 0..<many {
    DispatchQueue.global().async {
      lock.lock()
      pause(400)
      lock.unlock()
    }
  }
  live(4000)
}
