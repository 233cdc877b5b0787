import Foundation
import Watchdog

/// Something that takes long, in a function of its own, which a report is to name.
@inline(never)
func crunch(_ seconds: Double) {
  let end = ProcessInfo.processInfo.systemUptime + seconds
  var sum = 0.0
  while ProcessInfo.processInfo.systemUptime < end { sum += sin(sum + 1) }
  if sum.isNaN { say("cannot be") }
}

@inline(never)
func sleepAbout(_ seconds: Double) { usleep(UInt32(seconds * 1e6)) }

@inline(never)
func readPipe(_ seconds: Double) {
  var ends: [Int32] = [0, 0]
  pipe(&ends)
  let writer = ends[1]
  thread("writer") {
    usleep(UInt32(seconds * 1e6))
    write(writer, "x", 1)
  }
  var byte: UInt8 = 0
  _ = read(ends[0], &byte, 1)
  close(ends[0])
  close(writer)
}

@inline(never)
func waitForLock(_ seconds: Double) {
  let (lock, ready) = (NSLock(name: "cache"), Meeting(2))
  thread("holder") {
    lock.lock()
    ready.arrive()
    usleep(UInt32(seconds * 1e6))
    lock.unlock()
  }
  ready.arrive()
  lock.lock()
  lock.unlock()
}

/// The same with a lock that nobody records.
@inline(never)
func waitForForeignLock(_ seconds: Double) {
  let (lock, ready) = (Foundation.NSLock(), Meeting(2))
  thread("stranger") {
    lock.lock()
    ready.arrive()
    usleep(UInt32(seconds * 1e6))
    lock.unlock()
  }
  ready.arrive()
  lock.lock()
  lock.unlock()
}

private let ways: [String: @Sendable (Double) -> Void] = [
  "computes": crunch, "sleeps": sleepAbout, "reads": readPipe, "locks": waitForLock,
  "foreign": waitForForeignLock,
]

/// Seconds and the like from the command line.
private func argument(_ index: Int) -> String {
  CommandLine.arguments.count > index ? CommandLine.arguments[index] : ""
}

private func runMain(_ seconds: Double) {
  RunLoop.main.run(until: Date(timeIntervalSinceNow: seconds))
}

/// An atomic flag that needs no lock of the drop-ins.
private final class Flag: @unchecked Sendable {
  private let lock = Foundation.NSLock()
  private var value = false
  var isSet: Bool {
    get { lock.withLock { value } }
    set { lock.withLock { value = newValue } }
  }
}

/// Hangs, each told once: opened, perhaps updated, and closed.
let hangs: [String: @Sendable () -> Void] = [
  // hang-loop WAY SECONDS: in a block of the main run loop.
  "hang-loop": {
    Watchdog.shared.watch()
    let (way, seconds) = (ways[argument(2)] ?? crunch, Double(argument(3)) ?? 1)
    RunLoop.main.perform { way(seconds) }
    runMain(seconds + 0.6)
  },
  "hang-thread": {
    // A run loop of another thread.
    let ended = Meeting(2)
    thread("looper") {
      Watchdog.shared.watch(RunLoop.current, name: "looper")
      // The watchdog has begun to look by then.
      let start = Timer(timeInterval: 0.5, repeats: false) { _ in crunch(1) }
      RunLoop.current.add(start, forMode: .default)
      let end = Date(timeIntervalSinceNow: 2)
      while Date() < end {
        let timer = Timer(timeInterval: 0.05, repeats: false) { _ in }
        RunLoop.current.add(timer, forMode: .default)
        _ = RunLoop.current.run(mode: .default, before: end)
      }
      ended.arrive()
    }
    ended.arrive()
  },
  "hang-queue": {
    let queue = Foundation.DispatchQueue(label: "images")
    Watchdog.shared.watch(queue)
    queue.async { crunch(1.2) }
    queue.sync {}
    usleep(300_000)
  },
  "hang-heartbeat": {
    let heartbeat = Watchdog.shared.heartbeat("server loop")
    heartbeat.beat()
    crunch(1.2)
    heartbeat.beat()
    heartbeat.expectNothing { usleep(500_000) }
    heartbeat.stop()
  },
  "hang-pool": {
    Watchdog.shared.watchCooperativePool()
    // One for each thread that the pool may have.
    for _ in 0..<ProcessInfo.processInfo.activeProcessorCount {
      Task.detached { sleepAbout(1.2) }
    }
    sleep(2)
    say("DONE")
    exit(0)
  },
  "hang-actor": {
    Watchdog.shared.watchMainActor()
    // Jobs come in while others run: only they show that the main queue is drained.
    let ended = Flag()
    thread("asks") {
      while !ended.isSet {
        Task { @MainActor in usleep(1000) }
        usleep(500)
      }
    }
    runMain(0.5)
    Task { @MainActor in crunch(0.8) }
    runMain(1.2)
    ended.isSet = true
    runMain(0.5)
  },
  "hang-stopped-watch": {
    // The watch ends before the hang does.
    let watch = Watchdog.shared.watch()
    RunLoop.main.perform {
      crunch(1)
      watch.stop()
      crunch(0.3)
    }
    runMain(1.8)
  },
]

/// Nanoseconds that a run of the main run loop takes in which there is nothing to do: five activities.
private func measureTurns(_ count: Int) -> Double {
  let begun = ProcessInfo.processInfo.systemUptime
  for _ in 0..<count { _ = RunLoop.main.run(mode: .default, before: .distantPast) }
  return (ProcessInfo.processInfo.systemUptime - begun) / Double(count) * 1e9
}

