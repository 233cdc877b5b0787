// Written for Operation, BlockOperation and OperationQueue: see ParityDispatch.swift.
import Foundation

private class Plain: Operation, @unchecked Sendable {
  let count: Count
  init(_ count: Count) {
    self.count = count
    super.init()
  }
  override func main() { if !isCancelled { count.up() } }
}

/// Finishes some time after `start()` has returned.
private final class Later: Operation, @unchecked Sendable {
  private let lock = NSLock()
  private var state = (isExecuting: false, isFinished: false)
  override var isAsynchronous: Bool { true }
  override var isExecuting: Bool { lock.withLock { state.isExecuting } }
  override var isFinished: Bool { lock.withLock { state.isFinished } }
  override func start() {
    willChangeValue(forKey: "isExecuting")
    lock.withLock { state.isExecuting = true }
    didChangeValue(forKey: "isExecuting")
    DispatchQueue.global().asyncAfter(deadline: .now() + 0.005) { [self] in
      willChangeValue(forKey: "isFinished")
      lock.withLock { state = (false, true) }
      didChangeValue(forKey: "isFinished")
    }
  }
}

private final class Blocks: BlockOperation, @unchecked Sendable {
  override init() { super.init() }
  override func main() {
    super.main()
    addedUp = executionBlocks.count
  }
  var addedUp = 0
}

private final class Queue: OperationQueue, @unchecked Sendable {
  override init() {
    super.init()
    maxConcurrentOperationCount = 1
  }
  override func addOperation(_ operation: Foundation.Operation) { super.addOperation(operation) }
}

extension OperationQueue {
  static func serial(_ name: String) -> OperationQueue {
    let queue = OperationQueue()
    queue.name = name
    queue.maxConcurrentOperationCount = 1
    queue.qualityOfService = .utility
    return queue
  }
}

func parityOfOperations() -> [UInt] {
  var checks = Checks()
  let count = Count()
  let (first, second, later) = (Plain(count), Plain(count), Later())
  second.addDependency(first)
  later.addDependency(second)
  let idle = Operation()
  idle.addDependency(first)
  idle.removeDependency(first)
  checks.check(idle.dependencies.isEmpty)
  let dependencies: [Operation] = second.dependencies
  checks.check(dependencies == [first] && second.dependencies.count == 1)
  checks.check(first.isReady && !second.isReady && later.isAsynchronous)
  first.name = "first"
  first.queuePriority = .high
  first.qualityOfService = .utility
  let priority: Operation.QueuePriority = first.queuePriority
  checks.check(first.name == "first" && priority == .high && first.qualityOfService == .utility)
  let ended = DispatchSemaphore(value: 0)
  later.completionBlock = { ended.signal() }
  let queue = OperationQueue()
  queue.addOperations([later, second], waitUntilFinished: false)
  queue.addOperation(first)
  later.waitUntilFinished()
  queue.waitUntilAllOperationsAreFinished()
  ended.wait()
  checks.check(count.now == 2 && first.isFinished && !first.isExecuting && later.isFinished)

  let block = BlockOperation { count.up() }
  block.addExecutionBlock { count.up() }
  checks.check(block.executionBlocks.count == 2)
  block.start()
  checks.check(count.now == 4 && block.isFinished)
  let body: @Sendable () -> Void = { count.up() }
  let empty = BlockOperation()
  empty.addExecutionBlock(body)
  let blocks = Blocks()
  blocks.addExecutionBlock(body)
  blocks.addExecutionBlock(body)
  let all: [Operation] = [empty, BlockOperation(block: body), blocks]
  queue.addOperations(all, waitUntilFinished: true)
  checks.check(count.now == 8 && blocks.addedUp == 2)
  let make: (@escaping @Sendable () -> Void) -> BlockOperation = BlockOperation.init(block:)
  let operation: Foundation.Operation = make(body)
  let object: NSObject = queue
  let sendable: any Sendable = operation
  _ = (object, sendable)
  operation.cancel()
  operation.start()
  checks.check(count.now == 8 && operation.isCancelled && operation.isFinished)

  // Queues.
  let serial = OperationQueue.serial("one by one")
  checks.check(serial.name == "one by one" && serial.qualityOfService == .utility)
  serial.isSuspended = true
  serial.addOperation { count.up() }
  serial.addOperation(body)
  serial.addBarrierBlock { count.up() }
  let waiting: [Operation] = serial.operations
  checks.check(waiting.count == 2 && serial.operationCount == 2 && serial.isSuspended)
  checks.check(waiting.allSatisfy { $0 is BlockOperation } && count.now == 8)
  serial.isSuspended = false
  serial.waitUntilAllOperationsAreFinished()
  checks.check(count.now == 11)
  serial.isSuspended = true
  serial.addOperation(Plain(count))
  serial.cancelAllOperations()
  serial.isSuspended = false
  serial.waitUntilAllOperationsAreFinished()
  checks.check(count.now == 11)
  serial.maxConcurrentOperationCount = OperationQueue.defaultMaxConcurrentOperationCount
  checks.check(serial.maxConcurrentOperationCount == -1)
  let own = Queue()
  own.addOperation {
    let current: OperationQueue? = OperationQueue.current
    if current === own, current == own { count.up() }
  }
  own.waitUntilAllOperationsAreFinished()
  checks.check(count.now == 12)
  serial.progress.totalUnitCount = 1
  serial.addOperation {}
  serial.waitUntilAllOperationsAreFinished()
  checks.check(serial.progress.completedUnitCount == 1)

  // The main queue.
  let main: OperationQueue = .main
  checks.check(main === OperationQueue.main && OperationQueue.current === main)
  checks.check(main == OperationQueue.main && main.maxConcurrentOperationCount == 1)
  main.addOperation { if Thread.isMainThread, OperationQueue.current == .main { count.up() } }
  main.addOperation(Plain(count))
  RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.05))
  checks.check(count.now == 14)
  checks.check(main.underlyingQueue?.label == DispatchQueue.main.label)
  return checks.wrong
}
