// WITH(support.swift)
// Tasks, actors and continuations that wait for what cannot come; the first argument says which.
import Foundation

@main enum Tasks {
  static func main() {
    play([
      "each-other": eachOther, "three": three, "self": itself, "group-parent": groupParent,
      "actor-semaphore": actorSemaphore, "actor-two": actorTwo, "actor-lock": actorLock,
      "main-actor": mainActor, "main-actor-await": mainActorAwait,
      "main-actor-queue": mainActorQueue,
      "dropped": dropped, "dropped-unsafe": droppedUnsafe, "dropped-weak": droppedWeak,
      "stored": stored, "twice": twice, "twice-unsafe": twiceUnsafe,
      "pool": pool, "pool-group": poolGroup, "pool-lock": poolLock, "pool-sync": poolSync,
      "stream": stream, "async-let": asyncLet, "bridge": bridge, "lock-across": lockAcross,
      "behind": behind, "victims": victims,
    ])
  }
}

let width = ProcessInfo.processInfo.activeProcessorCount

final class Place<T>: @unchecked Sendable {
  var value: T?
}

/// Blocks the main thread until a task that never ends has ended.
func block(_ body: @escaping @Sendable () async -> Void) {
  let ended = DispatchSemaphore(value: 0)
  Task.detached {
    await body()
    ended.signal()
  }
  ended.wait()  // WAITS(main)
}

// MARK: tasks that wait for each other

func eachOther() {
  let place = Place<Task<Void, Never>>()
  block {
    let first = Task {
      while place.value == nil { await Task.yield() }
      await place.value?.value
    }
    let second = Task { await first.value }
    place.value = second
    await second.value
  }
}

func three() {
  let places = (0..<3).map { _ in Place<Task<Int, Never>>() }
  block {
    for i in 0..<3 {
      places[i].value = Task.detached {
        try? await Task.sleep(nanoseconds: 50_000_000)
        return await (places[(i + 1) % 3].value?.value ?? 0) + 1
      }
    }
    _ = await places[0].value?.value
  }
}

/// A task that is stored, and waits for what is stored there.
actor Refresher {
  private var refresh: Task<Int, Never>?
  func token() async -> Int {
    if let refresh { return await refresh.value }
    let task = Task { await self.load() }
    refresh = task
    return await task.value
  }
  private func load() async -> Int { await token() + 1 }
}
func itself() {
  let refresher = Refresher()
  block { _ = await refresher.token() }
}

/// A child of the group waits for the task that waits for the group.
func groupParent() {
  let place = Place<Task<Void, Never>>()
  block {
    place.value = Task.detached {
      try? await Task.sleep(nanoseconds: 50_000_000)
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<3 { group.addTask { await place.value?.value } }
      }
    }
    await place.value?.value
  }
}

// MARK: actors

/// An actor blocks for what a task on the same actor would signal.
actor Store {
  private let saved = DispatchSemaphore(value: 0)
  func save() {
    Task { self.finish() }
    saved.wait()  // WAITS(saver)
  }
  func finish() { saved.signal() }
}
func actorSemaphore() {
  let store = Store()
  block {
    await Task.detached {
      await store.save()
    }.value
  }
}

/// Two actors, each blocked in a bridge to the other.
actor Peer {
  private let name: String
  init(_ name: String) { self.name = name }
  func ask(_ other: Peer) {
    meet(2)
    let answered = DispatchSemaphore(value: 0)
    Task.detached {
      await other.answer()
      answered.signal()
    }
    answered.wait()
  }
  func answer() {}
}
func actorTwo() {
  let (a, b) = (Peer("a"), Peer("b"))
  block {
    async let one: Void = a.ask(b)
    async let two: Void = b.ask(a)
    _ = await (one, two)
  }
}

