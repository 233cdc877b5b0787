import Foundation
import InstrumentedLocks

/// The same accesses as in `races`, with an order between them.
let ordered: [String: @Sendable () -> Void] = [
  "ordered: a mutex": {
    let lock = NSLock()
    inTurn(
      { shared in for _ in 0..<99 { lock.withLock { shared.value += 1 } } },
      { shared in for _ in 0..<99 { lock.withLock { shared.value += 1 } } })
  },
  "ordered: a value's mutex": {
    final class Guard: Sendable { let mutex = Mutex(0) }
    let guarded = Guard()
    inTurn(
      { shared in guarded.mutex.withLock { _ in write(shared) } },
      { shared in _ = guarded.mutex.withLockIfAvailable { _ in write(shared) } })
  },
  "ordered: recursive, unfair, synchronized": {
    let (recursive, unfair, object) = (NSRecursiveLock(), InstrumentedUnfairLock(), Meeting(1))
    let uses: [@Sendable (() -> Void) -> Void] = [
      { body in recursive.withLock { recursive.withLock { body() } } },
      { body in unfair.withLockUnchecked { body() } }, { body in synchronized(object) { body() } },
    ]
    for use in uses {
      inTurn({ shared in use { write(shared) } }, { shared in use { write(shared) } })
    }
  },
  "ordered: a read-write lock": {
    let lock = InstrumentedReadWriteLock()
    inTurn(
      { shared in lock.withWriteLock { write(shared) } }, { s in lock.withReadLock { read(s) } })
    inTurn(
      { shared in lock.withReadLock { read(shared) } }, { s in lock.withWriteLock { write(s) } })
  },
  "ordered: a group": {
    let (group, shared) = (DispatchGroup(), Shared())
    for _ in 0..<9 {
      shared.value += 1
      DispatchQueue.global().async(group: group) { shared.value += 1 }
      group.wait()
    }
    group.enter()
    racer("leaves") {
      write(shared)
      group.leave()
    }
    group.wait()
    let ended = DispatchSemaphore(value: 0)
    group.notify(queue: .global()) {
      shared.value += 1
      ended.signal()
    }
    ended.wait()
    read(shared)
  },
  "ordered: once": {
    let once = InstrumentedOnce()
    inTurn(
      { shared in once.run { write(shared) } },
      { shared in
        once.run { write(shared) }
        read(shared)
      })
  },
  "ordered: a condition": {
    let condition = NSCondition()
    let shared = Shared()
    racer("sets") {
      condition.withLock {
        write(shared)
        condition.signal()
      }
    }
    condition.withLock { while shared.value == 0 { condition.wait() } }
    let numbered = NSConditionLock(condition: 0)
    racer("numbers") {
      numbered.lock(whenCondition: 0)
      write(shared)
      numbered.unlock(withCondition: 1)
    }
    numbered.lock(whenCondition: 1)
    shared.value += 1
    numbered.unlock()
  },
  "ordered: a channel": {
    let (full, empty, shared) = (
      DispatchSemaphore(value: 0), DispatchSemaphore(value: 1), Shared()
    )
    racer("sends") {
      for index in 0..<99 {
        empty.wait()
        shared.value = index
        full.signal()
      }
    }
    for _ in 0..<99 {
      full.wait()
      read(shared)
      empty.signal()
    }
  },
  "ordered: queues": {
    let (queue, all, shared) = (
      DispatchQueue(label: "one"), DispatchQueue(label: "all", attributes: .concurrent), Shared()
    )
    for _ in 0..<99 { queue.async { shared.value += 1 } }
    queue.sync { shared.value += 1 }
    shared.value += 1
    for index in 0..<99 {
      if index % 9 == 0 {
        all.async(flags: .barrier) { shared.value += 1 }
      } else {
        all.async { read(shared) }
      }
    }
    all.sync(flags: .barrier) { shared.value += 1 }
    // Both lead to one.
    let target = DispatchQueue(label: "target")
    let (left, right) = (
      DispatchQueue(label: "left", target: target), DispatchQueue(label: "right", target: target)
    )
    for _ in 0..<99 {
      left.async { shared.value += 1 }
      right.async { shared.value += 1 }
    }
    left.sync {}
    right.sync {}
    shared.value += 1
    DispatchQueue.concurrentPerform(iterations: 9) { _ in read(shared) }
    shared.value += 1
  },
  "ordered: work items": {
    let (queue, shared) = (DispatchQueue(label: "one", attributes: .concurrent), Shared())
    for flags in [[], DispatchWorkItemFlags.barrier] {
      shared.value += 1
      let item = DispatchWorkItem(flags: flags) { shared.value += 1 }
      let notified = DispatchSemaphore(value: 0)
      item.notify(queue: queue) {
        shared.value += 1
        notified.signal()
      }
      queue.async(execute: item)
      item.wait()
      notified.wait()
      shared.value += 1
      queue.sync(execute: DispatchWorkItem { shared.value += 1 })
      shared.value += 1
    }
  },
  "ordered: operations": {
    let (queue, shared) = (OperationQueue(), Shared())
    shared.value += 1
    let first = BlockOperation { shared.value += 1 }
    let second = BlockOperation { shared.value += 1 }
    second.addDependency(first)
    let completed = DispatchSemaphore(value: 0)
    second.completionBlock = {
      shared.value += 1
      completed.signal()
    }
    queue.addOperations([first, second], waitUntilFinished: false)
    completed.wait()
    second.waitUntilFinished()
    shared.value += 1
    queue.maxConcurrentOperationCount = 1
    for _ in 0..<99 { queue.addOperation { shared.value += 1 } }
    queue.addBarrierBlock { shared.value += 1 }
    queue.waitUntilAllOperationsAreFinished()
    shared.value += 1
  },
  "ordered: a thread's beginning and end": {
    let shared = Shared()
    let known = InstrumentedThread { shared.value += 1 }
    shared.value += 1
    known.start()
    while !known.isFinished { usleep(1000) }
    shared.value += 1
    // By pthread: neither is seen.
    for _ in 0..<9 {
      var id = pthread_t()
      pthread_create(
        &id, nil,
        { argument in
          Unmanaged<Shared>.fromOpaque(argument!).takeUnretainedValue().value += 1
          return nil
        }, Unmanaged.passUnretained(shared).toOpaque())
      pthread_join(id, nil)
      shared.value += 1
    }
  },
  "ordered: said": {
    let (shared, order) = (Shared(), HappensBefore())
    racer("first") {
      write(shared)
      order.release()
      shared.met.arrive()
    }
    shared.met.arrive()
    order.acquire()
    write(shared)
  },
  "ordered: tasks": {
    // An actor's and its tasks', which go from thread to thread, and threads that wait for them.
    let shared = Shared()
    let ended = DispatchSemaphore(value: 0)
    shared.value += 1
    let counter = TaskCounter(shared)
    Task.detached {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<99 { group.addTask { await counter.add() } }
      }
      ended.signal()
    }
    ended.wait()
    shared.value += 1
    racer("late") {
      shared.value += 1
      ended.signal()
    }
    ended.wait()
    read(shared)
  },
  "ordered: in a forked child": {
    let (lock, shared) = (NSLock(), Shared())
    lock.withLock { write(shared) }
    let child = forked()
    if child == 0 {
      lock.withLock { write(shared) }
      exit(shared.value == 1 ? 7 : 1)
    }
    var status: Int32 = 0
    waitpid(child, &status, 0)
    say("child", (status >> 8) & 0xff)
  },
  "sampled": {
    RaceChecking.period = 1_000_000
    inTurn(write, write)
  },
]

actor TaskCounter {
  let shared: Shared
  init(_ shared: Shared) { self.shared = shared }
  func add() { shared.value += 1 }
}
