public import WaitForGraph

/// Makes the finding of lock orders that could deadlock: message, cycle, evidence, fingerprint.
public struct LockOrderFinding: Sendable {
  /// One thread in the cycle: what it holds that the one before wants, and what it asks for then.
  public struct Step: Sendable {
    public var thread: ThreadID
    public var holds: ResourceID
    public var holdMode: Mode
    public var took: [Frame]
    public var wants: ResourceID
    public var wantMode: Mode
    public var asks: [Frame]
    public init(
      thread: ThreadID, holds: ResourceID, holdMode: Mode, took: [Frame], wants: ResourceID,
      wantMode: Mode, asks: [Frame]
    ) {
      self.thread = thread
      self.holds = holds
      self.holdMode = holdMode
      self.took = took
      self.wants = wants
      self.wantMode = wantMode
      self.asks = asks
    }
  }

  private let names: Names

  /// The lists of the report that the finding is for; threads that have ended are among them.
  public init(threads: [Thread], resources: [Resource], process: WatchedProcess? = nil) {
    names = Names(threads: threads, resources: resources, process: process)
  }

  /// Each step wants what the next one holds, the last one what the first one holds. What one thread
  /// took alone is a note, and so is what operations alone did, since dependencies that were fulfilled
  /// before an operation was looked at leave no trace; what has been made to happen is an error.
  public func finding(
    for steps: [Step], isOfOneThread: Bool, isConfirmed: Bool = false,
    time: String = UTCTime.now()
  ) -> Finding {
    var evidence: [Finding.Evidence] = []
    for step in steps {
      evidence.append(
        .init(
          label: "\(names.short(step.thread)) \(took(step)) here", thread: step.thread,
          stack: step.took))
      evidence.append(
        .init(
          label: "\(names.short(step.thread)), which \(holds(step)), asks for \(wanted(step)) here",
          thread: step.thread, stack: step.asks))
    }
    let owners = steps.dropFirst() + steps.prefix(1)
    let isOfOperations = steps.allSatisfy { Self.runsOperation($0.asks) }
    return Finding(
      kind: .potentialDeadlock,
      severity: isConfirmed ? .error : isOfOneThread || isOfOperations ? .note : .warning,
      certainty: isConfirmed ? .confirmed : .possible,
      message: message(steps, isOfOneThread: isOfOneThread)
        + (isOfOperations && !isConfirmed ? ", unless dependencies order these operations" : ""),
      cycle: zip(steps, owners).map { step, owner in
        .init(
          thread: step.thread, waitsFor: step.wants, mode: step.wantMode, ownedBy: owner.thread)
      },
      threads: unique(steps.map(\.thread)), resources: unique(steps.map(\.holds)),
      evidence: evidence.filter { !$0.stack.isEmpty },
      fingerprint: Fingerprint.cycle(
        .potentialDeadlock,
        zip(steps, owners).map { step, owner in
          Fingerprint.Step(
            resource: names.resources[step.wants]?.kind ?? .mutex, mode: step.wantMode,
            wait: step.asks, acquisition: owner.took)
        }), time: time)
  }

  private func message(_ steps: [Step], isOfOneThread: Bool) -> String {
    if steps.count == 1 {
      return "\(names.short(steps[0].thread)) asks to read \(names.resource(steps[0].wants)) while"
        + " it reads it already: a writer that comes between stops both for ever"
    }
    let orders = steps.map { step in
      "\(names.short(step.thread)) \(holds(step)) when it asks for \(wanted(step))"
    }
    return
      orders.joined(separator: steps.count == 2 ? ", and " : "; ")
      + (isOfOneThread
        ? ": two threads that did so at the same moment would wait for each other for ever"
        : ": at the same moment they would wait for each other for ever")
  }

  private static func runsOperation(_ stack: [Frame]) -> Bool {
    stack.contains { $0.runtime && $0.symbol == "Operation.start()" }
  }

  private func wanted(_ step: Step) -> String {
    names.resource(step.wants) + use(step.wants, step.wantMode)
  }

  private func holds(_ step: Step) -> String {
    verb(step.holds, "holds", "runs on", "runs") + " " + names.resource(step.holds)
      + use(step.holds, step.holdMode)
  }

  private func took(_ step: Step) -> String {
    verb(step.holds, "takes", "gets onto", "begins") + " " + names.resource(step.holds)
      + use(step.holds, step.holdMode)
  }

  private func verb(
    _ resource: ResourceID, _ lock: String, _ queue: String, _ once: String
  ) -> String {
    switch names.resources[resource]?.kind {
    case .queue: queue
    case .once: once
    default: lock
    }
  }

  private func use(_ resource: ResourceID, _ mode: Mode) -> String {
    names.resources[resource]?.kind == .rwlock ? CycleWords.use(mode) : ""
  }

  private func unique<ID: Hashable>(_ ids: [ID]) -> [ID] {
    var seen: Set<ID> = []
    return ids.filter { seen.insert($0).inserted }
  }
}
