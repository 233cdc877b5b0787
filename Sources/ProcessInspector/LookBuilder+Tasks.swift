internal import CHangcheck
internal import WaitForGraph

extension LookBuilder {
  /// Swift's tasks, and what they wait for, in one graph with the threads.
  ///
  /// A search through the process's memory: for where everything stands still, or for now and then.
  mutating func addTasks() {
    guard !hasTasks, let concurrency = runtime.concurrency else { return }
    hasTasks = true
    let found = concurrency.tasks()
    if found.isCut { hasOpenings = true }
    var index: [UInt64: Int] = [:]
    for task in found.tasks where !task.isHelper && !task.isRunning {
      let at = append(KernelThreadID(0), isAlive: true, kind: .task)
      index[task.address] = at
      threads[at].subject = task.address
      threads[at].name = task.name ?? String(task.id)
      threads[at].code = concurrency.frames(of: task)
      holds[at].append(hold(DerivedKind.task, task.address))
      if let group = task.group { holds[at].append(hold(DerivedKind.taskGroup, group)) }
    }
    addRunning(concurrency, found.tasks)
    let pooled = addPools(concurrency)
    for task in found.tasks {
      guard let at = index[task.address] else { continue }
      waits[at] = wait(of: task, pooled, concurrency)
    }
  }

  private func hold(_ kind: UInt32, _ address: UInt64) -> RecordedHold {
    RecordedHold(
      key: ResourceKey(address: address, kind: kind), isShared: false, since: 0, site: nil)
  }

  private func wait(_ kind: UInt32, _ address: UInt64) -> RecordedWait {
    RecordedWait(
      key: ResourceKey(address: address, kind: kind), isShared: false, isTimed: false, mutex: 0)
  }

  /// What threads run for Swift Concurrency: a task, and the actor that they occupy with it.
  private mutating func addRunning(_ concurrency: ConcurrencyMemory, _ tasks: [SwiftTask]) {
    let groups = Dictionary(tasks.map { ($0.address, $0.group) }) { first, _ in first }
    for index in threads.indices where threads[index].kind == .thread && threads[index].isAlive {
      guard case let pthread = threads[index].pthread, pthread != 0,
        let running = concurrency.running(pthread: pthread)
      else { continue }
      if let task = running.task {
        holds[index].append(hold(DerivedKind.task, task))
        if let group = groups[task] ?? nil {
          holds[index].append(hold(DerivedKind.taskGroup, group))
        }
      }
      if case .actor(let actor)? = running.place {
        holds[index].append(hold(DerivedKind.actor, actor))
      }
    }
  }

  /// Which pool each queued task or actor waits for, where that pool has no thread left.
  private mutating func addPools(_ concurrency: ConcurrencyMemory) -> [UInt64: UInt64] {
    var pooled: [UInt64: UInt64] = [:]
    for pool in concurrency.pools() ?? [] {
      if pool.isCut || (!pool.pending.isEmpty && !pool.isExhausted) { hasOpenings = true }
      names[ResourceKey(address: pool.queue, kind: DerivedKind.pool)] =
        "\(Self.priority(pool.priority)), \(pool.width) threads"
      for job in pool.pending {
        switch job {
        case .task(let address), .actor(let address), .other(let address):
          pooled[address] = pool.queue
        }
      }
    }
    return pooled
  }

  private static func priority(_ priority: UInt8) -> String {
    switch priority {
    case 9: "background"
    case 0x11: "utility"
    case 0x15: "default priority"
    case 0x19: "high priority"
    default: "priority \(priority)"
    }
  }

  private mutating func wait(
    of task: SwiftTask, _ pooled: [UInt64: UInt64], _ concurrency: ConcurrencyMemory
  ) -> RecordedWait? {
    if task.isSleeping { hasOpenings = true }
    switch task.wait {
    case .none:
      // One that was never started is nobody's who waits.
      if !task.isUnstarted { hasOpenings = true }
      return task.isUnstarted ? nil : wait(DerivedKind.futex, task.address)
    case .task(let other): return wait(DerivedKind.task, other)
    case .continuation(let context, let isResumed):
      if isResumed { hasOpenings = true }
      return wait(DerivedKind.continuation, context)
    case .taskGroup(let group):
      let key = ResourceKey(address: group, kind: DerivedKind.taskGroup)
      isOpen[key] = !holds.joined().contains { $0.key == key }
      return wait(DerivedKind.taskGroup, group)
    case .executor(.pool):
      guard let pool = pooled[task.address] else { break }
      return wait(DerivedKind.pool, pool)
    case .executor(.main):
      guard let main = runtime.dispatch?.layout.mainQueue else { break }
      return wait(HCK_QUEUE.rawValue, main)
    case .executor(.actor(let actor)):
      if let pool = pooled[actor] { return wait(DerivedKind.pool, pool) }
      let key = ResourceKey(address: actor, kind: DerivedKind.actor)
      if holds.joined().contains(where: { $0.key == key }) {
        return wait(DerivedKind.actor, actor)
      }
      // Its turn is on the way to a thread.
      guard let state = concurrency.actor(actor)?.state, state == .scheduled,
        let pool = pooled.values.first
      else { break }
      return wait(DerivedKind.pool, pool)
    case .executor(.other), .unknown: break
    }
    // On its way, or in words that are not known here: it may go on.
    hasOpenings = true
    return nil
  }
}