/// A thread holds the lock and blocks for an actor; the actor wants the lock.
actor Ledger {
  private let lock: NSLock
  init(_ lock: NSLock) { self.lock = lock }
  func post() {
    call("poster")
    meet(2)
    take()
  }
  private nonisolated func take() {
    lock.lock()  // WAITS(poster)
    lock.unlock()
  }
  func sum() -> Int { 1 }
}
func actorLock() {
  let lock = NSLock()
  let ledger = Ledger(lock)
  Task.detached { await ledger.post() }
  lock.lock()  // HOLDS(actor-lock:main)
  meet(2)
  let summed = DispatchSemaphore(value: 0)
  Task.detached {
    _ = await ledger.sum()
    summed.signal()
  }
  summed.wait()  // WAITS(actor-lock:main)
  lock.unlock()
}

// MARK: the main actor

/// The main thread blocks for a task that needs the main actor.
@MainActor func show() { print("shown") }
func mainActor() {
  let shown = DispatchSemaphore(value: 0)
  Task.detached {
    await show()
    shown.signal()
  }
  shown.wait()  // WAITS(main-actor:main)
}

/// A task of the main actor: what it waits for comes back to the main actor.
func mainActorAwait() {
  Task { @MainActor in
    let group = DispatchGroup()
    group.enter()
    Task { @MainActor in group.leave() }
    waitFor(group)
    done()
  }
  RunLoop.main.run()
}
func waitFor(_ group: DispatchGroup) {
  group.wait()  // WAITS(main-actor-await:main)
}

func mainActorQueue() {
  let queue = DispatchQueue(label: "saves")
  queue.async {
    call("saver")
    let shown = DispatchSemaphore(value: 0)
    Task { @MainActor in
      show()
      shown.signal()
    }
    shown.wait()  // WAITS(saver)
  }
  pause(100)
  queue.sync {}  // WAITS(main-actor-queue:main)
}

// MARK: continuations

/// The closure that would resume is thrown away.
func dropped() {
  block {
    await withCheckedContinuation { (_: CheckedContinuation<Void, Never>) in }
  }
}

func droppedUnsafe() {
  block {
    let _: Int = await withUnsafeContinuation { _ in }
  }
}

final class Locator {
  var answer: ((Int) -> Void)?
  func locate(_ answer: @escaping (Int) -> Void) {
    DispatchQueue.global().asyncAfter(deadline: .now() + 0.1) { [weak self] in
      if self != nil { answer(1) }
    }
  }
}
func droppedWeak() {
  block {
    let place: Int = await withCheckedContinuation { continuation in
      Locator().locate { continuation.resume(returning: $0) }
    }
    print(place)
  }
}

/// Kept where nobody ever looks.
let delegates = Place<[CheckedContinuation<Int, any Error>]>()
func stored() {
  delegates.value = []
  block {
    _ = try? await withCheckedThrowingContinuation { delegates.value?.append($0) }
  }
}

/// A callback for the answer and one for the end: both resume. A trap to come.
func twice() {
  block {
    let value: Int = await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(returning: 1)
        continuation.resume(returning: 2)
      }
    }
    try? await Task.sleep(nanoseconds: 300_000_000)
    print(value)
  }
}

/// Here the runtime itself says it, if it notices.
func twiceUnsafe() {
  block {
    let value: Int = await withUnsafeContinuation { continuation in
      continuation.resume(returning: 1)
      continuation.resume(returning: 2)
    }
    print(value)
  }
}

// MARK: the cooperative pool

/// As many tasks as there are threads block for tasks that have no thread to run on.
func pool() {
  let all = DispatchGroup()
  for _ in 0..<(width + 1) {
    all.enter()
    Task.detached {
      blockFor { await Task.yield() }
      all.leave()
    }
  }
  all.wait()  // WAITS(pool:main)
}
func blockFor(_ body: @escaping @Sendable () async -> Void) {
  let ended = DispatchSemaphore(value: 0)
  Task.detached {
    pause(50)
    await body()
    ended.signal()
  }
  ended.wait()
}

