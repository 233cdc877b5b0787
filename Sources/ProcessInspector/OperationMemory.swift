internal import CHangcheck
internal import HangReport

/// An Operation as it was at one moment.
struct OperationState: Equatable {
  /// In the order in which they come.
  enum Phase: Int, Comparable {
    case initialized, enqueuing, enqueued, dispatching, starting, executing, finishing, finished
    static func < (a: Phase, b: Phase) -> Bool { a.rawValue < b.rawValue }
  }
  var address: UInt64
  /// "Foundation.BlockOperation", or the program's own subclass.
  var className: String
  var name: String?
  var phase: Phase
  var isCancelled: Bool
  /// Nothing that it depends on is left, by Foundation's own count.
  var isReady: Bool
  /// Operations that it depends on; those that have finished stay in the list.
  var dependencies: [UInt64]
  var unfinishedDependencies: Int
  /// The OperationQueue that it is in, until it has finished.
  var queue: UInt64?
  /// The pthread condition that `waitUntilFinished` waits on, and the mutex that goes with it.
  var condition: UInt64
  var mutex: UInt64

  var isExecuting: Bool { phase == .executing }
  var isFinished: Bool { phase >= .finishing }
}

/// An OperationQueue as it was at one moment.
struct OperationQueueState: Equatable {
  var address: UInt64
  var className: String
  var name: String?
  /// -1 where the program set none.
  var maxConcurrentOperationCount: Int
  /// Those that libdispatch has been given, running or about to.
  var executing: Int
  /// All that it holds, waiting, running and barriers, in order of submission.
  var operations: [UInt64]
  var isSuspended: Bool
  var isMain: Bool
  /// The program's `underlyingQueue` or the queue that Foundation made, as libdispatch knows it.
  var dispatchQueue: UInt64?

  /// It starts no more until one ends.
  var isFull: Bool {
    maxConcurrentOperationCount >= 0 && executing >= maxConcurrentOperationCount
  }
}

/// Foundation's operations and their queues, read from another process's memory while it runs.
///
/// Offsets come from the metadata of the classes, so that another version's order does no harm; a
/// version without these properties is known as nil. Confined to one thread; may be kept.
final class OperationMemory {
  /// What a thread waits for in `waitUntilFinished` or `waitUntilAllOperationsAreFinished`.
  struct Waited: Equatable {
    var operation: OperationState
    /// The queue, where the thread waits for all that is in it: one after the other.
    var queue: UInt64?
  }

  let objects: SwiftObjects
  let memory: ProcessMemory
  /// Where a thread returns to that is in these functions.
  let code: [String: Range<UInt64>]
  /// The class of an OperationQueue that is no subclass.
  private let queueType: UInt64?
  private let images: ImageMap
  private static let conditionBytes: UInt64 = 48
  private static let stackBytes = 8192

  /// Nil where the process has no Foundation.
  init?(files: ProcessFiles, memory: ProcessMemory) {
    self.memory = memory
    objects = SwiftObjects(memory: memory)
    images = files.images(memory)
    let executable = files.executable()
    // With a static standard library they are in the executable.
    var code: [String: Range<UInt64>] = [:]
    var type: UInt64?
    for mapping in images.mappings
    where code.isEmpty && mapping.isExecutable
      && (mapping.path == executable || mapping.path.contains("/libFoundation.so"))
    {
      guard let image = images.image(at: mapping.start), let bias = images.loadBias(of: image),
        let found = ImageSymbols(Self.functions.union([Self.type]), in: image, of: images)
      else { continue }
      type = found.symbols[Self.type].map { bias &+ $0.value }
      for (name, symbol) in found.symbols where symbol.size > 1 && name != Self.type {
        let start = bias &+ symbol.value
        code[name] = (start + 1)..<(start &+ symbol.size)
      }
    }
    guard !code.isEmpty else { return nil }
    self.code = code
    queueType = type
  }

  private static let type = "$s10Foundation14OperationQueueCN"

  static let waitForAll = "$s10Foundation14OperationQueueC33waitUntilAllOperationsAreFinishedyyF"
  static let schedule = "$s10Foundation14OperationQueueC9_scheduleyyAA0B0CF"
  static let start = "$s10Foundation9OperationC5startyyF"
  private static let functions: Set = [waitForAll, schedule, start]

  /// The function that a BlockOperation will run first.
  func code(of operation: UInt64) -> UInt64? { closure(of: operation)?.function }

  /// That, and what it has captured; 0 for nothing.
  func closure(of operation: UInt64) -> (function: UInt64, context: UInt64)? {
    guard let base = objects.classOfObject(operation)?.ancestor("Foundation.BlockOperation"),
      let offset = base.fields["_block"], let function = memory.word(operation &+ UInt64(offset)),
      images.isExecutable(function), let context = memory.word(operation &+ UInt64(offset + 8))
    else { return nil }
    return (function, context)
  }

  /// The queues in the process's memory. A search through all of it: for where nothing moves.
  func queues(files: ProcessFiles, milliseconds: UInt64 = 2000) -> [OperationQueueState] {
    guard let type = queueType else { return [] }
    let space = WritableMemory(files: files, memory: memory, mappings: files.mappings())
    var found: [OperationQueueState] = []
    _ = space.search(for: type, or: type, deadline: hck_monotonic_ns() + milliseconds * 1_000_000) {
      address, _ in
      if found.count < 1000, let queue = queue(address) { found.append(queue) }
    }
    return found
  }

