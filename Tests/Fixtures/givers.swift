// WITH(support.swift)
// Whoever would end a wait is queued behind the one who waits, while the rest of the program lives on;
// and what looks like it.
import Foundation

@main enum Givers {
  static func main() {
    tick()
    play([
      "main": mainQueue, "main-self": mainSelf, "main-group": mainGroup,
      "main-callback": mainCallback,
      "serial": serial, "serial-target": serialTarget, "serial-item": serialItem,
      "serial-two": serialTwo,
      "barrier": barrier, "operation": operation,
      "group-two": groupTwo, "actor": anActor, "actor-self": actorSelf, "main-actor": mainActor,
      "main-actor-later": mainActorLater, "lock": lock,
      "requests": requests, "consumers": consumers, "limiter": limiter, "captured": captured,
      "progress": progress, "elsewhere": elsewhere, "either": either, "either-runs": eitherRuns,
      "slow-actor": slowActor,
      "slow-group": slowGroup, "slow-operation": slowOperation,
    ])
  }
}

/// Something goes on all the time, as in every service.
func tick() {
  Thread.detachNewThread {
    call("ticker")
    while true { pause(20) }
  }
}

// MARK: - Behind the main thread

let loaded = DispatchSemaphore(value: 0)

func mainQueue() {
  DispatchQueue.main.async { loaded.signal() }
  loaded.wait()  // WAITS(main)
}

final class Loader: @unchecked Sendable {
  private let ready = DispatchSemaphore(value: 0)
  private var value = 0
  func load() -> Int {
    DispatchQueue.global().async {
      let value = 3
      DispatchQueue.main.async { self.finish(value) }
    }
    ready.wait()  // WAITS(main)
    return value
  }
  private func finish(_ value: Int) {
    self.value = value
    ready.signal()
  }
}

func mainSelf() { print(Loader().load()) }

func mainGroup() {
  let group = DispatchGroup()
  group.enter()
  DispatchQueue.global().async {
    pause(10)
    DispatchQueue.main.async { group.leave() }
  }
  group.wait()  // WAITS(main)
}

/// What a library does with completions: they come on the main queue.
func fetch(_ completion: @escaping @Sendable (Int) -> Void) {
  DispatchQueue.global().asyncAfter(deadline: .now() + 0.05) {
    DispatchQueue.main.async { completion(7) }
  }
}

func mainCallback() {
  let done = DispatchSemaphore(value: 0)
  fetch { value in
    print(value)
    done.signal()
  }
  done.wait()  // WAITS(main)
}

// MARK: - Behind a queue's worker

final class Store: @unchecked Sendable {
  let queue: DispatchQueue
  init(_ queue: DispatchQueue = DispatchQueue(label: "store")) { self.queue = queue }
  func save(on other: DispatchQueue? = nil) {
    queue.async {
      call("saver")
      let saved = DispatchSemaphore(value: 0)
      (other ?? self.queue).async { saved.signal() }
      saved.wait()  // WAITS(saver)
    }
  }
}

func serial() {
  Store().save()
  rest()
}

/// The other queue's items run on the first one's.
func serialTarget() {
  let base = DispatchQueue(label: "base")
  Store(base).save(on: DispatchQueue(label: "front", target: base))
  rest()
}

func serialItem() {
  let queue = DispatchQueue(label: "items")
  queue.async {
    call("saver")
    let saved = DispatchSemaphore(value: 0)
    let item = DispatchWorkItem { saved.signal() }
    queue.async(execute: item)
    saved.wait()  // WAITS(saver)
  }
  rest()
}

/// Each worker waits for what is queued behind the other.
func serialTwo() {
  @inline(never) func begin() {
    let (one, two) = (DispatchQueue(label: "one"), DispatchQueue(label: "two"))
    let (first, second) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    one.async {
      call("first")
      meet(2)
      two.async { first.signal() }
      first.wait()  // WAITS(first)
    }
    two.async {
      call("second")
      meet(2)
      one.async { second.signal() }
      second.wait()  // WAITS(second)
    }
  }
  begin()
  rest()
}

/// A block that reads waits for one that is to write after it.
func barrier() {
  let cache = DispatchQueue(label: "cache", attributes: .concurrent)
  cache.async {
    call("saver")
    let written = DispatchSemaphore(value: 0)
    cache.async(flags: .barrier) { written.signal() }
    written.wait()  // WAITS(saver)
  }
  rest()
}

func operation() {
  let queue = OperationQueue()
  queue.maxConcurrentOperationCount = 1
  queue.addOperation {
    call("saver")
    let saved = DispatchSemaphore(value: 0)
    queue.addOperation { saved.signal() }
    saved.wait()  // WAITS(saver)
  }
  rest()
}

/// Two enters, of which one is left in time.
func groupTwo() {
  let queue = DispatchQueue(label: "store")
  queue.async {
    call("saver")
    let group = DispatchGroup()
    group.enter()
    group.enter()
    DispatchQueue.global().async { group.leave() }
    queue.async { group.leave() }
    group.wait()  // WAITS(saver)
  }
  rest()
}

/// The block that would signal runs, and waits for a lock.
func lock() {
  let queue = DispatchQueue(label: "store")
  let lock = NSLock()
  queue.async {
    call("saver")
    let saved = DispatchSemaphore(value: 0)
    lock.lock()
    DispatchQueue.global().async {
      call("helper")
      lock.lock()
      lock.unlock()
    }
    queue.async { saved.signal() }
    saved.wait()  // WAITS(saver)
    lock.unlock()
  }
  rest()
}

// MARK: - Behind an actor

