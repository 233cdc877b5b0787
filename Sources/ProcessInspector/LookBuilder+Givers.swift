internal import CHangcheck
internal import WaitForGraph

extension LookBuilder {
  /// Who would end the waits for semaphores and groups, in a process where others go on: queued
  /// blocks, tasks and operations whose code signals, or leaves, and that have this one at hand.
  ///
  /// They are taken to be the only ones, which is a guess; that they are queued behind a thread which
  /// waits for just that is what the most common deadlocks look like.
  mutating func addGivers() {
    guard let dispatch = runtime.dispatch else { return }
    var sought: [UInt64: ResourceKey] = [:]
    for index in threads.indices {
      guard let wait = waits[index], !wait.isTimed, isSought(wait.key, dispatch) else { continue }
      sought[wait.key.address] = wait.key
    }
    guard !sought.isEmpty else { return }
    addTasks()
    addQueuedOperations(areReady: true)
    let givings = Set(sought.values.map { Self.giving($0) })
    var known: [UInt64: DispatchMemory.CodeIntent] = [:]
    var traces: [ResourceKey: Set<UInt64>] = [:]
    for index in threads.indices where threads[index].kind != .thread {
      let captures =
        switch threads[index].kind {
        case .task: dispatch.captures(ofTask: threads[index].subject)
        case .operation:
          runtime.operations?.closure(of: threads[index].subject)
            .map { dispatch.captures(ofContext: $0.context) }
        case .block, .thread: threads[index].block.map { dispatch.captures(ofBlock: $0) }
        }
      for giving in givings {
        if let object = dispatch.given(
          giving, by: threads[index].code, captures ?? .init(), &known),
          let key = sought[object], Self.giving(key) == giving
        {
          givers[key, default: []].append(threads[index].id)
          traces[key, default: [object]].formUnion(captures?.holders ?? [])
        }
      }
    }
    addThreads(having: traces)
    for (key, found) in givers {
      // Every enter of a group has its leave; two that might leave it once are two ways to one end.
      guard key.kind == HCK_GROUP.rawValue, let count = values[key], found.count <= count,
        !found.contains(where: { threads[$0.rawValue - 1].kind == .thread })
      else {
        needsOne.insert(key)
        continue
      }
      let others = threads.indices.filter { holds[$0].contains { $0.key == key } }.map {
        threads[$0].id
      }
      givers[key] = found + others.filter { !found.contains($0) }
    }
  }

  /// Threads on whose stacks it lies are ready to use it as well.
  private mutating func addThreads(having traces: [ResourceKey: Set<UInt64>]) {
    let proc = runtime.outside().proc
    for index in threads.indices
    where threads[index].kind == .thread && threads[index].isAlive && !threads[index].isIdle {
      guard let pointer = proc.systemCall(threads[index].tid)?.call?.stackPointer,
        let stack = memory.copy(pointer, upTo: Self.stackBytes)
      else { continue }
      for (key, addresses) in traces where waits[index]?.key != key {
        if (0..<stack.words).contains(where: { addresses.contains(stack.word($0 * 8)) }) {
          givers[key, default: []].append(threads[index].id)
        }
      }
    }
  }
  private static let stackBytes = 16 << 10

  private static func giving(_ key: ResourceKey) -> DispatchMemory.Giving {
    key.kind == HCK_GROUP.rawValue ? .leave : .signal
  }

  /// One that nobody is known to hold, or to have a permit of.
  private func isSought(_ key: ResourceKey, _ dispatch: DispatchMemory) -> Bool {
    switch key.kind {
    case HCK_SEMAPHORE.rawValue:
      dispatch.semaphore(key.address).map { $0.original == 0 && $0.value < 0 } ?? false
    case HCK_GROUP.rawValue: isOpen[key] ?? true
    default: false
    }
  }
}