  /// The operation at an address; nil where there is none.
  func operation(_ address: UInt64) -> OperationState? {
    guard let own = objects.classOfObject(address),
      let base = own.ancestor("Foundation.Operation"),
      let copy = RemoteBytes(memory, address, base.instanceSize)
    else { return nil }
    let fields = base.fields
    guard let state = fields["__state"], let queue = fields["__queue"],
      let dependencies = fields["__dependencies"],
      let count = fields["__unfinishedDependencyCount"],
      let name = fields["__name"], let isCancelled = fields["__isCancelled"],
      let condition = fields["__waitCondition"],
      let phase = OperationState.Phase(rawValue: Int(copy.byte(state))), copy.byte(isCancelled) < 2,
      let wait = conditionAndMutex(copy.word(condition)),
      let all = objects.references(inArray: copy.word(dependencies))
    else { return nil }
    let unfinished = Int(truncatingIfNeeded: copy.word(count))
    return OperationState(
      address: address, className: own.fullName,
      name: objects.text(copy.word(name), copy.word(name + 8)), phase: phase,
      isCancelled: copy.byte(isCancelled) == 1, isReady: unfinished == 0, dependencies: all,
      unfinishedDependencies: unfinished,
      queue: copy.word(queue) == 0 ? nil : copy.word(queue), condition: wait.condition,
      mutex: wait.mutex)
  }

  /// The operation queue at an address; nil where there is none.
  func queue(_ address: UInt64) -> OperationQueueState? {
    guard let own = objects.classOfObject(address),
      let base = own.ancestor("Foundation.OperationQueue"),
      let copy = RemoteBytes(memory, address, base.instanceSize)
    else { return nil }
    let fields = base.fields
    guard let first = fields["__firstOperation"], let width = fields["__maxNumOps"],
      let executing = fields["__numExecOps"], let isSuspended = fields["__suspended"],
      let isMain = fields["__mainQ"], let name = fields["__name"], copy.byte(isSuspended) < 2,
      copy.byte(isMain) < 2, let operations = list(from: copy.word(first))
    else { return nil }
    let below = ["__dispatch_queue", "__backingQueue"]
      .compactMap { fields[$0] }.map { copy.word($0) }.first { $0 != 0 }
    return OperationQueueState(
      address: address, className: own.fullName,
      name: objects.text(copy.word(name), copy.word(name + 8)),
      maxConcurrentOperationCount: Int(truncatingIfNeeded: copy.word(width)),
      executing: Int(Int32(bitPattern: copy.word32(executing))), operations: operations,
      isSuspended: copy.byte(isSuspended) == 1, isMain: copy.byte(isMain) == 1,
      // Swift's object keeps libdispatch's behind its head.
      dispatchQueue: below.flatMap { memory.word($0 &+ 16) })
  }

  /// What the thread waits for that is blocked on `futex` with its stack at `stackPointer`: the
  /// operation that lies near the top of its stack and has its condition there.
  func waitedOperation(stackPointer: UInt64, futex: UInt64) -> Waited? {
    guard let stack = stack(stackPointer, Self.stackBytes) else { return nil }
    var seen: Set<UInt64> = []
    for index in 0..<stack.words {
      let word = stack.word(index * 8)
      guard word % 16 == 0, word >= 4096, word < 1 << 47, seen.insert(word).inserted,
        !images.isExecutable(word),
        objects.classOfObject(word)?.ancestor("Foundation.Operation") != nil,
        let operation = operation(word), futex >= operation.condition,
        futex - operation.condition < Self.conditionBytes
      else { continue }
      return Waited(operation: operation, queue: waitedQueue(operation, stack))
    }
    return nil
  }

  /// The queue of the operation, where the thread waits for all that is in it.
  private func waitedQueue(_ operation: OperationState, _ stack: RemoteBytes) -> UInt64? {
    guard let waitForAll = code[Self.waitForAll], let queue = operation.queue,
      let index = (0..<stack.words).first(where: { waitForAll.contains(stack.word($0 * 8)) })
    else { return nil }
    // The queue is among the registers that its frame and the ones below it saved.
    let near = (0..<min(stack.words, index + 32)).contains { stack.word($0 * 8) == queue }
    return near ? queue : nil
  }

  /// As much of the stack as there is, up to a limit.
  func stack(_ pointer: UInt64, _ limit: Int) -> RemoteBytes? {
    let start = pointer & ~7
    guard let end = images.mapping(at: start)?.end else {
      // Mapped since the list was made: mappings end with a page.
      return RemoteBytes(memory, start, limit)
        ?? RemoteBytes(memory, start, Int(4096 - start % 4096))
    }
    return RemoteBytes(memory, start, Int(min(UInt64(limit), (end - start) & ~7)))
  }

  /// The pthread objects of an NSCondition.
  private func conditionAndMutex(_ address: UInt64) -> (condition: UInt64, mutex: UInt64)? {
    guard let base = objects.classOfObject(address)?.ancestor("Foundation.NSCondition"),
      let mutex = base.fields["mutex"], let condition = base.fields["cond"],
      let copy = RemoteBytes(memory, address, base.instanceSize), copy.word(condition) != 0
    else { return nil }
    return (copy.word(condition), copy.word(mutex))
  }

  /// The operations from one on, by each one's next.
  private func list(from first: UInt64, limit: Int = 10_000) -> [UInt64]? {
    var result: [UInt64] = []
    var seen: Set<UInt64> = []
    var next = first
    while next != 0, result.count < limit {
      guard seen.insert(next).inserted,
        let base = objects.classOfObject(next)?.ancestor("Foundation.Operation"),
        let offset = base.fields["__nextOperation"], let word = memory.word(next &+ UInt64(offset))
      else { return nil }
      result.append(next)
      next = word
    }
    return result
  }
}

extension ImageMap {
  fileprivate func isExecutable(_ address: UInt64) -> Bool {
    mapping(at: address)?.isExecutable ?? false
  }
}
