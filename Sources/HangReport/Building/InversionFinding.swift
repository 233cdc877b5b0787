public import WaitForGraph

/// What is known of one priority inversion once it is over, or has gone on for long enough.
public struct InversionFacts: Sendable {
  /// Who ran meanwhile, and is less urgent than the waiter.
  public struct Other: Sendable {
    public var thread: ThreadID
    /// On a processor.
    public var seconds: Double
    public init(thread: ThreadID, seconds: Double) {
      self.thread = thread
      self.seconds = seconds
    }
  }
  public var waiter: ThreadID
  public var owner: ThreadID
  public var resource: ResourceID
  /// In words: `SCHED_FIFO 30`, `QoS background`.
  public var waiterPriority: String
  public var ownerPriority: String
  /// Seconds since the wait began, and those of them that the following figures are of.
  public var waited: Double
  public var measured: Double
  /// Seconds that the owner was ready without a processor, and on one; nil where not known.
  public var ready: Double?
  public var ran: Double?
  public var others: [Other]
  public init(
    waiter: ThreadID, owner: ThreadID, resource: ResourceID, waiterPriority: String,
    ownerPriority: String, waited: Double, measured: Double, ready: Double?, ran: Double?,
    others: [Other]
  ) {
    self.waiter = waiter
    self.owner = owner
    self.resource = resource
    self.waiterPriority = waiterPriority
    self.ownerPriority = ownerPriority
    self.waited = waited
    self.measured = measured
    self.ready = ready
    self.ran = ran
    self.others = others
  }

  /// Somebody kept the owner from its processor, so that the wait lasts as long as that one likes
  /// (Sha, Rajkumar & Lehoczky, 1990); else it lasts as long as what the owner does under the lock.
  public var isUnbounded: Bool { (ready ?? 0) >= max(0.02, measured / 5) }
}

/// Makes the finding that an urgent thread waited for a less urgent one.
public struct InversionFinding: Sendable {
  private let names: Names
  private let history: [ResourceID: [ResourceEvent]]

  public init(
    threads: [Thread], resources: [Resource], process: WatchedProcess? = nil,
    history: [ResourceID: [ResourceEvent]] = [:]
  ) {
    names = Names(threads: threads, resources: resources, process: process)
    self.history = history
  }

  /// The finding; nil where a thread is not listed. `goesOn`: the wait has not ended yet.
  public func finding(
    for facts: InversionFacts, goesOn: Bool, time: String = UTCTime.now()
  ) -> Finding? {
    guard let waiter = names.threads[facts.waiter], let owner = names.threads[facts.owner] else {
      return nil
    }
    let wanted = waiter.waitsFor?.resource ?? facts.resource
    let (waiterName, ownerName) = (names.short(waiter.id), names.short(owner.id))
    let took =
      owner.holds.last { $0.resource == facts.resource }?.stack
      ?? history[facts.resource]?.first { $0.action == .took && $0.thread == owner.id }?.stack
      ?? []
    let waits = waiter.waitsFor?.stack ?? waiter.stack
    var evidence: [Finding.Evidence] = [
      .init(
        label: "\(waiterName) (\(facts.waiterPriority)) waits here", thread: waiter.id, stack: waits
      )
    ]
    if !took.isEmpty {
      evidence.append(
        .init(
          label:
            "\(ownerName) (\(facts.ownerPriority)) took \(names.resource(facts.resource)) here",
          thread: owner.id, stack: took))
    }
    evidence.append(
      .init(label: "\(ownerName) stood here meanwhile", thread: owner.id, stack: owner.stack))
    let others = facts.isUnbounded ? facts.others.prefix(3) : []
    for other in others {
      guard let thread = names.threads[other.thread] else { continue }
      evidence.append(
        .init(
          label: "\(names.short(thread.id)) ran here", thread: thread.id, stack: thread.stack))
    }
    let through =
      wanted == facts.resource ? "" : ", behind \(names.resource(facts.resource)),"
    let message =
      "\(waiterName) (\(facts.waiterPriority)) \(goesOn ? "has waited" : "waited")"
      + " \(milliseconds(facts.waited)) for \(names.resource(wanted))\(through) which"
      + " \(ownerName) (\(facts.ownerPriority)) \(goesOn ? "has" : "had"): "
      + course(facts, ownerName, Array(others)) + lending(facts.resource)
    return Finding(
      kind: .priorityInversion, severity: .warning, certainty: .certain, message: message,
      threads: [waiter.id, owner.id] + others.map(\.thread),
      resources: wanted == facts.resource ? [wanted] : [wanted, facts.resource],
      evidence: evidence,
      fingerprint: Fingerprint.sites(
        .priorityInversion, [names.kind(facts.resource)], stacks: [waits, took]),
      time: time)
  }

  /// What became of the time.
  private func course(
    _ facts: InversionFacts, _ owner: String, _ others: [InversionFacts.Other]
  ) -> String {
    guard let ready = facts.ready, let ran = facts.ran else { return "a priority inversion" }
    let window = "of \(milliseconds(facts.measured))"
    guard facts.isUnbounded else {
      let rest = max(0, facts.measured - ran - ready)
      return "a bounded priority inversion, as long as \(owner) is busy with it (\(window) it"
        + " ran for \(milliseconds(ran)) and slept or waited for \(milliseconds(rest)))"
    }
    let who =
      others.isEmpty
      ? "others ran, of other processes or more urgent ones"
      : joined(others.map { "\(names.short($0.thread)) ran for \(milliseconds($0.seconds))" })
    return "an unbounded priority inversion (\(window) \(owner) was ready to run and without a"
      + " processor for \(milliseconds(ready)), while \(who))"
  }

  /// Why nobody lent the owner its priority.
  private func lending(_ resource: ResourceID) -> String {
    switch names.resources[resource]?.kind {
    case .semaphore: "; a semaphore has no owner to whom a waiter could lend its priority"
    case .group: "; a group has no owner to whom a waiter could lend its priority"
    default: ""
    }
  }

  private func milliseconds(_ seconds: Double) -> String {
    seconds < 10
      ? "\(Int((seconds * 1000).rounded())) ms" : "\(Int((seconds * 10).rounded()) / 10) s"
  }
}
