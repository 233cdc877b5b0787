// WITH(support.swift)
// Operations that wait for each other, for their own queue, or for what never finishes; the first
// argument says which.
import Foundation

@main enum Operations {
  static func main() {
    play([
      "circle-two": circleTwo, "circle-self": circleSelf, "circle-five": circleFive,
      "circle-wait": circleWait, "late-circle": lateCircle, "width-one": widthOne,
      "width-two": widthTwo, "add-and-wait": addAndWait, "whole-queue": wholeQueue,
      "main-queue": mainQueue, "never-finishes": neverFinishes, "suspended": suspended,
      "two-queues": twoQueues, "lock": lock, "semaphore": semaphore, "completion": completion,
      "not-started": notStarted, "victims": victims,
    ])
  }
}

// MARK: dependencies in a circle

func circleTwo() {
  let queue = OperationQueue()
  let (parse, load) = (BlockOperation { print("parse") }, BlockOperation { print("load") })
  parse.addDependency(load)
  load.addDependency(parse)
  queue.addOperations([parse, load], waitUntilFinished: true)  // WAITS(circle-two:main)
}

func circleSelf() {
  let queue = OperationQueue()
  let operation = BlockOperation { print("never") }
  operation.addDependency(operation)
  queue.addOperation(operation)
  operation.waitUntilFinished()  // WAITS(circle-self:main)
}

/// Over two queues.
func circleFive() {
  let queues = [OperationQueue(), OperationQueue()]
  let steps = (0..<5).map { i in BlockOperation { print(i) } }
  for i in 0..<5 { steps[i].addDependency(steps[(i + 1) % 5]) }
  for i in 0..<5 { queues[i % 2].addOperation(steps[i]) }
  for queue in queues { queue.waitUntilAllOperationsAreFinished() }  // WAITS(circle-five:main)
}

/// Nobody waits: the last of them would say that all is done.
func circleWait() {
  let queue = OperationQueue()
  let (a, b) = (BlockOperation {}, BlockOperation {})
  a.addDependency(b)
  b.addDependency(a)
  b.completionBlock = { done() }
  queue.addOperations([a, b], waitUntilFinished: false)
  RunLoop.main.run()
}

/// An operation that runs waits for one that depends on it.
func lateCircle() {
  let queue = OperationQueue()
  let isDone = Flag()
  var publish: BlockOperation?
  let edit = BlockOperation {
    call("edit")
    publish?.waitUntilFinished()  // WAITS(edit)
    isDone.set()
  }
  publish = BlockOperation { print("published") }
  publish?.addDependency(edit)
  queue.addOperation(publish!)
  queue.addOperation(edit)
  isDone.poll()
}

// MARK: a queue that is full of those who wait

func serial(_ name: String, _ width: Int = 1) -> OperationQueue {
  let queue = OperationQueue()
  queue.name = name
  queue.maxConcurrentOperationCount = width
  return queue
}

func widthOne() {
  let queue = serial("database")
  let isDone = Flag()
  queue.addOperation {
    call("outer")
    let inner = BlockOperation { print("inner") }
    queue.addOperation(inner)
    inner.waitUntilFinished()  // WAITS(outer)
    isDone.set()
  }
  isDone.poll()
}

func widthTwo() {
  let queue = serial("images", 2)
  for i in 0..<2 {
    queue.addOperation {
      call("album-\(i)")
      meet(2)
      let cover = BlockOperation { print("cover") }
      queue.addOperation(cover)
      cover.waitUntilFinished()  // WAITS(album-*)
    }
  }
  queue.waitUntilAllOperationsAreFinished()  // WAITS(width-two:main)
}

func addAndWait() {
  let queue = serial("sync")
  queue.addOperation {
    call("syncer")
    let parts = (0..<3).map { i in BlockOperation { print(i) } }
    queue.addOperations(parts, waitUntilFinished: true)  // WAITS(syncer)
  }
  queue.waitUntilAllOperationsAreFinished()  // WAITS(add-and-wait:main)
}

