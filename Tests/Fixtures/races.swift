// WITH(support.swift)
// Built with ThreadSanitizer (the variant tsan). The first argument says which: those that begin with
// "two" race, at the lines that say RACES; all others are ordered, most of them in a way that
// ThreadSanitizer alone does not see. One of them says what its environment is.
import Dispatch
import Foundation
import Synchronization

@main enum Races {
  static func main() {
    play([
      "two-threads": twoThreads, "two-queues": twoQueues, "two-locks": twoLocks,
      "two-readers": twoReaders, "two-globals": twoGlobals, "two-children": twoChildren,
      "mutex": mutex, "mutex-try": mutexTry, "continuations": continuations, "serial": serial,
      "barrier": barrier, "group": group, "notify": notify, "semaphore": semaphore, "item": item,
      "operations": operations, "condition": condition, "actor": actor, "once": once,
      "readwrite": readWrite, "join": join, "churn": churn, "target": target, "timer": timer,
      "environment": environment,
    ])
  }
}

final class Box: @unchecked Sendable {
  var value = 0
  var list: [Int] = []
}
let box = Box()
nonisolated(unsafe) var counter = 0
let rounds = 400

/// Two threads, whose ends are waited for in a way that is known to order.
func both(_ first: @escaping () -> Void, _ second: @escaping () -> Void) {
  let ended = DispatchSemaphore(value: 0)
  for (name, body) in [("ann", first), ("ben", second)] {
    start(name) {
      meet(2)
      body()
      ended.signal()
    }
  }
  ended.wait()
  ended.wait()
}

func both(_ body: @escaping () -> Void) { both(body, body) }

func block(_ body: @escaping @Sendable () async -> Void) {
  let ended = DispatchSemaphore(value: 0)
  Task.detached {
    await body()
    ended.signal()
  }
  ended.wait()
}

// MARK: Races

func twoThreads() {
  both(
    { for _ in 0..<rounds { box.value += 1 } },  // RACES
    { for _ in 0..<rounds { box.value += 1 } })  // RACES
}

func twoQueues() {
  let (first, second) = (DispatchQueue(label: "first"), DispatchQueue(label: "second"))
  first.async {
    meet(2)
    for _ in 0..<rounds { box.value += 1 }  // RACES
  }
  second.async {
    meet(2)
    for _ in 0..<rounds { box.value += 1 }  // RACES
  }
  first.sync {}
  second.sync {}
}

func twoLocks() {
  let (first, second) = (NSLock(), NSLock())
  both(
    { for _ in 0..<rounds { first.withLock { box.value += 1 } } },  // RACES
    { for _ in 0..<rounds { second.withLock { box.value += 1 } } })  // RACES
}

/// A concurrent queue, as if it were a lock.
func twoReaders() {
  let queue = DispatchQueue(label: "readers", attributes: .concurrent)
  both(
    { for _ in 0..<rounds { queue.sync { box.value += 1 } } },  // RACES
    { for _ in 0..<rounds { queue.sync { box.value += 1 } } })  // RACES
}

func twoGlobals() {
  both(
    { for _ in 0..<rounds { counter += 1 } },  // RACES
    { for _ in 0..<rounds { counter += 1 } })  // RACES
}

/// In a process that this one starts; it itself does nothing.
func twoChildren() {
  let child = Process()
  child.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
  child.arguments = ["two-threads"]
  do { try child.run() } catch { return }
  child.waitUntilExit()
}

// MARK: Order

func mutex() {
  let mutex = Mutex(0)
  both { for _ in 0..<4000 { mutex.withLock { box.value += $0 } } }
}

func mutexTry() {
  let mutex = Mutex(0)
  both { for _ in 0..<4000 { _ = mutex.withLockIfAvailable { box.value += $0 } } }
}

func continuations() {
  block {
    for _ in 0..<rounds {
      let mine = Box()
      let theirs: Box = await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
          mine.list.append(1)
          continuation.resume(returning: mine)
        }
      }
      box.value += theirs.list.count
      let late: Box = await withUnsafeContinuation { continuation in
        DispatchQueue.global().async {
          mine.list.append(1)
          continuation.resume(returning: mine)
        }
      }
      box.value += late.list.count
    }
  }
}

func serial() {
  let queue = DispatchQueue(label: "serial")
  both(
    { for _ in 0..<rounds { queue.async { box.list.append(1) } } },
    { for _ in 0..<rounds { queue.sync { box.list.append(1) } } })
  print(queue.sync { box.list.count })
}

func barrier() {
  let queue = DispatchQueue(label: "barrier", attributes: .concurrent)
  both(
    { for _ in 0..<rounds { queue.async(flags: .barrier) { box.list.append(1) } } },
    { for _ in 0..<rounds { if queue.sync(execute: { box.list.count }) < 0 { done() } } })
  print(queue.sync(flags: .barrier) { box.list.count })
}

