// Programs that stand still in operations, one way each; see OperationMemoryTests.
import Foundation

final class Fetch: Operation, @unchecked Sendable {
  let number: Int
  init(_ number: Int) { self.number = number }
  override func main() { DispatchSemaphore(value: 0).wait() }
}

func named(_ name: String, _ body: @escaping @Sendable () -> Void = {}) -> BlockOperation {
  let operation = BlockOperation(block: body)
  operation.name = name
  return operation
}

let queue = OperationQueue()
queue.name = "com.example.a-queue-with-a-long-name"
let a = named("a")
let b = named("b")
let c = named("an operation with a long name")

_ = write(1, "ready\n", 6)
switch CommandLine.arguments.dropFirst().first {
case "circle":
  a.addDependency(b)
  b.addDependency(c)
  c.addDependency(a)
  queue.addOperations([a, b, c], waitUntilFinished: false)
  queue.waitUntilAllOperationsAreFinished()
case "circle-added":
  a.addDependency(b)
  b.addDependency(a)
  queue.addOperations([a, b], waitUntilFinished: true)
case "bounded":
  queue.maxConcurrentOperationCount = 2
  for number in 1...2 {
    queue.addOperation {
      usleep(200_000)
      let child = named("child \(number)")
      queue.addOperation(child)
      child.waitUntilFinished()
    }
  }
  queue.waitUntilAllOperationsAreFinished()
case "suspended":
  queue.isSuspended = true
  queue.addOperation(a)
  a.waitUntilFinished()
case "never-started": a.waitUntilFinished()
case "cancelled":
  queue.isSuspended = true
  a.cancel()
  queue.addOperation(a)
  a.waitUntilFinished()
case "subclass":
  let fetch = Fetch(7)
  fetch.name = "7"
  queue.addOperation(fetch)
  fetch.waitUntilFinished()
case "finished-dependency":
  queue.addOperation(b)
  b.waitUntilFinished()
  a.addDependency(b)
  a.addDependency(c)
  queue.addOperation(a)
  a.waitUntilFinished()
case "underlying":
  let serial = DispatchQueue(label: "com.example.underlying")
  queue.underlyingQueue = serial
  serial.suspend()
  queue.addOperation(a)
  a.waitUntilFinished()
case "main-queue":
  OperationQueue.main.addOperation(a)
  a.waitUntilFinished()
case "condition":
  // The same wait, for no operation; one is on the stack.
  let condition = NSCondition()
  withExtendedLifetime((a, b, c)) {
    condition.lock()
    condition.wait()
  }
default: exit(2)
}