/// An operation waits for all of its queue, itself among them.
func wholeQueue() {
  let queue = serial("cleanup", 4)
  queue.addOperation {
    call("cleaner")
    queue.waitUntilAllOperationsAreFinished()  // WAITS(cleaner)
  }
  queue.waitUntilAllOperationsAreFinished()  // WAITS(whole-queue:main)
}

func mainQueue() {
  let refresh = BlockOperation { print("refreshed") }
  OperationQueue.main.addOperation(refresh)
  refresh.waitUntilFinished()  // WAITS(main-queue:main)
}

// MARK: what never finishes

/// An asynchronous operation that forgets to say that it is finished.
final class Upload: Operation, @unchecked Sendable {
  private let began = Flag()
  override var isAsynchronous: Bool { true }
  override var isExecuting: Bool { began.isSet }
  override var isFinished: Bool { false }
  override func start() { began.set() }
}
func neverFinishes() {
  let queue = OperationQueue()
  let upload = Upload()
  queue.addOperation(upload)
  upload.waitUntilFinished()  // WAITS(never-finishes:main)
}

func suspended() {
  let queue = OperationQueue()
  queue.isSuspended = true
  queue.addOperation { print("resumed") }
  queue.waitUntilAllOperationsAreFinished()  // WAITS(suspended:main)
}

func notStarted() {
  let operation = BlockOperation { print("started") }
  operation.waitUntilFinished()  // WAITS(not-started:main)
}

// MARK: among others

func twoQueues() {
  let (reads, writes) = (serial("reads"), serial("writes"))
  var pair: [Operation] = []
  let isDone = Flag()
  let read = BlockOperation {
    call("read")
    meet(2)
    let after = BlockOperation {}
    writes.addOperation(after)
    after.waitUntilFinished()  // WAITS(read)
    isDone.set()
  }
  let write = BlockOperation {
    call("write")
    meet(2)
    let after = BlockOperation {}
    reads.addOperation(after)
    after.waitUntilFinished()  // WAITS(write)
  }
  pair = [read, write]
  reads.addOperation(pair[0])
  writes.addOperation(pair[1])
  isDone.poll()
}

func lock() {
  let queue = OperationQueue()
  let lock = NSLock()
  watch(
    start("manager") {
      lock.lock()  // HOLDS(manager)
      let operation = BlockOperation {
        call("operator")
        lock.lock()  // WAITS(operator)
        lock.unlock()
      }
      queue.addOperation(operation)
      operation.waitUntilFinished()  // WAITS(manager)
      lock.unlock()
    })
}

func semaphore() {
  let queue = serial("requests")
  let isDone = Flag()
  queue.addOperation {
    call("requester")
    let answered = DispatchSemaphore(value: 0)
    queue.addOperation { answered.signal() }
    answered.wait()  // WAITS(requester)
    isDone.set()
  }
  isDone.poll()
}

/// The completion block of the first would start the second, for which the first waits.
func completion() {
  let queue = OperationQueue()
  let second = BlockOperation { print("second") }
  let first = BlockOperation {
    call("first")
    second.waitUntilFinished()  // WAITS(first)
  }
  first.completionBlock = { queue.addOperation(second) }
  queue.addOperation(first)
  first.waitUntilFinished()  // WAITS(completion:main)
}

func victims() {
  let queue = serial("exports")
  queue.addOperation {
    call("outer")
    let inner = BlockOperation { print("inner") }
    queue.addOperation(inner)
    inner.waitUntilFinished()  // WAITS(outer)
  }
  pause(100)
  for i in 0..<2 {
    start("victim-\(i)") {
      let own = BlockOperation { print(i) }
      queue.addOperation(own)
      own.waitUntilFinished()
    }
  }
  pause(100)
  while true { pause(50) }
}
