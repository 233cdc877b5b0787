// WITH(support.swift)
// What is waited for has been let go of by all who could end the wait, while the main thread lives on;
// and what looks like it.
import Foundation
import Synchronization

@main enum Forsaken {
  static func main() {
    warmUp()
    play([
      "semaphore": semaphore, "worker": worker, "group": group, "condition": condition,
      "pair": pair,
      "behind": behind, "timer": timer,
      "global": global, "captured": captured, "delayed": delayed, "weakly": weakly,
      "hidden": hidden,
      "pipe": pipe, "epoll": epoll, "parked": parked, "source": source, "late": late,
      "other": other,
      "unmanaged": unmanaged, "queued": queued, "packed": packed, "resting": resting,
    ])
  }
}

/// The main thread serves a timer for some seconds.
func serve(_ seconds: Double) {
  let end = Date(timeIntervalSinceNow: seconds)
  let ticker = Timer.scheduledTimer(withTimeInterval: 0.05, repeats: true) { _ in }
  while Date() < end { RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.1)) }
  ticker.invalidate()
}

/// What is left on the stack below the callers' frames is overwritten.
@inline(never)
func scrub(_ depth: Int = 60) {
  withUnsafeTemporaryAllocation(byteCount: 1000, alignment: 16) { room in
    for index in room.indices { room[index] = 1 }
    if depth > 0 { scrub(depth - 1) }
  }
}

/// What was freed is used again, and overwritten.
@inline(never)
func churn() {
  var kept: [[Int]] = []
  for round in 0..<400 { kept.append(Array(repeating: round, count: round % 20)) }
  kept.removeAll()
}

/// What the runtime allocates when something is first used lies in no memory of what follows.
func warmUp() {
  serve(0.2)
  scrub()
  let group = DispatchGroup()
  group.enter()
  Thread.detachNewThread {
    call("first")
    pause(1)
    DispatchQueue.global().async { group.leave() }
  }
  group.wait()
}

func wait(_ semaphore: DispatchSemaphore) { semaphore.wait() }

@inline(never)
func startSemaphore() {
  let semaphore = DispatchSemaphore(value: 0)
  Thread.detachNewThread {
    call("stuck")
    wait(semaphore)
  }
}

func semaphore() {
  startSemaphore()
  scrub()
  serve(9)
}

func worker() {
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    DispatchQueue.global().async {
      call("stuck")
      wait(semaphore)
    }
  }
  begin()
  scrub()
  serve(9)
}

/// The owner of the group has gone without leaving it.
func group() {
  final class Loader {
    let group = DispatchGroup()
    let parts = (0, 0, 0, 0, 0, 0)
    init() { group.enter() }
    func finish() { group.leave() }
  }
  @inline(never) func begin() {
    let loader = Loader()
    let group = loader.group
    Thread.detachNewThread {
      call("stuck")
      group.wait()
    }
  }
  begin()
  scrub()
  churn()
  serve(9)
}

func condition() {
  @inline(never) func begin() {
    let condition = NSCondition()
    Thread.detachNewThread {
      call("stuck")
      condition.lock()
      condition.wait()
      condition.unlock()
    }
  }
  begin()
  scrub()
  serve(9)
}

/// Each would signal the other, and nobody else could.
func pair() {
  @inline(never) func begin() {
    let (one, two) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    Thread.detachNewThread {
      call("one")
      one.wait()
      two.signal()
    }
    Thread.detachNewThread {
      call("two")
      two.wait()
      one.signal()
    }
  }
  begin()
  scrub()
  serve(9)
}

/// Another thread waits for a lock that the stuck one holds.
func behind() {
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    let lock = NSLock()
    Thread.detachNewThread {
      call("stuck")
      lock.lock()
      wait(semaphore)
      lock.unlock()
    }
    pause(200)
    Thread.detachNewThread {
      call("second")
      lock.lock()
      semaphore.signal()
      lock.unlock()
    }
  }
  begin()
  scrub()
  serve(9)
}

