// WITH(support.swift)
// The main run loop, or the main queue, that does not come around; the first argument says how. Each
// lasts for as many milliseconds as its name's second part says, and each has a twin that rests, or
// works elsewhere, for as long.
import Foundation

#if SWAPPED
  import Watchdog
#endif

@main enum Hangs {
  static func main() {
    #if SWAPPED
      Watchdog.shared.watch()
      Watchdog.shared.watch(DispatchQueue.main.original)
    #endif
    play([
      "compute-2000": { inLoop(2000, compute) },
      "sleep-400": { inLoop(400, sleeping) }, "sleep-2000": { inLoop(2000, sleeping) },
      "lock-1000": { inLoop(1000, lock) }, "lock-2000": { inLoop(2000, lock) },
      "pipe-400": { inLoop(400, pipe) }, "pipe-2000": { inLoop(2000, pipe) },
      "child-2000": { inLoop(2000, child) }, "semaphore-2000": { inLoop(2000, semaphore) },
      "sync-2000": { inLoop(2000, sync) }, "late": late, "queue-2000": { inQueue(2000, compute) },
      "queue-lock-2000": { inQueue(2000, lock) }, "again": again,
      "main-block": { inBlockOfLoop(2000) }, "nested": nested, "rest": rest, "short": short,
      "left": left, "alone": alone, "own-poll": ownPoll, "elsewhere": elsewhere, "stopped": stopped,
    ])
  }
}

// MARK: - What it does instead

func compute(_ milliseconds: UInt32) {
  let end = Date().addingTimeInterval(Double(milliseconds) / 1000)
  var sum = 0.0
  while Date() < end { sum += 1 }
  if sum < 0 { print(sum) }
}

func sleeping(_ milliseconds: UInt32) { pause(milliseconds) }

func lock(_ milliseconds: UInt32) {
  let lock = NSLock()
  let isTaken = Flag()
  start("writer") {
    lock.lock()
    isTaken.set()
    pause(milliseconds)
    lock.unlock()
  }
  isTaken.poll()
  lock.lock()
  lock.unlock()
}

func pipe(_ milliseconds: UInt32) {
  let pipe = Pipe()
  start("writer") {
    pause(milliseconds)
    pipe.fileHandleForWriting.write(Data([1]))
  }
  _ = pipe.fileHandleForReading.readData(ofLength: 1)
}

func child(_ milliseconds: UInt32) {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/bin/sleep")
  process.arguments = ["\(Double(milliseconds) / 1000)"]
  try? process.run()
  var status: Int32 = 0
  waitpid(process.processIdentifier, &status, 0)
}

func semaphore(_ milliseconds: UInt32) {
  let answer = DispatchSemaphore(value: 0)
  start("server") {
    pause(milliseconds)
    answer.signal()
  }
  answer.wait()
}

func sync(_ milliseconds: UInt32) {
  let store = DispatchQueue(label: "store")
  let isBusy = Flag()
  store.async {
    isBusy.set()
    pause(milliseconds)
  }
  isBusy.poll()
  store.sync {}
}

// MARK: - Where

func spin(_ seconds: Double) { RunLoop.main.run(until: Date().addingTimeInterval(seconds)) }

func inLoop(_ milliseconds: UInt32, _ work: @escaping (UInt32) -> Void) {
  var isDone = false
  _ = Timer.scheduledTimer(withTimeInterval: 0.1, repeats: false) { _ in
    work(milliseconds)
    isDone = true
  }
  while !isDone { spin(0.2) }
}

/// A block of the main queue, which the run loop drains.
func inBlockOfLoop(_ milliseconds: UInt32) {
  let isDone = Flag()
  DispatchQueue.main.async {
    compute(milliseconds)
    isDone.set()
  }
  while !isDone.isSet { spin(0.2) }
}

/// After `dispatchMain`, with another block behind.
func inQueue(_ milliseconds: UInt32, _ work: @escaping (UInt32) -> Void) {
  for turn in 0..<50 {
    DispatchQueue.main.asyncAfter(deadline: .now() + 0.02 * Double(turn)) { pause(15) }
  }
  DispatchQueue.main.asyncAfter(deadline: .now() + 1.2) { work(milliseconds) }
  DispatchQueue.main.asyncAfter(deadline: .now() + 1.3) { done() }
  dispatchMain()
}

/// A hang after a long rest, and more than one turn before it.
func late() {
  for _ in 0..<20 { spin(0.1) }
  inLoop(2500, compute)
  spin(0.5)
}

/// The same place, five times.
func again() { for _ in 0..<5 { inLoop(400, sleeping) } }

// MARK: - Healthy

/// A loop that is run within a turn comes around too.
func nested() {
  inLoop(0) { _ in for _ in 0..<15 { spin(0.1) } }
}

func rest() { spin(2.8) }

/// Turns of a tenth of a second, one after the other.
func short() {
  var left = 20
  let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { _ in
    pause(80)
    left -= 1
  }
  while left > 0 { spin(0.2) }
  timer.invalidate()
}

/// The run loop was run, and then left for good: what main does now is its own.
func left() {
  spin(0.3)
  compute(1500)
  pause(1500)
}

/// All that the program is to do, with nothing behind it.
func alone() {
  DispatchQueue.main.async {
    compute(1000)
    pause(1500)
    done()
  }
  dispatchMain()
}

/// An event loop of the program's own is none that is watched.
func ownPoll() {
  let pipe = Pipe()
  start("server") {
    pause(2000)
    pipe.fileHandleForWriting.write(Data([1]))
  }
  var entry = pollfd(fd: pipe.fileHandleForReading.fileDescriptor, events: 1, revents: 0)
  while poll(&entry, 1, -1) != 1 {}
  compute(1000)
}

/// Other threads compute and sleep, and the run loop goes on.
func elsewhere() {
  let isDone = Flag()
  start("worker") {
    compute(800)
    pause(1200)
    isDone.set()
  }
  while !isDone.isSet { spin(0.05) }
}

/// The process is stopped in the middle of a short turn, and goes on two seconds later.
func stopped() {
  inLoop(0) { _ in
    let shell = Process()
    shell.executableURL = URL(fileURLWithPath: "/bin/sh")
    shell.arguments = ["-c", "sleep 0.05; kill -STOP $PPID; sleep 2; kill -CONT $PPID"]
    try? shell.run()
    pause(100)
  }
}
