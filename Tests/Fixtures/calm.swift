// WITH(support.swift)
// Tasks, actors, continuations and operations that wait long or in circles that are none, and get
// what they wait for; the first argument says which. Nothing may be said of them.
import Foundation

@main enum Calm {
  static func main() {
    play([
      "sleep": sleepTask, "late": late, "late-unsafe": lateUnsafe, "late-throwing": lateThrowing,
      "chain": chain, "reentrant": reentrant, "mutual": mutual, "wide-group": wideGroup,
      "stream": stream, "cancelled": cancelled, "main-actor": mainActor,
      "outside-pool": outsidePool,
      "one-worker": oneWorker, "busy-pool": busyPool, "slept-pool": sleptPool,
      "woken-pool": wokenPool, "delegate": delegate, "suspended-many": suspendedMany,
      "left-alone": leftAlone, "detached-exit": detachedExit, "actor-long": actorLong,
      "operation-late": operationLate, "operation-chain": operationChain,
      "operation-other": operationOther, "operation-resumed": operationResumed,
      "operation-width": operationWidth, "operation-added": operationAdded,
      "operation-cancelled": operationCancelled, "operation-main": operationMain,
      "operation-barrier": operationBarrier,
    ])
  }
}

let second: UInt64 = 1_000_000_000
let longTime: UInt64 = 2_800_000_000

func block(_ body: @escaping @Sendable () async -> Void) {
  let ended = DispatchSemaphore(value: 0)
  Task.detached {
    await body()
    ended.signal()
  }
  ended.wait()
}

// MARK: tasks

func sleepTask() { block { try? await Task.sleep(nanoseconds: longTime) } }

func late() {
  block {
    let value: Int = await withCheckedContinuation { continuation in
      start("answerer") {
        pause(2800)
        continuation.resume(returning: 5)
      }
    }
    print(value)
  }
}

func lateUnsafe() {
  block {
    let value: Int = await withUnsafeContinuation { continuation in
      DispatchQueue.global().asyncAfter(deadline: .now() + 2.8) {
        continuation.resume(returning: 6)
      }
    }
    print(value)
  }
}

struct Late: Error {}
func lateThrowing() {
  block {
    do {
      let value: Int = try await withCheckedThrowingContinuation { continuation in
        DispatchQueue(label: "late").asyncAfter(deadline: .now() + 2.8) {
          continuation.resume(throwing: Late())
        }
      }
      print(value)
    } catch { print("\(error)") }
  }
}

func chain() {
  block {
    var tasks = [
      Task { () -> Int in
        try? await Task.sleep(nanoseconds: longTime)
        return 1
      }
    ]
    for _ in 0..<20 {
      let last = tasks[tasks.count - 1]
      tasks.append(Task { await last.value + 1 })
    }
    print(await tasks[20].value)
  }
}

/// An actor waits, and is asked meanwhile.
actor Cache {
  private var values: [Int: Task<Int, Never>] = [:]
  private(set) var asked = 0
  func value(_ key: Int) async -> Int {
    asked += 1
    if let task = values[key] { return await task.value }
    let task = Task { () -> Int in
      try? await Task.sleep(nanoseconds: key == 7 ? longTime : second / 100)
      return await self.base() + key
    }
    values[key] = task
    return await task.value
  }
  func base() -> Int { 100 }
}
func reentrant() {
  let cache = Cache()
  block {
    let sum = await withTaskGroup(of: Int.self) { group in
      for i in 0..<50 { group.addTask { await cache.value(i % 10) } }
      return await group.reduce(0, +)
    }
    print(sum, await cache.asked)
  }
}

/// Two actors ask each other without end, and neither is blocked.
actor Player {
  private var partner: Player?
  func meet(_ partner: Player) { self.partner = partner }
  func play(_ left: Int) async -> Int {
    if left == 0 {
      try? await Task.sleep(nanoseconds: longTime)
      return 0
    }
    return await (partner?.play(left - 1) ?? 0) + 1
  }
}
func mutual() {
  block {
    let (a, b) = (Player(), Player())
    await a.meet(b)
    await b.meet(a)
    async let one = a.play(100)
    async let two = b.play(101)
    print(await one, await two)
  }
}