/// The same while the main thread sleeps and wakes.
func timer() {
  startSemaphore()
  scrub()
  for _ in 0..<900 { pause(10) }
}

// MARK: - Near misses: somebody still has it

nonisolated(unsafe) var kept: DispatchSemaphore?
nonisolated(unsafe) var keptCondition: NSCondition?

func global() {
  let semaphore = DispatchSemaphore(value: 0)
  kept = semaphore
  let thread = start("stuck") { wait(semaphore) }
  serve(9)
  kept?.signal()
  watch(thread)
}

/// A closure in another thread, which sleeps.
func captured() {
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      call("waiter")
      wait(semaphore)
      woken.set()
    }
    Thread.detachNewThread {
      call("sleeper")
      pause(9000)
      semaphore.signal()
    }
  }
  begin()
  scrub()
  serve(8)
  woken.poll()
}
let woken = Flag()

/// A block that a timer of libdispatch brings.
func delayed() {
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      wait(semaphore)
      woken.set()
    }
    DispatchQueue.global().asyncAfter(deadline: .now() + 9) { semaphore.signal() }
  }
  begin()
  scrub()
  serve(8)
  woken.poll()
}

/// A handler of a dispatch source that has not fired.
func source() {
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      wait(semaphore)
      woken.set()
    }
    let source = DispatchSource.makeTimerSource()
    source.schedule(deadline: .now() + 9)
    source.setEventHandler {
      semaphore.signal()
      _ = source
    }
    source.resume()
  }
  begin()
  scrub()
  serve(8)
  woken.poll()
}

/// A timer of the main run loop.
func late() {
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      wait(semaphore)
      woken.set()
    }
    let timer = Timer(timeInterval: 8, repeats: false) { _ in semaphore.signal() }
    RunLoop.main.add(timer, forMode: .default)
  }
  begin()
  scrub()
  serve(9)
  woken.poll()
}

/// Only weakly.
final class Gate: Sendable {
  let semaphore = DispatchSemaphore(value: 0)
}
nonisolated(unsafe) weak var weakGate: Gate?

func weakly() {
  @inline(never) func begin() {
    let gate = Gate()
    weakGate = gate
    Thread.detachNewThread {
      gate.semaphore.wait()
      woken.set()
    }
  }
  begin()
  scrub()
  serve(9)
  weakGate?.semaphore.signal()
  woken.poll()
}

/// In a register of a thread that sleeps, as far as the compiler will have it.
func hidden() {
  @Sendable @inline(never) func sleeper(_ semaphore: DispatchSemaphore) {
    usleep(9_000_000)
    semaphore.signal()
  }
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      wait(semaphore)
      woken.set()
    }
    Thread.detachNewThread { sleeper(semaphore) }
  }
  begin()
  scrub()
  serve(8)
  woken.poll()
}

/// On its way through a pipe.
func pipe() {
  var ends: [Int32] = [0, 0]
  _ = Glibc.pipe(&ends)
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      wait(semaphore)
      woken.set()
    }
    var word = UInt(bitPattern: Unmanaged.passRetained(semaphore).toOpaque())
    write(ends[1], &word, 8)
  }
  begin()
  scrub()
  serve(9)
  var word: UInt = 0
  read(ends[0], &word, 8)
  guard let pointer = UnsafeRawPointer(bitPattern: word) else { return }
  Unmanaged<DispatchSemaphore>.fromOpaque(pointer).takeRetainedValue().signal()
  woken.poll()
}

// Swift's Glibc leaves these out.
@_silgen_name("epoll_create1") private func makePoll(_ flags: Int32) -> Int32
@_silgen_name("eventfd") private func makeEvent(_ value: UInt32, _ flags: Int32) -> Int32
@_silgen_name("epoll_ctl") private func watch(
  _ poll: Int32, _ what: Int32, _ descriptor: Int32, _ event: UnsafeMutableRawPointer
) -> Int32
@_silgen_name("epoll_wait") private func take(
  _ poll: Int32, _ events: UnsafeMutableRawPointer, _ most: Int32, _ limit: Int32
) -> Int32

