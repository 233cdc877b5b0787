// WITH(support.swift)
// Programs that use queues, groups, semaphores, values made once and locks as they are meant to be
// used, and look like those that do not; the first argument says which. Several stand still for more
// than two seconds, and then go on. Nothing may be said of them.
import Foundation
import Synchronization

@main enum Legal {
  static func main() {
    play([
      "signal-late": signalLate, "signal-early": signalEarly, "limiter": limiter,
      "hand-off": handOff, "events": events, "freed": freed, "timed": timed,
      "notify": notify, "group-again": groupAgain, "group-empty": groupEmpty,
      "group-timed": groupTimed, "exit-early": exitEarly, "leave-late": leaveLate,
      "sync-chain": syncChain, "sync-other": syncOther, "readers": readers,
      "barriers": barriers, "barrier-own": barrierOwn, "resumed": resumed,
      "suspend-count": suspendCount, "activated": activated, "targets": targets,
      "target-concurrent": targetConcurrent, "async-self": asyncSelf, "main-sync": mainSync,
      "main-async": mainAsync, "item-cancelled": itemCancelled, "item-wait": itemWait,
      "perform": perform, "perform-nested": performNested, "long-block": longBlock,
      "once": once, "once-long": onceLong, "once-chain": onceChain, "once-queue": onceQueue,
      "value": value, "value-long": valueLong, "value-order": valueOrder, "value-try": valueTry,
      "condition-idle": conditionIdle, "condition-early": conditionEarly,
      "condition-late": conditionLate, "condition-timed": conditionTimed,
      "conditionlock": conditionLock, "conditionlock-trap": conditionLockTrap,
      "idle-pool": idlePool, "mixed": mixed, "source-freed": sourceFreed, "crossed": crossed,
      "worker-ends": workerEnds, "forked-perform": forkedPerform,
    ])
  }
}

/// Longer than anybody needs to be sure that nothing moves.
let long: UInt32 = 2800

// MARK: semaphores

func signalLate() {
  let ready = DispatchSemaphore(value: 0)
  start("late") {
    pause(long)
    ready.signal()
  }
  ready.wait()
}

/// What is signalled before the wait is remembered.
func signalEarly() {
  let ready = DispatchSemaphore(value: 0)
  for _ in 0..<5 { ready.signal() }
  for _ in 0..<5 { ready.wait() }
}

/// Three permits, and those who have them keep them for a while.
func limiter() {
  let permits = DispatchSemaphore(value: 3)
  let all = DispatchGroup()
  for _ in 0..<9 {
    DispatchQueue.global().async(group: all) {
      permits.wait()
      defer { permits.signal() }
      pause(900)
    }
  }
  all.wait()
}

/// A permit taken by one thread is given back by another.
func handOff() {
  let permits = DispatchSemaphore(value: 2)
  let queue = DispatchQueue(label: "finisher")
  for i in 0..<6 {
    permits.wait()
    queue.asyncAfter(deadline: .now() + 0.1 * Double(i % 3)) { permits.signal() }
  }
  queue.sync {}
  pause(400)
}

/// A semaphore that counts what happened, not what is free.
func events() {
  let (happened, room) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 4))
  let consumer = start("consumer") {
    for _ in 0..<200 {
      happened.wait()
      room.signal()
    }
  }
  for _ in 0..<200 {
    room.wait()
    happened.signal()
  }
  watch(consumer)
}

/// Semaphores that go with all their permits in, or with more.
func freed() {
  for i in 0..<50 {
    let permits = DispatchSemaphore(value: 2)
    permits.wait()
    permits.signal()
    let counted = DispatchSemaphore(value: 0)
    for _ in 0..<(i % 3) { counted.signal() }
  }
}

func timed() {
  let never = DispatchSemaphore(value: 0)
  print(never.wait(timeout: .now() + 2.6) == .timedOut)
  print(never.wait(wallTimeout: .now() + 0.2) == .timedOut)
}

// MARK: groups

func notify() {
  let group = DispatchGroup()
  group.enter()
  DispatchQueue.global().asyncAfter(deadline: .now() + 2.8) { group.leave() }
  group.notify(queue: .main) { done() }
  dispatchMain()
}

