internal import CHangcheck
internal import WaitForGraph

extension LookBuilder {
  /// What lies further behind in a look is not asked what it would do: each costs up to hundreds of reads.
  static let mostWork = 1000

  /// Who would end the waits for semaphores and groups, in a process where others go on: queued
  /// blocks, tasks and operations whose code signals, or leaves, and that have this one at hand.
  ///
  /// They are taken to be the only ones, which is a guess; that they are queued behind a thread which
  /// waits for just that is what the most common deadlocks look like.
  mutating func addGivers() {
    guard let dispatch = runtime.dispatch else { return }
    guard threads.indices.contains(where: { waits[$0].map { isSought($0, dispatch) } ?? false })
    else { return }
    addTasks()
    addQueuedOperations(areReady: true)
    var sought: [UInt64: ResourceKey] = [:]
    for wait in waits {
      if let wait, isSought(wait, dispatch) { sought[wait.key.address] = wait.key }
    }
    let givings = Set(sought.values.map { Self.giving($0) })
    let continuations = Set(sought.filter { Self.giving($0.value) == .resume }.keys)
    var known: [UInt64: DispatchMemory.CodeIntent] = [:]
    var traces: [ResourceKey: Set<UInt64>] = [:]
    for index in threads.indices.prefix(Self.mostWork) where threads[index].kind != .thread {
      let captures = captures(of: index, dispatch)
      let intent = dispatch.intent(of: threads[index].code, captures, &known)
      for giving in givings {
        let object =
          giving == .resume
          ? resumed(by: index, intent, continuations, dispatch)
          : dispatch.given(giving, by: intent)
        guard let object, let key = sought[object], Self.giving(key) == giving else { continue }
        givers[key, default: []].append(threads[index].id)
        traces[key, default: [object]].formUnion(captures.holders)
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

  /// The one continuation that a queued block would resume.
  private func resumed(
    by index: Int, _ intent: DispatchMemory.CodeIntent, _ continuations: Set<UInt64>,
    _ dispatch: DispatchMemory
  ) -> UInt64? {
    guard intent.gives.contains(.resume), let block = threads[index].block else { return nil }
    let found = dispatch.references(from: block, to: continuations)
    return found.count == 1 ? found.first : nil
  }

  /// What queued work has at hand.
  func captures(of index: Int, _ dispatch: DispatchMemory) -> DispatchMemory.Captures {
    switch threads[index].kind {
    case .task: dispatch.captures(ofTask: threads[index].subject)
    case .operation:
      runtime.operations?.closure(of: threads[index].subject)
        .map { dispatch.captures(ofContext: $0.context) } ?? .init()
    case .block, .thread: threads[index].block.map { dispatch.captures(ofBlock: $0) } ?? .init()
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

  static func giving(_ key: ResourceKey) -> DispatchMemory.Giving {
    switch key.kind {
    case HCK_GROUP.rawValue: .leave
    case DerivedKind.continuation: .resume
    default: .signal
    }
  }

  /// A wait for something that nobody is known to hold, or to have a permit of.
  private func isSought(_ wait: RecordedWait, _ dispatch: DispatchMemory) -> Bool {
    if wait.isTimed { return false }
    switch wait.key.kind {
    case HCK_SEMAPHORE.rawValue:
      return dispatch.semaphore(wait.key.address).map { $0.original == 0 && $0.value < 0 } ?? false
    case HCK_GROUP.rawValue: return isOpen[wait.key] ?? true
    case DerivedKind.continuation: return true
    default: return false
    }
  }
}
