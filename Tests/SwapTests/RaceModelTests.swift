import Dispatch
import Foundation
import Testing

@testable import InstrumentedLocks

/// Threads that make a program's moves one at a time, in its order. What passes the turn on is no
/// drop-in, so that it orders nothing.
private final class RaceStage: @unchecked Sendable {
  let program: RaceProgram
  let values = (0..<RaceProgram.values).map { RaceChecked(0, name: "value \($0)") }
  private let locks = (0..<RaceProgram.locks).map { _ in InstrumentedLock() }
  private let readWriteLocks = (0..<RaceProgram.readWriteLocks).map { _ in
    InstrumentedReadWriteLock()
  }
  private let semaphores = (0..<RaceProgram.semaphores).map { _ in
    InstrumentedSemaphore(value: 0)
  }
  private let onces = (0..<RaceProgram.onces).map { _ in InstrumentedOnce() }
  // Guards `next` and `running`.
  private let turn = Foundation.NSCondition()
  private var next = -1
  private var running: Int

  init(_ program: RaceProgram) {
    self.program = program
    running = program.threads
  }

  func run() {
    for index in 0..<program.threads { InstrumentedThread { self.play(index) }.start() }
    turn.lock()
    // Only now: this runs in a task, which comes after all that was done so far.
    next = 0
    turn.broadcast()
    while running > 0 { turn.wait() }
    turn.unlock()
  }

  private func play(_ thread: Int) {
    for (index, move) in program.moves.enumerated() where move.thread == thread {
      turn.lock()
      while next != index { turn.wait() }
      turn.unlock()
      make(move.step)
      turn.lock()
      next += 1
      turn.broadcast()
      turn.unlock()
    }
    turn.lock()
    running -= 1
    turn.broadcast()
    turn.unlock()
  }

  private func make(_ step: RaceProgram.Step) {
    switch step {
    case .read(let value): _ = values[value].value
    case .write(let value): values[value].value = 1
    case .lock(let lock): locks[lock].lock()
    case .unlock(let lock): locks[lock].unlock()
    case .readLock(let lock): readWriteLocks[lock].readLock()
    case .writeLock(let lock): readWriteLocks[lock].writeLock()
    case .readUnlock(let lock), .writeUnlock(let lock): readWriteLocks[lock].unlock()
    case .signal(let semaphore): semaphores[semaphore].signal()
    case .wait(let semaphore): semaphores[semaphore].wait()
    case .once(let once): onces[once].run {}
    }
  }
}

/// Threads that run as they like, each value used by the rule that belongs to it.
private final class OrderlyStage: @unchecked Sendable {
  private let values = (0..<7).map { RaceChecked(0, name: "value \($0)") }
  private let lock = InstrumentedRecursiveLock()
  private let mutex = InstrumentedUnfairLock()
  private let readWrite = InstrumentedReadWriteLock()
  private let serial = InstrumentedQueue(label: "serial")
  private let concurrent = InstrumentedQueue(label: "concurrent", attributes: .concurrent)
  private let semaphore = InstrumentedSemaphore(value: 1)
  private let condition = InstrumentedCondition()
  private let group = InstrumentedGroup()

  func run(seed: UInt64) -> Int {
    var random = RaceProgram.Random(state: seed)
    for value in values { value.value = 1 }
    for thread in 0..<(2 + random.next(3)) {
      group.enter()
      let seed = seed &* 31 &+ UInt64(thread)
      InstrumentedThread {
        var random = RaceProgram.Random(state: seed)
        for _ in 0..<20 { self.use(random.next(self.values.count), random.next(2) == 0) }
        self.group.leave()
      }.start()
    }
    group.wait()
    for value in values { value.value += 1 }
    return values.reduce(0) { $0 + $1.races }
  }

  private func use(_ index: Int, _ writes: Bool) {
    let value = values[index]
    let access = { @Sendable in if writes { value.value += 1 } else { _ = value.value } }
    switch index {
    case 0: lock.withLock(access)
    case 1: mutex.withLockUnchecked(access)
    case 2 where writes: readWrite.withWriteLock(access)
    case 2: readWrite.withReadLock(access)
    case 3 where writes: serial.async(group: group, execute: access)
    case 3: serial.sync(execute: access)
    case 4 where writes: concurrent.async(group: group, flags: .barrier, execute: access)
    case 4: concurrent.async(group: group, execute: access)
    case 5:
      semaphore.wait()
      access()
      semaphore.signal()
    default:
      condition.withLock {
        access()
        condition.broadcast()
      }
    }
  }
}

@Suite(.serialized) struct RaceModelTests {
  /// What is found is what the model says, for each value: nothing more, and nothing less.
  @Test(arguments: [(0, 12), (1, 25), (2, 40), (3, 60)])
  func agreesWithHappensBefore(batch: Int, length: Int) throws {
    var racy = 0
    for seed in 0..<250 {
      let seed = UInt64(batch * 1000 + seed)
      let program = RaceProgram(seed: seed, length: length)
      let stage = RaceStage(program)
      stage.run()
      let found = Set(stage.values.indices.filter { stage.values[$0].races > 0 })
      racy += program.racyValues.count
      try #require(found == program.racyValues, "seed \(seed):\n\(program)")
    }
    #expect(racy > 100)
  }

  @Test func protectedValuesDoNotRace() throws {
    for seed in UInt64(0)..<250 {
      let program = RaceProgram(seed: seed, length: 60, isClean: true)
      let stage = RaceStage(program)
      stage.run()
      try #require(program.racyValues.isEmpty)
      try #require(stage.values.allSatisfy { $0.races == 0 }, "seed \(seed):\n\(program)")
    }
  }

  /// As the machine schedules them: a thousand programs without a false alarm.
  @Test func cleanProgramsAreSilent() throws {
    for seed in UInt64(0)..<1000 {
      try #require(OrderlyStage().run(seed: seed) == 0, "seed \(seed)")
    }
  }
}