func groupAgain() {
  let group = DispatchGroup()
  for round in 0..<5 {
    for _ in 0..<8 { DispatchQueue.global().async(group: group) { pause(10) } }
    group.wait()
    group.enter()
    start("round-\(round)") { group.leave() }
    group.wait()
  }
}

func groupEmpty() {
  let group = DispatchGroup()
  group.wait()
  let told = DispatchSemaphore(value: 0)
  group.notify(queue: .global()) { told.signal() }
  told.wait()
}

/// Asks again and again, and is told at last.
func groupTimed() {
  let group = DispatchGroup()
  group.enter()
  start("worker") {
    pause(1500)
    group.leave()
  }
  while group.wait(timeout: .now() + 0.2) == .timedOut {}
}

/// The program ends while a thread that would leave is still at work.
func exitEarly() {
  let group = DispatchGroup()
  group.enter()
  start("saver") {
    pause(20000)
    group.leave()
  }
  group.notify(queue: .global()) { print("saved") }
  pause(200)
}

func leaveLate() {
  let group = DispatchGroup()
  for i in 0..<3 {
    group.enter()
    start("leaver-\(i)") {
      pause(long + 100 * UInt32(i))
      group.leave()
    }
  }
  group.wait()
}

// MARK: queues

/// The same order from many threads.
func syncChain() {
  let queues = (0..<4).map { DispatchQueue(label: "chain.\($0)") }
  let all = DispatchGroup()
  for _ in 0..<4 {
    all.enter()
    start("chain") {
      for _ in 0..<200 {
        queues[0].sync { queues[1].sync { queues[2].sync { queues[3].sync {} } } }
      }
      all.leave()
    }
  }
  all.wait()
}

/// A block of one queue syncs onto another, whose blocks only go back with async.
func syncOther() {
  let (a, b) = (DispatchQueue(label: "a"), DispatchQueue(label: "b"))
  let all = DispatchGroup()
  for _ in 0..<100 {
    a.async(group: all) { b.sync { a.async(group: all) {} } }
    b.async(group: all) { a.async(group: all) { b.sync {} } }
  }
  all.wait()
}

/// Reads within reads, one thread's after another's, and no writer. At once they may deadlock: see
/// `nestedReads` in queues.swift.
func readers() {
  let table = DispatchQueue(label: "table", attributes: .concurrent)
  let all = DispatchGroup()
  for _ in 0..<4 {
    all.enter()
    start("reader") {
      for _ in 0..<100 { table.sync { table.sync { table.sync {} } } }
      all.leave()
    }
    all.wait()
  }
  table.sync {
    pause(long)
    table.sync { print("read") }
  }
}

/// Writers and readers in turn, none within another.
func barriers() {
  let table = DispatchQueue(label: "table", attributes: .concurrent)
  var rows = 0
  let all = DispatchGroup()
  for i in 0..<6 {
    all.enter()
    start("client-\(i)") {
      for _ in 0..<100 {
        if i % 2 == 0 {
          table.sync(flags: .barrier) { rows += 1 }
        } else {
          table.async(flags: .barrier) { rows += 1 }
        }
        _ = table.sync { rows }
      }
      all.leave()
    }
  }
  all.wait()
  print(table.sync(flags: .barrier) { rows })
}

/// A barrier waits long for a reader that needs nobody.
func barrierOwn() {
  let table = DispatchQueue(label: "table", attributes: .concurrent)
  let isReading = Flag()
  table.async {
    isReading.set()
    pause(long)
  }
  isReading.poll()
  table.async(flags: .barrier) { print("written") }
  print(table.sync { "read" })
}

func resumed() {
  let queue = DispatchQueue(label: "uploads")
  queue.suspend()
  queue.async { print("uploaded") }
  start("resumer") {
    pause(long)
    queue.resume()
  }
  queue.sync { print("all") }
}

func suspendCount() {
  let queue = DispatchQueue(label: "nested")
  for _ in 0..<3 { queue.suspend() }
  let all = DispatchGroup()
  queue.async(group: all) { print("run") }
  for _ in 0..<3 {
    pause(100)
    queue.resume()
  }
  all.wait()
}