/// Children block for a sibling that has not begun.
func poolGroup() {
  let ready = DispatchSemaphore(value: 0)
  block {
    await withTaskGroup(of: Void.self) { group in
      for i in 0...width {
        group.addTask {
          if i < width { waitFor(ready) } else { for _ in 0..<width { ready.signal() } }
        }
      }
    }
  }
}
func waitFor(_ semaphore: DispatchSemaphore) { semaphore.wait() }

/// The lock that all workers want is held by a task that was suspended and finds no worker.
func poolLock() {
  let lock = NSLock()
  block {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        take(lock)
        try? await Task.sleep(nanoseconds: 100_000_000)
        lock.unlock()
      }
      try? await Task.sleep(nanoseconds: 50_000_000)
      for _ in 0..<width {
        group.addTask {
          take(lock)
          lock.unlock()
        }
      }
    }
  }
}
func take(_ lock: NSLock) { lock.lock() }

/// Tasks sync onto a queue whose block waits for a task.
func poolSync() {
  let queue = DispatchQueue(label: "legacy")
  let all = DispatchGroup()
  for _ in 0..<(width + 1) {
    all.enter()
    Task.detached {
      queue.sync {
        pause(50)
        blockFor {}
      }
      all.leave()
    }
  }
  all.wait()  // WAITS(pool-sync:main)
}

// MARK: streams, children, bridges

/// Nobody finishes the stream.
func stream() {
  let place = Place<AsyncStream<Int>.Continuation>()
  let numbers = AsyncStream<Int> { place.value = $0 }
  place.value?.yield(1)
  block { for await number in numbers { print(number) } }
}

func asyncLet() {
  let place = Place<Task<Int, Never>>()
  block {
    let task = Task.detached { () -> Int in
      while place.value == nil { await Task.yield() }
      async let back = place.value?.value ?? 0
      return await back
    }
    place.value = task
    print(await task.value)
  }
}

/// A synchronous function bridges to a task that needs the queue on which it was called.
func bridge() {
  let queue = DispatchQueue(label: "database")
  let isDone = Flag()
  queue.async {
    call("bridger")
    let loaded = DispatchSemaphore(value: 0)
    Task.detached {
      await withCheckedContinuation { continuation in
        queue.async { continuation.resume() }
      }
      loaded.signal()
    }
    loaded.wait()  // WAITS(bridger)
    isDone.set()
  }
  isDone.poll()
}

/// A lock is kept over an await; the continuation is resumed by who wants that lock first.
func lockAcross() {
  let lock = NSLock()
  block {
    take(lock)
    await withCheckedContinuation { continuation in
      start("resumer") {
        lock.lock()  // WAITS(resumer)
        lock.unlock()
        continuation.resume()
      }
    }
    lock.unlock()
  }
}

/// The continuation is resumed on a queue that waits for the task.
func behind() {
  let queue = DispatchQueue(label: "results")
  let isDone = DispatchSemaphore(value: 0)
  queue.async {
    call("caller")
    let finished = DispatchGroup()
    finished.enter()
    Task.detached {
      let value = await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
          pause(30)
          queue.async { continuation.resume(returning: 1) }
        }
      }
      print(value)
      finished.leave()
    }
    finished.wait()  // WAITS(caller)
    isDone.signal()
  }
  isDone.wait()  // WAITS(behind:main)
}

/// Two tasks wait for each other, a crowd of tasks and threads behind them.
func victims() {
  let place = Place<Task<Int, Never>>()
  let first = Task.detached { () -> Int in
    while place.value == nil { await Task.yield() }
    return await place.value?.value ?? 0
  }
  place.value = Task.detached { await first.value }
  for i in 0..<20 { Task.detached { print(i, await first.value) } }
  for i in 0..<2 {
    start("victim-\(i)") {
      blockFor { _ = await first.value }
    }
  }
  block { _ = await first.value }
}
