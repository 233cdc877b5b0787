// WITH(support.swift)
// Timers and blocks of run loops that nobody runs, and what looks like it.
import Foundation

@main enum Loops {
  static func main() {
    play([
      "plain": plain, "worker": worker, "parked": parked, "block": block, "mode": mode,
      "later": later, "busy": busy, "far": far, "invalid": invalid, "ended": ended,
      "common": common,
      "served": served, "modal": modal,
    ])
  }
}

/// The main thread has something to do all the time.
func live(_ milliseconds: Int) { for _ in 0..<milliseconds / 20 { pause(20) } }
let gate = DispatchSemaphore(value: 0)
nonisolated(unsafe) var fired = 0

func addTimer(_ seconds: Double, to mode: RunLoop.Mode = .default) {
  // Foundation's `timeInterval` alone would be due at once.
  let date = Date(timeIntervalSinceNow: seconds)
  let timer = Timer(fire: date, interval: 0, repeats: false) { _ in fired += 1 }
  RunLoop.current.add(timer, forMode: mode)
}

/// A thread that blocks instead of running its loop.
func plain() {
  start("idler") {
    addTimer(0.3)
    gate.wait()
  }
  live(6000)
  gate.signal()
}

/// A thread of libdispatch goes back to its pool.
func worker() {
  DispatchQueue.global().async {
    call("poolie")
    addTimer(0.3)
  }
  live(6000)
}

/// dispatchMain() runs no run loop.
func parked() {
  addTimer(0.3)
  Thread.detachNewThread {
    live(6000)
    done()
  }
  dispatchMain()
}

func block() {
  start("idler") {
    RunLoop.current.perform { fired += 1 }
    gate.wait()
  }
  live(7000)
  gate.signal()
}

/// The loop runs, but not in the timer's mode.
func mode() {
  start("idler") {
    addTimer(0.3)
    let other = RunLoop.Mode("other")
    addTimer(100, to: other)
    for _ in 0..<12 { RunLoop.current.run(mode: other, before: Date(timeIntervalSinceNow: 0.5)) }
  }
  live(6500)
}

/// The thread has something else to do first.
func later() {
  let thread = start("late") {
    addTimer(0.3)
    live(4000)
    RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 1))
  }
  live(1000)
  watch(thread)
}

/// A callout that takes long keeps the others waiting.
func busy() {
  let thread = start("busy") {
    addTimer(0.4)
    RunLoop.current.add(
      Timer(fire: Date(timeIntervalSinceNow: 0.3), interval: 0, repeats: false) { _ in gate.wait()
      },
      forMode: .default)
    RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 1))
  }
  live(6000)
  gate.signal()
  watch(thread)
}

func far() {
  start("idler") {
    addTimer(1000)
    gate.wait()
  }
  live(6000)
  gate.signal()
}

func invalid() {
  start("idler") {
    let timer = Timer(timeInterval: 0.3, repeats: false) { _ in fired += 1 }
    RunLoop.current.add(timer, forMode: .default)
    timer.invalidate()
    gate.wait()
  }
  live(6000)
  gate.signal()
}

/// What a thread never came to do ends with it.
func ended() {
  start("ender") { addTimer(0.3) }
  live(6000)
}

/// A timer of all common modes, in one of them.
func common() {
  start("looper") {
    addTimer(0.3, to: .common)
    RunLoop.current.run(until: Date(timeIntervalSinceNow: 5.5))
  }
  live(6000)
}

func served() {
  let ticker = Timer.scheduledTimer(withTimeInterval: 0.05, repeats: true) { _ in fired += 1 }
  RunLoop.main.run(until: Date(timeIntervalSinceNow: 6))
  ticker.invalidate()
}

/// Another mode for a while, as a dialog would.
func modal() {
  addTimer(0.5)
  let other = RunLoop.Mode("modal")
  let timer = Timer(timeInterval: 0.1, repeats: true) { _ in fired += 1 }
  RunLoop.main.add(timer, forMode: other)
  let end = Date(timeIntervalSinceNow: 4)
  while Date() < end { RunLoop.main.run(mode: other, before: Date(timeIntervalSinceNow: 0.2)) }
  RunLoop.main.run(until: Date(timeIntervalSinceNow: 1))
}