func group() {
  let group = DispatchGroup()
  let boxes = (0..<50).map { _ in Box() }
  for box in boxes { DispatchQueue.global().async(group: group) { box.list.append(1) } }
  for box in boxes {
    group.enter()
    DispatchQueue.global().async {
      withExtendedLifetime(box) {}
      group.leave()
    }
  }
  group.wait()
  print(boxes.reduce(0) { $0 + $1.list.count })
}

func notify() {
  let (group, told) = (DispatchGroup(), DispatchSemaphore(value: 0))
  let boxes = (0..<50).map { _ in Box() }
  for box in boxes { DispatchQueue.global().async(group: group) { box.list.append(1) } }
  group.notify(queue: .global()) {
    print(boxes.reduce(0) { $0 + $1.list.count })
    told.signal()
  }
  told.wait()
}

func semaphore() {
  let (full, empty) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
  both(
    {
      for number in 0..<rounds {
        box.list.append(number)
        full.signal()
        empty.wait()
      }
    },
    {
      for _ in 0..<rounds {
        full.wait()
        box.value += box.list.count
        empty.signal()
      }
    })
}

func item() {
  for _ in 0..<50 {
    let mine = Box()
    let item = DispatchWorkItem { mine.list.append(1) }
    DispatchQueue.global().async(execute: item)
    item.wait()
    box.value += mine.list.count
  }
}

func operations() {
  let queue = OperationQueue()
  var last: Operation?
  for _ in 0..<50 {
    let operation = BlockOperation { box.list.append(1) }
    if let last { operation.addDependency(last) }
    last = operation
    queue.addOperation(operation)
  }
  queue.waitUntilAllOperationsAreFinished()
  print(box.list.count)
}

func condition() {
  let condition = NSCondition()
  both(
    {
      for number in 0..<rounds {
        condition.withLock { box.list.append(number) }
        condition.signal()
      }
    },
    {
      for _ in 0..<rounds {
        condition.lock()
        while box.list.isEmpty { condition.wait() }
        box.value += box.list.removeFirst()
        condition.unlock()
      }
    })
}

actor Counter {
  private let box = Box()
  func count() -> Int {
    box.list.append(1)
    return box.list.count
  }
}

func actor() {
  block {
    let counter = Counter()
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<rounds { group.addTask { await counter.count() } }
      for await count in group { box.value = max(box.value, count) }
    }
    print(box.value)
  }
}

private enum Once {
  static let box: Box = {
    let box = Box()
    box.list = [1, 2, 3]
    return box
  }()
}

func once() {
  both { if Once.box.list.count != 3 { done() } }
}

func readWrite() {
  let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
  pthread_rwlock_init(lock, nil)
  both(
    {
      for _ in 0..<rounds {
        pthread_rwlock_wrlock(lock)
        box.value += 1
        pthread_rwlock_unlock(lock)
      }
    },
    {
      for _ in 0..<rounds {
        pthread_rwlock_rdlock(lock)
        if box.value < 0 { done() }
        pthread_rwlock_unlock(lock)
      }
    })
}

func join() {
  for _ in 0..<20 {
    let mine = Box()
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      {
        if let box = $0 { Unmanaged<Box>.fromOpaque(box).takeRetainedValue().list.append(1) }
        return nil
      }, Unmanaged.passRetained(mine).toOpaque())
    pthread_join(thread, nil)
    box.value += mine.list.count
  }
}

func churn() {
  let mutex = Mutex(0)
  for _ in 0..<50 {
    let ended = DispatchSemaphore(value: 0)
    for _ in 0..<4 {
      Thread {
        mutex.withLock { $0 += 1 }
        ended.signal()
      }.start()
    }
    for _ in 0..<4 { ended.wait() }
  }
}

func target() {
  let root = DispatchQueue(label: "root")
  let first = DispatchQueue(label: "first", target: root)
  let second = DispatchQueue(label: "second", target: root)
  both(
    { for _ in 0..<rounds { first.async { box.list.append(1) } } },
    { for _ in 0..<rounds { second.async { box.list.append(1) } } })
  first.sync {}
  second.sync {}
  print(root.sync { box.list.count })
}

func timer() {
  let (queue, ended) = (DispatchQueue(label: "timer"), DispatchSemaphore(value: 0))
  let source = DispatchSource.makeTimerSource(queue: queue)
  source.schedule(deadline: .now(), repeating: 0.002)
  source.setEventHandler {
    box.list.append(1)
    if box.list.count == 5 {
      source.cancel()
      ended.signal()
    }
  }
  source.resume()
  ended.wait()
  print(queue.sync { box.list.count >= 5 })
}

func environment() {
  print(ProcessInfo.processInfo.environment["TSAN_OPTIONS"] ?? "none")
}
