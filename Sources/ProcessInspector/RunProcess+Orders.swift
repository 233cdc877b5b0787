internal import CHangcheck
internal import HangReport
internal import WaitForGraph

extension RunProcess {
  /// The findings of lock orders that became known, in the numbers of a picture of their own, and how
  /// those that several threads took can be made to happen.
  func orderFindings(
    now: UInt64, isLast: Bool, process watched: WatchedProcess,
    without deadlocks: [Set<UInt64>]
  ) -> (findings: [Finding], picture: Picture, predictions: [Prediction])? {
    // What has happened need not be foretold.
    let cycles = orders.tick(now: now, isLast: isLast).filter { cycle in
      !deadlocks.contains { cycle.locks.isSubset(of: $0) }
    }
    guard !cycles.isEmpty else { return nil }
    var page = OrderPage(assembler: assembler(alive: isAlive))
    let told = page.findings(of: cycles, process: watched).filter { orders.isNews($0.finding) }
    guard !told.isEmpty else { return nil }
    let predictions = told.filter { !$0.cycle.isOfOneThread }
      .compactMap { page.prediction(of: $0.cycle, $0.finding) }
    return (
      told.map(\.finding),
      Picture(
        threads: page.threads, resources: page.resources,
        limits: page.assembler.limits + orders.limits),
      predictions
    )
  }
}

/// Threads, resources and stacks of cycles of lock orders.
struct OrderPage {
  let assembler: ReportAssembler
  private(set) var threads: [Thread] = []
  private(set) var resources: [Resource] = []
  private var numbers: [ResourceKey: ResourceID] = [:]
  private var contexts: [UInt64: ThreadID] = [:]

  init(assembler: ReportAssembler) { self.assembler = assembler }

  /// Those that the program's own code is a part of.
  mutating func findings(
    of cycles: [OrderWatch.Cycle], process: WatchedProcess
  ) -> [(cycle: OrderWatch.Cycle, finding: Finding)] {
    let steps = cycles.map { self.steps(of: $0) }
    let maker = LockOrderFinding(threads: threads, resources: resources, process: process)
    return zip(cycles, steps).filter { LockOrderFinding.isProgrammed($1) }.map { cycle, steps in
      (cycle, maker.finding(for: steps, isOfOneThread: cycle.isOfOneThread))
    }
  }

  private mutating func steps(of cycle: OrderWatch.Cycle) -> [LockOrderFinding.Step] {
    cycle.steps.map { step in
      LockOrderFinding.Step(
        thread: thread(step), holds: resource(step.holdsLock),
        holdMode: step.holds.isShared ? .shared : .exclusive, took: stack(step.holds.site),
        wants: resource(step.wantsLock),
        wantMode: step.wants.isShared ? .shared : .exclusive, asks: stack(step.wants.site))
    }
  }

  func stack(_ site: UInt32) -> [Frame] {
    assembler.acquisition(assembler.arena.orderSite(site), live: [])
  }

  private mutating func thread(_ step: OrderWatch.Cycle.Step) -> ThreadID {
    let occurrence = step.occurrence
    if let known = contexts[occurrence.context] { return known }
    let id = ThreadID(threads.count + 1)
    contexts[occurrence.context] = id
    let queue = step.queue.flatMap { $0.label.isEmpty ? nil : $0.label }
    threads.append(
      Thread(
        id: id, kind: occurrence.isBlock ? .block : nil,
        tid: occurrence.isBlock ? 0 : occurrence.tid.rawValue,
        address: occurrence.isBlock ? Address(occurrence.context) : nil,
        pid: assembler.isRoot ? nil : assembler.files.pid.rawValue,
        name: occurrence.isBlock ? "" : occurrence.name, queue: queue, state: .idle))
    return id
  }

  /// What lies at the address of one that is gone has other names.
  private func name(_ lock: RecordedOrders.Lock) -> String? {
    let label = lock.label.isEmpty ? nil : lock.label
    if lock.isGone { return label }
    return assembler.arena.name(of: lock.key.address) ?? label ?? assembler.name(lock.key)
  }

  private mutating func resource(_ lock: RecordedOrders.Lock) -> ResourceID {
    let key = lock.key
    if let known = numbers[key] { return known }
    let id = ResourceID(resources.count + 1)
    numbers[key] = id
    resources.append(
      Resource(
        id: id, kind: ResourceKind(recorded: key.kind),
        name: name(lock), address: Address(key.address)))
    return id
  }
}