func wideGroup() {
  block {
    await withTaskGroup(of: Int.self) { group in
      for i in 0..<500 {
        group.addTask {
          if i == 100 { try? await Task.sleep(nanoseconds: longTime) }
          await Task.yield()
          return i
        }
      }
      print(await group.reduce(0, +))
    }
  }
}

func stream() {
  let (numbers, feed) = AsyncStream<Int>.makeStream()
  start("feeder") {
    for i in 0..<3 {
      pause(900)
      feed.yield(i)
    }
    pause(200)
    feed.finish()
  }
  block { for await number in numbers { print(number) } }
}

/// A continuation that is resumed because its task is cancelled.
func cancelled() {
  let (numbers, feed) = AsyncStream<Int>.makeStream()
  let task = Task.detached { for await number in numbers { print(number) } }
  DispatchQueue.global().asyncAfter(deadline: .now() + 2.8) { task.cancel() }
  block { await task.value }
  _ = feed
}

@MainActor func show(_ text: String) { print(text) }
func mainActor() {
  Task.detached {
    await show("one")
    try? await Task.sleep(nanoseconds: longTime)
    await show("two")
    DispatchQueue.main.async { done() }
  }
  RunLoop.main.run()
}

/// Threads that are none of the pool's may block for tasks.
func outsidePool() {
  let all = DispatchGroup()
  for i in 0..<8 {
    all.enter()
    start("engine-\(i)") {
      block { try? await Task.sleep(nanoseconds: longTime) }
      all.leave()
    }
  }
  all.wait()
}

func waitFor(_ semaphore: DispatchSemaphore) { semaphore.wait() }

/// One worker of the pool is blocked for long; the others go on, and one of them wakes it.
func oneWorker() {
  let ready = DispatchSemaphore(value: 0)
  block {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { waitFor(ready) }
      group.addTask {
        try? await Task.sleep(nanoseconds: longTime)
        ready.signal()
      }
    }
  }
}

let width = ProcessInfo.processInfo.activeProcessorCount

/// All workers compute, and jobs are queued behind them.
func busyPool() {
  block {
    await withTaskGroup(of: Int.self) { group in
      for i in 0..<(width * 2) {
        group.addTask {
          let end = DispatchTime.now() + 1.3
          var sum = 0
          while DispatchTime.now() < end { sum &+= i }
          return 1
        }
      }
      print(await group.reduce(0, +))
    }
  }
}

/// All workers sleep as they should not, and jobs are queued behind them.
func sleptPool() {
  block {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<(width * 2) { group.addTask { pause(1400) } }
    }
  }
}

/// All workers are blocked, jobs are queued behind them, and a thread outside will wake them.
func wokenPool() {
  let ready = DispatchSemaphore(value: 0)
  start("waker") {
    pause(2800)
    for _ in 0..<(width * 2) { ready.signal() }
  }
  block {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<(width * 2) { group.addTask { waitFor(ready) } }
    }
  }
}

final class Delegate: @unchecked Sendable {
  private let lock = NSLock()
  private var waiting: [CheckedContinuation<Int, Never>] = []
  func next() async -> Int {
    await withCheckedContinuation { continuation in
      lock.withLock { waiting.append(continuation) }
    }
  }
  func tell(_ value: Int) {
    let all = lock.withLock {
      defer { waiting = [] }
      return waiting
    }
    for continuation in all { continuation.resume(returning: value) }
  }
}
func delegate() {
  let delegate = Delegate()
  DispatchQueue.global().asyncAfter(deadline: .now() + 2.8) { delegate.tell(3) }
  block {
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<10 { group.addTask { await delegate.next() } }
      print(await group.reduce(0, +))
    }
  }
}

/// A thousand tasks that all sleep.
func suspendedMany() {
  block {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<1000 { group.addTask { try? await Task.sleep(nanoseconds: longTime) } }
    }
  }
}

/// Tasks that nobody waits for: their stream never ends, and the program does.
func leftAlone() {
  let (numbers, feed) = AsyncStream<Int>.makeStream()
  Task.detached { for await number in numbers { print(number) } }
  feed.yield(1)
  pause(2800)
  _ = feed
}

func detachedExit() {
  for i in 0..<4 {
    Task.detached { try? await Task.sleep(nanoseconds: UInt64(100 + i) * second) }
  }
  pause(300)
}