func activated() {
  let queue = DispatchQueue(label: "lazy", attributes: .initiallyInactive)
  let all = DispatchGroup()
  queue.async(group: all) { print("activated") }
  DispatchQueue.global().asyncAfter(deadline: .now() + 2.7) { queue.activate() }
  all.wait()
}

/// Queues with one target: each of them syncs downwards only, or goes sideways with async.
func targets() {
  let root = DispatchQueue(label: "root")
  let (left, right) = (
    DispatchQueue(label: "left", target: root), DispatchQueue(label: "right", target: root)
  )
  let all = DispatchGroup()
  for _ in 0..<100 {
    left.async(group: all) { right.async(group: all) {} }
    right.async(group: all) { left.async(group: all) {} }
    left.sync {}
    right.sync {}
    root.sync {}
  }
  all.wait()
}

/// Serial queues over a concurrent one are not one queue.
func targetConcurrent() {
  let root = DispatchQueue(label: "root", attributes: .concurrent)
  let (left, right) = (
    DispatchQueue(label: "left", target: root), DispatchQueue(label: "right", target: root)
  )
  for _ in 0..<100 { left.sync { right.sync { root.sync {} } } }
  let all = DispatchGroup()
  left.async(group: all) {
    pause(1200)
    right.sync { pause(1200) }
  }
  all.wait()
}

/// A queue that hands itself its next step.
func asyncSelf() {
  let queue = DispatchQueue(label: "steps")
  let ended = DispatchSemaphore(value: 0)
  func step(_ left: Int) {
    if left == 0 { ended.signal() } else { queue.async { step(left - 1) } }
  }
  step(100)
  ended.wait()
}

func mainSync() {
  DispatchQueue.global().async {
    for i in 0..<20 { DispatchQueue.main.sync { if i == 10 { pause(1500) } } }
    DispatchQueue.main.async { done() }
  }
  RunLoop.main.run()
}

/// A worker waits for the main queue, for which nobody looks yet.
func mainAsync() {
  let shown = DispatchSemaphore(value: 0)
  start("worker") {
    DispatchQueue.main.async { shown.signal() }
    shown.wait()
    DispatchQueue.main.async { done() }
  }
  pause(long)
  dispatchMain()
}

func itemCancelled() {
  let queue = DispatchQueue(label: "items")
  let item = DispatchWorkItem { print("not cancelled") }
  queue.suspend()
  queue.async(execute: item)
  item.cancel()
  DispatchQueue.global().asyncAfter(deadline: .now() + 1) { queue.resume() }
  item.wait()
}

func itemWait() {
  let (queue, other) = (DispatchQueue(label: "items"), DispatchQueue(label: "other"))
  let item = DispatchWorkItem { pause(long) }
  let told = DispatchSemaphore(value: 0)
  item.notify(queue: other) { told.signal() }
  other.sync {
    queue.async(execute: item)
    item.wait()
  }
  told.wait()
}

func perform() {
  let (lock, total) = (NSLock(), Tally())
  DispatchQueue.concurrentPerform(iterations: 40) { i in
    lock.lock()
    total.add(i)
    lock.unlock()
    if i == 20 { pause(long) }
  }
  print(total.value)
}

func performNested() {
  let queue = DispatchQueue(label: "sums")
  var total = 0
  DispatchQueue.concurrentPerform(iterations: 8) { i in
    DispatchQueue.concurrentPerform(iterations: 8) { j in queue.sync { total += i * j } }
  }
  print(queue.sync { total })
}

/// A block that computes for long keeps everybody waiting, and ends.
func longBlock() {
  let queue = DispatchQueue(label: "render")
  let all = DispatchGroup()
  queue.async { pause(long) }
  for i in 0..<3 {
    all.enter()
    start("viewer-\(i)") {
      queue.sync {}
      all.leave()
    }
  }
  all.wait()
}

// MARK: values made once