actor Cache {
  private var count = 0
  private let loaded = DispatchSemaphore(value: 0)
  func put() { count += 1 }
  func load() {
    call("saver")
    let saved = DispatchSemaphore(value: 0)
    Task {
      self.put()
      saved.signal()
    }
    saved.wait()  // WAITS(saver)
  }
  func loadSelf() {
    call("saver")
    Task { self.finish() }
    loaded.wait()  // WAITS(saver)
  }
  private func finish() { loaded.signal() }
  /// Slow, and well.
  func slow() -> Int {
    let saved = DispatchSemaphore(value: 0)
    DispatchQueue.global().async {
      pause(4500)
      saved.signal()
    }
    saved.wait()
    count += 1
    return count
  }
}

func anActor() {
  let cache = Cache()
  Task { await cache.load() }
  rest()
}

func actorSelf() {
  let cache = Cache()
  Task { await cache.loadSelf() }
  rest()
}

@MainActor func answer() async -> Int { 42 }

final class Box: @unchecked Sendable { var value = 0 }

func bridged(_ work: @escaping @Sendable () async -> Int) -> Int {
  let box = Box()
  let ended = DispatchSemaphore(value: 0)
  Task.detached {
    box.value = await work()
    ended.signal()
  }
  ended.wait()  // WAITS(main)
  return box.value
}

func mainActor() { print(bridged { await answer() }) }

func mainActorLater() {
  print(
    bridged {
      try? await Task.sleep(nanoseconds: 100_000_000)
      let first = await answer()
      await Task.yield()
      return first
    })
}

// MARK: - Near misses

func rest() { while true { pause(50) } }

/// One request after the other: each asks, and waits for the answer.
final class Service: @unchecked Sendable {
  private let queue = DispatchQueue(label: "requests")
  private let answered = DispatchSemaphore(value: 0)
  private let network = DispatchQueue(label: "network")
  func request(_ milliseconds: UInt32) {
    queue.async {
      self.network.async {
        pause(milliseconds)
        self.answered.signal()
      }
      self.answered.wait()
    }
  }
  func finish() { queue.sync {} }
}

func requests() {
  let service = Service()
  service.request(4500)
  service.request(10)
  service.request(10)
  service.finish()
}

/// Consumers wait for work in a queue; it comes seldom.
func consumers() {
  let queue = DispatchQueue(label: "consumers")
  let work = DispatchSemaphore(value: 0)
  for _ in 0..<3 { queue.async { work.wait() } }
  for _ in 0..<3 {
    pause(3500)
    work.signal()
  }
  queue.sync {}
}

/// Few at a time, and each takes long.
func limiter() {
  let queue = DispatchQueue(label: "limited")
  let permits = DispatchSemaphore(value: 2)
  let all = DispatchGroup()
  for _ in 0..<4 {
    queue.async {
      permits.wait()
      DispatchQueue.global().async(group: all) {
        pause(3500)
        permits.signal()
      }
    }
  }
  queue.sync {}
  all.wait()
}

/// Others' blocks on the main queue, that have the loader at hand.
final class Screen: @unchecked Sendable {
  private let ready = DispatchSemaphore(value: 0)
  private var shown = 0
  func load() {
    DispatchQueue.main.async { self.show() }
    DispatchQueue.global().async {
      pause(4500)
      self.ready.signal()
    }
    ready.wait()
  }
  private func show() { shown += 1 }
}

func captured() { Screen().load() }

/// A block that signals something else.
func progress() {
  let (loaded, seen) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
  DispatchQueue.main.async {
    withExtendedLifetime(loaded) { _ = seen.signal() }
  }
  DispatchQueue.global().async {
    pause(4500)
    loaded.signal()
  }
  loaded.wait()
}

/// On a queue that is not held up.
func elsewhere() {
  let loaded = DispatchSemaphore(value: 0)
  let queue = DispatchQueue(label: "elsewhere")
  queue.async { pause(4500) }
  queue.async { loaded.signal() }
  loaded.wait()
}

/// Two would signal, and one of them can.
func either() {
  let loaded = DispatchSemaphore(value: 0)
  let queue = DispatchQueue(label: "elsewhere")
  DispatchQueue.main.async { loaded.signal() }
  queue.async { pause(4500) }
  queue.async { loaded.signal() }
  loaded.wait()
}

func eitherRuns() {
  let loaded = DispatchSemaphore(value: 0)
  DispatchQueue.main.async { loaded.signal() }
  DispatchQueue.global().async {
    pause(4500)
    loaded.signal()
  }
  loaded.wait()
}

func slowActor() {
  let cache = Cache()
  let ended = Flag()
  Task {
    async let one = cache.slow()
    async let two = cache.slow()
    await cache.put()
    print(await one + two)
    ended.set()
  }
  ended.poll()
}

/// Blocks of a group that take long, and one behind the waiter that has the group at hand.
func slowGroup() {
  let group = DispatchGroup()
  let queue = DispatchQueue(label: "store")
  queue.async {
    group.enter()
    DispatchQueue.global().async {
      pause(4500)
      group.leave()
    }
    queue.async { group.notify(queue: .global()) {} }
    group.wait()
  }
  queue.sync {}
}

func slowOperation() {
  let queue = OperationQueue()
  queue.maxConcurrentOperationCount = 1
  let saved = DispatchSemaphore(value: 0)
  queue.addOperation {
    DispatchQueue.global().async {
      pause(4500)
      saved.signal()
    }
    saved.wait()
  }
  queue.addOperation { pause(1) }
  queue.waitUntilAllOperationsAreFinished()
}