/// An actor that is busy for long, with others waiting for it.
actor Slow {
  private var count = 0
  func work() -> Int {
    pause(700)
    count += 1
    return count
  }
}
func actorLong() {
  let slow = Slow()
  block {
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<4 { group.addTask { await slow.work() } }
      print(await group.reduce(0, +))
    }
  }
}

// MARK: operations

/// An asynchronous operation that says late that it is finished.
final class Upload: Operation, @unchecked Sendable {
  private let lock = NSLock()
  private var state = 0
  override var isAsynchronous: Bool { true }
  override var isExecuting: Bool { lock.withLock { state == 1 } }
  override var isFinished: Bool { lock.withLock { state == 2 } }
  override func start() {
    change(to: 1, "isExecuting")
    DispatchQueue.global().asyncAfter(deadline: .now() + 2.8) { self.change(to: 2, "isFinished") }
  }
  private func change(to new: Int, _ key: String) {
    #if SWAPPED
      lock.withLock { state = new }
    #else
      if key == "isFinished" {
        willChangeValue(for: \.isFinished)
        lock.withLock { state = new }
        didChangeValue(for: \.isFinished)
      } else {
        willChangeValue(for: \.isExecuting)
        lock.withLock { state = new }
        didChangeValue(for: \.isExecuting)
      }
    #endif
  }
}
func operationLate() {
  let queue = OperationQueue()
  let upload = Upload()
  queue.addOperation(upload)
  queue.waitUntilAllOperationsAreFinished()
}

func operationChain() {
  let queues = [OperationQueue(), OperationQueue()]
  let steps = (0..<10).map { i in BlockOperation { if i % 3 == 0 { pause(700) } } }
  for i in 1..<10 { steps[i].addDependency(steps[i - 1]) }
  for i in (0..<10).reversed() { queues[i % 2].addOperation(steps[i]) }
  steps[9].waitUntilFinished()
}

func operationOther() {
  let (one, other) = (OperationQueue(), OperationQueue())
  one.maxConcurrentOperationCount = 1
  other.maxConcurrentOperationCount = 1
  for i in 0..<3 {
    one.addOperation {
      let part = BlockOperation { pause(900) }
      other.addOperation(part)
      part.waitUntilFinished()
      print(i)
    }
  }
  one.waitUntilAllOperationsAreFinished()
}

func operationResumed() {
  let queue = OperationQueue()
  queue.isSuspended = true
  queue.addOperation { print("resumed") }
  DispatchQueue.global().asyncAfter(deadline: .now() + 2.8) { queue.isSuspended = false }
  queue.waitUntilAllOperationsAreFinished()
}

/// Room for two: one waits for the other, which has room.
func operationWidth() {
  let queue = OperationQueue()
  queue.maxConcurrentOperationCount = 2
  queue.addOperation {
    let inner = BlockOperation { pause(2700) }
    queue.addOperation(inner)
    inner.waitUntilFinished()
    print("outer")
  }
  queue.waitUntilAllOperationsAreFinished()
}

/// Operations that add others to their own queue of one, and do not wait for them.
func operationAdded() {
  let queue = OperationQueue()
  queue.maxConcurrentOperationCount = 1
  let ended = DispatchSemaphore(value: 0)
  func step(_ left: Int) {
    queue.addOperation { if left == 0 { ended.signal() } else { step(left - 1) } }
  }
  step(50)
  ended.wait()
}

func operationCancelled() {
  let queue = OperationQueue()
  queue.maxConcurrentOperationCount = 1
  queue.addOperation { pause(1500) }
  let second = BlockOperation { print("not cancelled") }
  let third = BlockOperation { print("third") }
  third.addDependency(second)
  queue.addOperations([second, third], waitUntilFinished: false)
  second.cancel()
  queue.waitUntilAllOperationsAreFinished()
}

func operationMain() {
  let queue = OperationQueue()
  queue.addOperation {
    let shown = BlockOperation { print("shown") }
    OperationQueue.main.addOperation(shown)
    shown.waitUntilFinished()
    DispatchQueue.main.async { done() }
  }
  RunLoop.main.run()
}

func operationBarrier() {
  let queue = OperationQueue()
  for i in 0..<4 { queue.addOperation { pause(UInt32(i) * 300) } }
  queue.addBarrierBlock { print("barrier") }
  queue.addOperation { pause(1500) }
  queue.waitUntilAllOperationsAreFinished()
}