/// With what an epoll will tell.
func epoll() {
  let (poll, event) = (makePoll(0), makeEvent(0, 0))
  // An event's flags, and behind them the word, without a gap.
  let room = UnsafeMutableRawPointer.allocate(byteCount: 16, alignment: 16)
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      wait(semaphore)
      woken.set()
    }
    room.storeBytes(of: 1, as: UInt32.self)
    let word = UInt(bitPattern: Unmanaged.passRetained(semaphore).toOpaque())
    (room + 4).copyMemory(from: [word], byteCount: 8)
    _ = watch(poll, 1, event, room)
    (room + 4).copyMemory(from: [UInt(0)], byteCount: 8)
  }
  begin()
  scrub()
  serve(9)
  var one: UInt64 = 1
  write(event, &one, 8)
  _ = take(poll, room, 1, -1)
  guard let pointer = UnsafeRawPointer(bitPattern: (room + 4).loadUnaligned(as: UInt.self)) else {
    return
  }
  Unmanaged<DispatchSemaphore>.fromOpaque(pointer).takeRetainedValue().signal()
  woken.poll()
}

/// The main thread rests on what nobody else has, as programs do whose other threads serve.
func parked() {
  Thread.detachNewThread {
    for _ in 0..<900 { pause(10) }
    done()
  }
  DispatchSemaphore(value: 0).wait()
}

/// In memory of the program's own.
func other() {
  guard
    let room = mmap(nil, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
    room != MAP_FAILED
  else { return }
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      wait(semaphore)
      woken.set()
    }
    (room + 4096).storeBytes(
      of: UInt(bitPattern: Unmanaged.passRetained(semaphore).toOpaque()), as: UInt.self)
  }
  begin()
  scrub()
  serve(9)
  let word = (room + 4096).load(as: UInt.self)
  guard let pointer = UnsafeRawPointer(bitPattern: word) else { return }
  Unmanaged<DispatchSemaphore>.fromOpaque(pointer).takeRetainedValue().signal()
  woken.poll()
}

/// In a record without padding.
nonisolated(unsafe) let record = UnsafeMutableRawPointer.allocate(byteCount: 32, alignment: 16)
func packed() {
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      wait(semaphore)
      woken.set()
    }
    let word = UInt(bitPattern: Unmanaged.passRetained(semaphore).toOpaque())
    withUnsafeBytes(of: word) { (record + 3).copyMemory(from: $0.baseAddress!, byteCount: 8) }
  }
  begin()
  scrub()
  serve(9)
  let word = (record + 3).loadUnaligned(as: UInt.self)
  guard let pointer = UnsafeRawPointer(bitPattern: word) else { return }
  Unmanaged<DispatchSemaphore>.fromOpaque(pointer).takeRetainedValue().signal()
  woken.poll()
}

/// A thread that is to rest for ever makes what it rests on.
func resting() {
  Thread.detachNewThread { DispatchSemaphore(value: 0).wait() }
  scrub()
  serve(9)
}

/// A word that owns nothing.
nonisolated(unsafe) var bare: UInt = 0
func unmanaged() {
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    bare = UInt(bitPattern: Unmanaged.passUnretained(semaphore).toOpaque())
    Thread.detachNewThread {
      wait(semaphore)
      woken.set()
    }
  }
  begin()
  scrub()
  serve(9)
  guard let pointer = UnsafeRawPointer(bitPattern: bare) else { return }
  Unmanaged<DispatchSemaphore>.fromOpaque(pointer).takeUnretainedValue().signal()
  woken.poll()
}

/// A block on a queue that is suspended.
func queued() {
  let queue = DispatchQueue(label: "later")
  queue.suspend()
  @inline(never) func begin() {
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      wait(semaphore)
      woken.set()
    }
    queue.async { semaphore.signal() }
  }
  begin()
  scrub()
  serve(9)
  queue.resume()
  woken.poll()
}
