internal import CHangcheck

/// What is known of a process's runtime libraries, each looked for when it is first needed and again
/// later while it is not there. Confined to one thread.
final class RuntimeMemory {
  private let files: ProcessFiles
  private let memory: ProcessMemory
  /// Of the agent, where there is one.
  var jobEntries: DispatchMemory.JobEntries?
  /// See `OutsideWorld`.
  var isStopped = false
  private var foundDispatch: DispatchMemory?
  private var foundConcurrency: ConcurrencyMemory?
  private var foundOperations: OperationMemory?
  private var lookedForOperations: UInt64 = 0
  private var lookedForDispatch: UInt64 = 0
  private var lookedForConcurrency: UInt64 = 0

  init(files: ProcessFiles, memory: ProcessMemory) {
    self.files = files
    self.memory = memory
  }

  /// Plugins bring libraries with them: a second later there may be one.
  private func isTime(_ last: inout UInt64) -> Bool {
    let now = hck_monotonic_ns()
    guard last == 0 || now &- last > 1_000_000_000 else { return false }
    last = now
    return true
  }

  var dispatch: DispatchMemory? {
    if foundDispatch == nil, isTime(&lookedForDispatch) {
      foundDispatch = DispatchMemory(files: files, memory: memory)
      foundDispatch?.jobEntries = jobEntries
    }
    return foundDispatch
  }

  var concurrency: ConcurrencyMemory? {
    if foundConcurrency == nil, isTime(&lookedForConcurrency) {
      foundConcurrency = ConcurrencyMemory(files: files, memory: memory)
      foundConcurrency?.jobEntry = jobEntries?.run
    }
    return foundConcurrency
  }

  var operations: OperationMemory? {
    if foundOperations == nil, isTime(&lookedForOperations) {
      foundOperations = OperationMemory(files: files, memory: memory)
    }
    return foundOperations
  }

  /// What from outside could still act.
  func outside() -> OutsideWorld {
    let outside = OutsideWorld(files: files, memory: memory, dispatch: dispatch)
    outside.isStopped = isStopped
    return outside
  }
}