enum Slow {
  static let value: Int = {
    pause(200)
    return 7
  }()
  static let slower: Int = {
    pause(long)
    return Slow.value + 1
  }()
  static let chain: Int = Deep.one
  static let queued: Int = DispatchQueue(label: "maker").sync { Slow.value }
}
enum Deep {
  static let one: Int = two + 1
  static let two: Int = three + 1
  static let three: Int = 1
}
func together(_ count: Int, _ body: @escaping () -> Int) {
  let (all, total) = (DispatchGroup(), Tally())
  for i in 0..<count {
    all.enter()
    start("user-\(i)") {
      total.add(body())
      all.leave()
    }
  }
  all.wait()
  print(total.value)
}
func once() { together(8) { Slow.value } }
func onceLong() { together(4) { Slow.slower } }
func onceChain() { together(8) { Slow.chain + Deep.two + Deep.three } }
func onceQueue() { together(8) { Slow.queued } }

// MARK: Synchronization.Mutex

final class Vault: Sendable {
  let a = Mutex(0), b = Mutex(0)
}
let vault = Vault()
func value() {
  together(4) {
    for _ in 0..<20000 { vault.a.withLock { $0 += 1 } }
    return 1
  }
  print(vault.a.withLock { $0 })
}
func valueLong() {
  let isHeld = Flag()
  start("holder") {
    vault.a.withLock { _ in
      isHeld.set()
      pause(long)
    }
  }
  isHeld.poll()
  together(3) {
    vault.a.withLock { $0 += 1 }
    return 1
  }
}
func valueOrder() {
  together(4) {
    for _ in 0..<2000 { vault.a.withLock { a in vault.b.withLock { $0 += a } } }
    return 1
  }
}
/// Opposite orders, the second lock only tried.
func valueTry() {
  let (one, two) = (DispatchGroup(), Flag())
  DispatchQueue.global().async(group: one) {
    while !two.isSet { vault.a.withLock { _ in vault.b.withLockIfAvailable { $0 += 1 } } }
  }
  DispatchQueue.global().async(group: one) {
    for _ in 0..<2000 { vault.b.withLock { _ in vault.a.withLockIfAvailable { $0 += 1 } } }
    two.set()
  }
  one.wait()
}

// MARK: conditions

/// Workers wait for a job for long, and for ever once it was done.
func conditionIdle() {
  let condition = NSCondition()
  var jobs: [() -> Void] = []
  for i in 0..<3 {
    start("worker-\(i)") {
      while true {
        condition.lock()
        while jobs.isEmpty { condition.wait() }
        let job = jobs.removeFirst()
        condition.unlock()
        job()
      }
    }
  }
  let ended = DispatchSemaphore(value: 0)
  pause(long)
  condition.lock()
  jobs.append { ended.signal() }
  condition.signal()
  condition.unlock()
  ended.wait()
}

/// The signal comes early, and the question is asked before the wait.
func conditionEarly() {
  let condition = NSCondition()
  var isReady = false
  let setter = start("setter") {
    condition.lock()
    isReady = true
    condition.signal()
    condition.unlock()
  }
  watch(setter)
  condition.lock()
  while !isReady { condition.wait() }
  condition.unlock()
}

func conditionLate() {
  let condition = NSCondition()
  var isReady = false
  start("setter") {
    pause(long)
    condition.lock()
    isReady = true
    condition.broadcast()
    condition.unlock()
  }
  together(3) {
    condition.lock()
    while !isReady { condition.wait() }
    condition.unlock()
    return 1
  }
}

func conditionTimed() {
  let condition = NSCondition()
  condition.lock()
  print(condition.wait(until: Date(timeIntervalSinceNow: 2.6)))
  condition.unlock()
}

func conditionLock() {
  let lock = NSConditionLock(condition: 0)
  let consumer = start("consumer") {
    for _ in 0..<10 {
      lock.lock(whenCondition: 1)
      lock.unlock(withCondition: 0)
    }
  }
  for i in 0..<10 {
    lock.lock(whenCondition: 0)
    if i == 5 { pause(long) }
    lock.unlock(withCondition: 1)
  }
  watch(consumer)
}

/// Foundation's own traps as soon as it has to wait: that is none of ours to speak of.
func conditionLockTrap() {
  let lock = NSConditionLock(condition: 0)
  lock.lock(whenCondition: 1)
}

