internal import CHangcheck
internal import WaitForGraph

extension LookBuilder {
  /// Foundation's operations: what a thread in `waitUntilFinished` waits for, which threads run which,
  /// and what those that have not begun still need.
  mutating func settleOperations(_ outside: OutsideWorld) {
    let kinds = [
      HCK_CONDITION.rawValue, HCK_OPERATION.rawValue, HCK_OPERATION_QUEUE.rawValue,
      DerivedKind.futex,
    ]
    let waiting = threads.indices.filter { index in
      waits[index].map { kinds.contains($0.key.kind) } ?? false
    }
    guard !waiting.isEmpty || !self.operations.isEmpty, let operations = runtime.operations else {
      return
    }
    var wanted = self.operations.sorted()
    for index in waiting {
      guard let call = outside.proc.systemCall(threads[index].tid)?.call,
        call.number == SystemCalls.futex,
        let waited = operations.waitedOperation(
          stackPointer: call.stackPointer, futex: call.arguments[0])
      else { continue }
      waits[index] = operationWait(HCK_OPERATION.rawValue, waited.operation.address)
      wanted.append(waited.operation.address)
    }
    guard !wanted.isEmpty else { return }
    let running = runningOperations(operations, outside)
    var seen: Set<UInt64> = []
    while let address = wanted.popLast() {
      guard seen.count < 1000, seen.insert(address).inserted,
        let operation = operations.operation(address)
      else { continue }
      wanted += add(operation, running, operations)
    }
  }

  /// Operations that nobody waits for: they may be what was to move. `areReady`: also those that only
  /// wait for their turn.
  mutating func addQueuedOperations(areReady: Bool = false) {
    guard let operations = runtime.operations else { return }
    let running = areReady ? runningOperations(operations, runtime.outside()) : [:]
    var seen = Set(threads.filter { $0.kind == .operation }.map(\.subject))
    let limit: UInt64 = areReady ? 300 : 2000
    var wanted = operations.queues(files: files, milliseconds: limit).filter { !$0.isSuspended }
      .flatMap(\.operations)
    while let address = wanted.popLast() {
      guard seen.count < 1000, seen.insert(address).inserted,
        let operation = operations.operation(address),
        operation.unfinishedDependencies > 0 || (areReady && operation.phase == .enqueued)
      else { continue }
      wanted += add(operation, running, operations)
    }
  }

  /// The threads that are inside of operations' bodies.
  private func runningOperations(
    _ operations: OperationMemory, _ outside: OutsideWorld
  ) -> [UInt64: Int] {
    var result: [UInt64: Int] = [:]
    for index in threads.indices
    where threads[index].kind == .thread && threads[index].isAlive && waits[index] != nil {
      guard let call = outside.proc.systemCall(threads[index].tid)?.call else { continue }
      for operation in operations.runningOperations(stackPointer: call.stackPointer) {
        result[operation.address] = index
      }
    }
    return result
  }

  private func operationWait(_ kind: UInt32, _ address: UInt64) -> RecordedWait {
    RecordedWait(
      key: ResourceKey(address: address, kind: kind), isShared: false, isTimed: false, mutex: 0)
  }

  private func hold(_ kind: UInt32, _ address: UInt64) -> RecordedHold {
    RecordedHold(
      key: ResourceKey(address: address, kind: kind), isShared: false, since: 0, site: nil)
  }

  /// Who has to act before an operation has finished; returns the operations that it needs first.
  private mutating func add(
    _ operation: OperationState, _ running: [UInt64: Int], _ operations: OperationMemory
  ) -> [UInt64] {
    let key = ResourceKey(address: operation.address, kind: HCK_OPERATION.rawValue)
    names[key] = operation.name
    if operation.isFinished { return [] }
    if let runner = running[operation.address] {
      holds[runner].append(hold(key.kind, key.address))
      return []
    }
    let dependencies = operation.dependencies.compactMap(operations.operation)
      .filter { !$0.isFinished }
    let isQueued = operation.phase == .enqueued || operation.phase == .enqueuing
    let queue = isQueued ? operation.queue.flatMap(operations.queue) : nil
    // It begins or ends just now, on a thread that moves; or somebody has yet to queue it. Whoever
    // does so in vain waits for what it depends on.
    guard queue != nil || (operation.phase == .initialized && !dependencies.isEmpty) else {
      isOpen[key] = true
      return []
    }
    let index = append(KernelThreadID(0), isAlive: true, kind: .operation)
    threads[index].subject = operation.address
    threads[index].name = operation.name ?? Self.plainName(operation)
    threads[index].code = operations.code(of: operation.address).map { [$0] } ?? []
    threads[index].queue = queue?.name
    holds[index].append(hold(key.kind, key.address))
    var needs = dependencies.map { operationWait(key.kind, $0.address) }
    if needs.isEmpty, let queue {
      needs.append(operationWait(HCK_OPERATION_QUEUE.rawValue, queue.address))
      addQueue(queue, running, operations)
    }
    waits[index] = needs[0]
    if needs.count > 1 { moreWaits[index] = Array(needs.dropFirst()) }
    return dependencies.map(\.address)
  }

  /// Foundation names a queue without a name by its address.
  private static func name(of queue: OperationQueueState) -> String? {
    queue.name.flatMap { $0.hasPrefix("NSOperationQueue 0x") ? nil : $0 }
  }

  /// The class tells more than an address, where it is the program's own.
  private static func plainName(_ operation: OperationState) -> String {
    let name = operation.className.split(separator: ".").last.map(String.init) ?? ""
    return operation.className.hasPrefix("Foundation.") || name.hasPrefix("Instrumented")
      ? "" : name
  }

  /// A queue with a width is occupied by the operations that it runs; one that is suspended waits for
  /// somebody to resume it.
  private mutating func addQueue(
    _ queue: OperationQueueState, _ running: [UInt64: Int], _ operations: OperationMemory
  ) {
    let key = ResourceKey(address: queue.address, kind: HCK_OPERATION_QUEUE.rawValue)
    guard isOpen[key] == nil else { return }
    names[key] = Self.name(of: queue)
    let runners = queue.operations.compactMap { running[$0] }
    // Room, or operations whose threads are not known: it may go on.
    isOpen[key] = queue.isSuspended || !queue.isFull || runners.count < queue.executing
    for runner in Set(runners) { holds[runner].append(hold(key.kind, key.address)) }
  }
}
