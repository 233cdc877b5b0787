internal import CHangcheck
internal import WaitForGraph

extension LookBuilder {
  /// Whether anything but the listed threads could still act; what cannot be known counts as such.
  mutating func settleOpenings() {
    guard !threads.contains(where: { $0.isAlive && $0.standing?.canMove ?? true && isThread($0) })
    else { return }
    let outside = runtime.outside()
    var exceptions = OutsideWorld.Exceptions()
    exceptions.threads = ignored
    exceptions.signals = ignoredSignals
    guard outside.openings(ignoring: exceptions, limit: 1).isEmpty, !workIsReady() else { return }
    hasOpenings = false
    addTasks()
    addQueuedOperations()
    addWakers()
  }

  private func isThread(_ thread: SeenThread) -> Bool { thread.kind == .thread }

  /// Work on a global queue: a thread of the pool takes it, or a new one.
  private func workIsReady() -> Bool {
    runtime.dispatch?.roots().contains(where: \.hasItems) ?? false
  }

  /// Who would end the waits that nobody owns: queued work that refers to what is waited for, and
  /// threads that took a permit and have not given it back.
  private mutating func addWakers() {
    guard let dispatch = runtime.dispatch else { return }
    var open: [UInt64: ResourceKey] = [:]
    for index in threads.indices {
      guard let key = waits[index]?.key else { continue }
      if key.kind == HCK_SEMAPHORE.rawValue || key.kind == HCK_GROUP.rawValue {
        open[key.address] = key
      }
    }
    guard !open.isEmpty else { return }
    for key in open.values where key.kind == HCK_SEMAPHORE.rawValue {
      addHolders(of: key, dispatch)
    }
    let objects = Set(open.keys)
    // Thousands of blocks and tasks mostly run the same few functions.
    var byFunction: [UInt64: Set<UInt64>] = [:]
    var known: [UInt64: DispatchMemory.CodeIntent] = [:]
    let givings = Set(open.values.map { Self.giving($0) })
    for index in threads.indices where threads[index].kind != .thread {
      var found: Set<UInt64> = []
      if let block = threads[index].block {
        found.formUnion(dispatch.references(from: block, to: objects))
      }
      if threads[index].kind == .task {
        found.formUnion(dispatch.references(ofTask: threads[index].subject, to: objects))
      }
      if let function = threads[index].code.first {
        let references =
          byFunction[function] ?? dispatch.codeReferences(from: function, to: objects)
        byFunction[function] = references
        found.formUnion(references)
      }
      if index < Self.mostWork {
        let intent = dispatch.intent(
          of: threads[index].code, captures(of: index, dispatch), &known)
        for giving in givings {
          if let object = dispatch.given(giving, by: intent) { found.insert(object) }
        }
      }
      for address in found {
        guard let key = open[address], !holds[index].contains(where: { $0.key == key }) else {
          continue
        }
        wakers[key, default: []].append(threads[index].id)
      }
    }
  }

  /// Threads that took a permit of a semaphore that began with some, and have not given it back.
  private mutating func addHolders(of key: ResourceKey, _ dispatch: DispatchMemory) {
    guard let semaphore = dispatch.semaphore(key.address), semaphore.original > 0 else { return }
    var taken: [KernelThreadID: Int] = [:]
    for tally in arena.tallies(of: key) {
      guard let tid = tally.tid.map(known) else { continue }
      switch tally.operation {
      case .take: taken[tid, default: 0] += Int(clamping: tally.count)
      case .give: taken[tid, default: 0] -= Int(clamping: tally.count)
      case .notify, .create, .takeByBlock, .giveByBlock: break
      }
    }
    for thread in threads
    where thread.kind == .thread && thread.isAlive && taken[thread.tid] ?? 0 > 0 {
      wakers[key, default: []].append(thread.id)
    }
  }
}
