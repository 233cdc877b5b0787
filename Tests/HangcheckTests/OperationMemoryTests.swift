import Foundation
import Testing

@testable import ProcessInspector

/// Operations and their queues, read from the memory of programs that wait for them.
@Suite struct OperationMemoryTests {
  /// A program that has come to rest, and what its threads wait for there.
  fileprivate struct Subject {
    let standing: Standing
    let operations: OperationMemory
    var main: OperationMemory.Waited?
    var others: [OperationMemory.Waited] = []
    var waiters: [KernelThreadID] = []
    var running: [KernelThreadID: [OperationState]] = [:]

    init(_ mode: String, _ flags: [String] = []) throws {
      standing = try Standing(try Standing.program("operating.swift", flags), [mode])
      #expect(standing.becomesClosed() == [])
      operations = try #require(
        OperationMemory(files: standing.files, memory: ProcessMemory(standing.files.pid)))
      for tid in standing.files.threads() {
        guard let call = standing.world().proc.systemCall(tid)?.call, call.number == 202 else {
          continue
        }
        let runs = operations.runningOperations(stackPointer: call.stackPointer)
        if !runs.isEmpty { running[tid] = runs }
        guard
          let waited = operations.waitedOperation(
            stackPointer: call.stackPointer, futex: call.arguments[0])
        else { continue }
        if tid.rawValue == standing.files.pid.rawValue {
          main = waited
        } else {
          others.append(waited)
          waiters.append(tid)
        }
      }
    }

    func names(_ addresses: [UInt64]) -> [String?] {
      addresses.map { operations.operation($0)?.name }
    }
  }

  private let long = "an operation with a long name"

  static let builds = [[], ["-Onone", "-g"], ["-static-stdlib"]]

  @Test(arguments: builds) func circleOfThree(_ flags: [String]) throws {
    let subject = try Subject("circle", flags)
    let waited = try #require(subject.main)
    let queue = try #require(waited.queue)
    #expect(waited.operation.name == "a")
    #expect(waited.operation.className == "Foundation.BlockOperation")
    #expect(waited.operation.phase == .enqueued)
    #expect(!waited.operation.isReady)
    #expect(!waited.operation.isCancelled)
    #expect(waited.operation.unfinishedDependencies == 1)
    var walk = [waited.operation.address]
    for _ in 0..<3 {
      walk += try #require(subject.operations.operation(walk[walk.count - 1])).dependencies
    }
    #expect(subject.names(walk) == ["a", "b", long, "a"])
    #expect(walk.first == walk.last)
    let state = try #require(subject.operations.queue(queue))
    #expect(state.name == "com.example.a-queue-with-a-long-name")
    #expect(state.className == "Foundation.OperationQueue")
    #expect(subject.names(state.operations) == ["a", "b", long])
    #expect(state.maxConcurrentOperationCount == -1)
    #expect(state.executing == 0)
    #expect(!state.isSuspended && !state.isMain && !state.isFull)
  }

  @Test func circleOfTwoWaitedForWhenAdded() throws {
    let waited = try #require(try Subject("circle-added").main)
    #expect(waited.operation.name == "a")
    #expect(waited.queue == nil)
    #expect(waited.operation.queue != nil)
  }

  @Test(arguments: builds) func boundedQueue(_ flags: [String]) throws {
    let subject = try Subject("bounded", flags)
    let waited = try #require(subject.main)
    #expect(waited.operation.isExecuting)
    #expect(
      subject.others.map(\.operation.name).map { $0 ?? "" }.sorted() == ["child 1", "child 2"])
    let queue = try #require(waited.queue)
    #expect(subject.others.allSatisfy { $0.queue == nil && $0.operation.queue == queue })
    #expect(subject.others.allSatisfy { $0.operation.phase == .enqueued && $0.operation.isReady })
    let state = try #require(subject.operations.queue(queue))
    #expect(state.executing == 2)
    #expect(state.maxConcurrentOperationCount == 2)
    #expect(state.isFull)
    #expect(state.operations.count == 4)
    // Each of the two runs one of the first two, and waits for a child.
    let running = state.operations.prefix(2)
    #expect(Set(subject.running.values.joined().map(\.address)) == Set(running))
    #expect(Set(subject.running.keys) == Set(subject.waiters))
    let label = try #require(state.dispatchQueue.flatMap { subject.dispatch?.queue($0)?.label })
    #expect(label == "com.example.a-queue-with-a-long-name")
  }

  @Test func suspendedQueue() throws {
    let subject = try Subject("suspended")
    let waited = try #require(subject.main)
    #expect(waited.operation.name == "a")
    #expect(waited.operation.phase == .enqueued)
    let queue = try #require(waited.operation.queue.flatMap { subject.operations.queue($0) })
    #expect(queue.isSuspended)
    #expect(queue.operations == [waited.operation.address])
  }

  @Test func neverStarted() throws {
    let waited = try #require(try Subject("never-started").main)
    #expect(waited.operation.phase == .initialized)
    #expect(waited.operation.queue == nil)
    #expect(waited.operation.dependencies == [])
  }

  @Test func cancelled() throws {
    let waited = try #require(try Subject("cancelled").main)
    #expect(waited.operation.isCancelled)
    #expect(!waited.operation.isFinished)
  }

  @Test func subclassOfTheProgram() throws {
    let subject = try Subject("subclass")
    let waited = try #require(subject.main)
    #expect(waited.operation.className == "operating.Fetch")
    #expect(waited.operation.name == "7")
    #expect(waited.operation.isExecuting)
    #expect(subject.running.values.map { $0.map(\.address) } == [[waited.operation.address]])
    #expect(subject.running[KernelThreadID(subject.standing.files.pid.rawValue)] == nil)
  }

  @Test func finishedDependenciesStayListed() throws {
    let subject = try Subject("finished-dependency")
    let waited = try #require(subject.main)
    #expect(subject.names(waited.operation.dependencies) == ["b", long])
    #expect(waited.operation.unfinishedDependencies == 1)
    let first = try #require(subject.operations.operation(waited.operation.dependencies[0]))
    #expect(first.isFinished && first.phase == .finished)
  }

  @Test func underlyingQueueIsLibdispatchs() throws {
    let subject = try Subject("underlying")
    let waited = try #require(subject.main)
    #expect(waited.operation.phase == .dispatching)
    let queue = try #require(waited.operation.queue.flatMap { subject.operations.queue($0) })
    #expect(queue.executing == 1)
    let label = queue.dispatchQueue.flatMap { subject.dispatch?.queue($0)?.label }
    #expect(label == "com.example.underlying")
  }

  @Test func mainQueueOfOperations() throws {
    let subject = try Subject("main-queue")
    let waited = try #require(subject.main)
    let queue = try #require(waited.operation.queue.flatMap { subject.operations.queue($0) })
    #expect(queue.isMain)
    #expect(queue.isFull)
  }

  @Test func otherConditionsAreNone() throws {
    let subject = try Subject("condition")
    #expect(subject.main == nil)
    #expect(subject.others == [])
    #expect(subject.operations.operation(0) == nil)
    #expect(subject.operations.operation(.max) == nil)
    #expect(subject.operations.queue(8192) == nil)
  }
}

extension OperationMemoryTests.Subject {
  var dispatch: DispatchMemory? {
    DispatchMemory(files: standing.files, memory: ProcessMemory(standing.files.pid))
  }
}