// MARK: more of them at once

/// Everybody idles for good, and the main thread ends the program after a while.
func idlePool() {
  let (condition, semaphore) = (NSCondition(), DispatchSemaphore(value: 0))
  for i in 0..<2 {
    start("idle-\(i)") {
      condition.lock()
      condition.wait()
    }
    start("asleep-\(i)") { semaphore.wait() }
  }
  pause(long)
}

/// A lock, a queue, a value made once and a group, always in that order.
func mixed() {
  let (lock, queue) = (NSLock(), DispatchQueue(label: "mixed"))
  together(6) {
    var sum = 0
    for _ in 0..<50 {
      lock.lock()
      queue.sync { sum += Slow.value }
      let group = DispatchGroup()
      DispatchQueue.global().async(group: group) { queue.sync {} }
      group.wait()
      lock.unlock()
    }
    return sum
  }
}

/// Sources and queues that are resumed as often as they were suspended, and then let go.
func sourceFreed() {
  for _ in 0..<20 {
    let timer = DispatchSource.makeTimerSource(queue: .global())
    timer.setEventHandler {}
    timer.schedule(deadline: .now() + 100)
    timer.resume()
    timer.suspend()
    timer.resume()
    timer.cancel()
    let queue = DispatchQueue(label: "short")
    queue.suspend()
    queue.resume()
  }
  pause(100)
}

/// Locks and queues in opposite orders, one after the other.
func crossed() {
  let (lock, queue) = (NSLock(), DispatchQueue(label: "crossed"))
  lock.lock()
  queue.sync {}
  lock.unlock()
  let second = DispatchSemaphore(value: 0)
  DispatchQueue.global().async {
    queue.sync {
      lock.lock()
      lock.unlock()
    }
    second.signal()
  }
  second.wait()
}

/// What a thread of libdispatch's kept is dropped as it ends, by code that takes locks; libdispatch
/// has given back its own part of the thread by then.
func workerEnds() {
  var key = pthread_key_t()
  pthread_key_create(&key) { _ in
    for _ in 0..<4 {
      let (outer, inner) = (NSLock(), NSLock())
      outer.lock()
      inner.lock()
      inner.unlock()
      outer.unlock()
    }
    gone.set()
  }
  let kept = key
  let blocks = DispatchGroup()
  DispatchQueue.global().async(group: blocks) {
    pthread_setspecific(kept, "something")
    for _ in 0..<8 { DispatchQueue.global().async(group: blocks) {} }
  }
  blocks.wait()
  gone.poll()
}
private let gone = Flag()

@_silgen_name("fork") private func copyOfProcess() -> Int32
@_silgen_name("_dispatch_main_queue_callback_4CF")
private func serveMainQueue(_ message: UnsafeMutableRawPointer?)

/// A fork in the midst of blocks that run and of others that wait: the child runs what waits.
func forkedPerform() {
  let (outer, inner, parent, forking) = (NSLock(), NSLock(), getpid(), pthread_self())
  func nest() {
    outer.lock()
    inner.lock()
    inner.unlock()
    outer.unlock()
  }
  nest()
  let child = Atomic<Int32>(0)
  let served = Flag()
  let asked = DispatchQueue(label: "stopped")
  asked.suspend()
  let item = DispatchWorkItem { nest() }
  asked.async(execute: item)
  DispatchQueue.main.async {
    nest()
    served.set()
  }
  DispatchQueue.concurrentPerform(iterations: 40) { _ in
    nest()
    pause(1)
    guard pthread_self() == forking, getpid() == parent,
      child.load(ordering: .sequentiallyConsistent) == 0
    else { return }
    child.store(copyOfProcess(), ordering: .sequentiallyConsistent)
    nest()
    if getpid() == parent { return }
    // A run loop would share with the parent what wakes it.
    serveMainQueue(nil)
    item.perform()
    _exit(served.isSet ? 7 : 8)
  }
  while !served.isSet { RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.01)) }
  asked.resume()
  item.wait()
  var status: Int32 = 0
  waitpid(child.load(ordering: .sequentiallyConsistent), &status, 0)
  print("the child ended with", status)
}