/// What watching costs.
let measures: [String: @Sendable () -> Void] = [
  "measure-turns": {
    RunLoop.main.add(Timer(timeInterval: 3600, repeats: false) { _ in }, forMode: .default)
    for _ in 0..<5 {
      let plain = measureTurns(20_000)
      let watch = Watchdog.shared.watch()
      let watched = measureTurns(20_000)
      watch.stop()
      say("a turn", Int(plain), "ns, watched", Int(watched), "ns")
    }
  },
  "measure-beats": {
    let heartbeat = Watchdog.shared.heartbeat("loop")
    let begun = ProcessInfo.processInfo.systemUptime
    for _ in 0..<10_000_000 { heartbeat.beat() }
    say("a beat", (ProcessInfo.processInfo.systemUptime - begun) * 100, "ns")
  },
  // measure-rest WHAT: the processor time of everything in ten seconds in which nothing happens.
  "measure-rest": {
    if argument(2).contains("loop") { Watchdog.shared.watch() }
    let queue = Foundation.DispatchQueue(label: "idle")
    if argument(2).contains("queue") { Watchdog.shared.watch(queue) }
    runMain(1)
    let before = clock()
    runMain(10)
    say("of one processor:", Double(clock() - before) / Double(CLOCKS_PER_SEC) * 10, "%")
  },
]

/// Nothing of these is a hang.
let restful: [String: @Sendable () -> Void] = [
  "idle-loop": {
    Watchdog.shared.watch()
    runMain(3)
  },
  "never-run-loop": {
    Watchdog.shared.watch()
    Watchdog.shared.watch(Foundation.DispatchQueue.main)
    Watchdog.shared.watchMainActor()
    Foundation.DispatchQueue.main.async { say("never") }
    sleep(2)
  },
  "other-mode": {
    // The main run loop waits in a mode of its own, from within a block.
    Watchdog.shared.watch()
    let mode = RunLoop.Mode("modal")
    RunLoop.main.perform {
      RunLoop.main.add(Timer(timeInterval: 5, repeats: false) { _ in }, forMode: mode)
      _ = RunLoop.main.run(mode: mode, before: Date(timeIntervalSinceNow: 1))
    }
    runMain(1.5)
  },
  "busy-loop": {
    Watchdog.shared.watch()
    let timer = Timer(timeInterval: 0.002, repeats: true) { _ in crunch(0.01) }
    RunLoop.main.add(timer, forMode: .default)
    runMain(3)
    timer.invalidate()
  },
  "suspended-queue": {
    let (queue, target) = (
      Foundation.DispatchQueue(label: "suspended"), Foundation.DispatchQueue(label: "target")
    )
    let above = Foundation.DispatchQueue(label: "above", target: target)
    let inactive = Foundation.DispatchQueue(label: "inactive", attributes: .initiallyInactive)
    for queue in [queue, above, inactive] { Watchdog.shared.watch(queue) }
    queue.suspend()
    target.suspend()
    for queue in [queue, above, inactive] { queue.async {} }
    sleep(1)
    queue.resume()
    target.resume()
    inactive.activate()
    for queue in [queue, above, inactive] { queue.sync {} }
  },
  "busy-queue": {
    let serial = Foundation.DispatchQueue(label: "serial")
    let concurrent = Foundation.DispatchQueue(label: "concurrent", attributes: .concurrent)
    for queue in [serial, concurrent] { Watchdog.shared.watch(queue) }
    let end = Date(timeIntervalSinceNow: 2)
    while Date() < end {
      serial.async { crunch(0.004) }
      concurrent.async { crunch(0.004) }
      serial.sync {}
    }
    concurrent.sync(flags: .barrier) {}
    sleep(1)
  },
  "expect-nothing": {
    let heartbeat = Watchdog.shared.heartbeat("server loop")
    usleep(500_000)
    heartbeat.beat()
    heartbeat.expectNothing { crunch(1) }
    heartbeat.stop()
    sleep(1)
  },
  "beating": {
    let heartbeat = Watchdog.shared.heartbeat("server loop")
    for _ in 0..<150 {
      heartbeat.beat()
      usleep(20_000)
    }
    heartbeat.stop()
  },
  "busy-pool": {
    Watchdog.shared.watchCooperativePool()
    for _ in 0..<32 { Task.detached { crunch(0.4) } }
    sleep(2)
    say("DONE")
    exit(0)
  },
  "idle-pool": {
    Watchdog.shared.watchCooperativePool()
    Watchdog.shared.watchMainActor()
    let done = Flag()
    Task.detached {
      for _ in 0..<200 { await Task.yield() }
      done.isSet = true
    }
    runMain(2)
    if !done.isSet { exit(5) }
  },
  // Stopped for a second by a process of its own making, in the midst of its work.
  "stopped": {
    Watchdog.shared.watch()
    let helper = Process()
    helper.executableURL = URL(fileURLWithPath: "/bin/sh")
    helper.arguments = [
      "-c", "kill -STOP \(getpid()); sleep 1; kill -CONT \(getpid())",
    ]
    RunLoop.main.perform {
      try? helper.run()
      crunch(0.15)
    }
    runMain(2)
    helper.waitUntilExit()
  },
]
