public import WaitForGraph

/// What is known of threads of the cooperative pool that block while others are left.
public struct BlockedPoolFacts: Sendable {
  /// All that are blocked.
  public var workers: [ThreadID]
  /// Those among them that were not told before.
  public var fresh: [ThreadID]
  /// How many threads the pool has at most.
  public var width: Int
  /// How long the first of the fresh ones has been blocked.
  public var seconds: Double
  public init(workers: [ThreadID], fresh: [ThreadID], width: Int, seconds: Double) {
    self.workers = workers
    self.fresh = fresh
    self.width = width
    self.seconds = seconds
  }

  /// No more than one thread is left: the pool is about to stand still.
  public var isNearlyExhausted: Bool { workers.count >= max(2, width - 1) }
}

extension PoolFinding {
  /// A note, or a warning where no more than one thread is left.
  public func finding(for facts: BlockedPoolFacts, time: String = UTCTime.now()) -> Finding {
    let shown = places(of: facts.fresh)
    let evidence = shown.prefix(Self.mostPlaces).compactMap { place -> Finding.Evidence? in
      guard let first = place.threads.first else { return nil }
      let others = place.threads.count - 1
      let who = names.short(first) + (others == 0 ? "" : " and \(counted(others, "other"))")
      return .init(
        label: "\(who) \(does(first, isOne: others == 0)) here", thread: first, stack: place.stack)
    }
    let tenths = Int(facts.seconds * 10)
    let many = facts.workers.count
    let lasted = "for \(tenths / 10).\(tenths % 10) s"
    let first = facts.fresh.first.map { ": \(names.short($0)) \(does($0, isOne: true))" } ?? ""
    return Finding(
      kind: .poolExhaustion, severity: facts.isNearlyExhausted ? .warning : .note,
      certainty: .certain,
      message: "\(many) of \(counted(facts.width, "thread")) of the cooperative pool "
        + "\(many == 1 ? "has" : "have") been blocked in \(many == 1 ? "a task" : "tasks") \(lasted)"
        + "\(first); it never gets more threads",
      threads: facts.fresh, resources: [], evidence: evidence,
      fingerprint: Fingerprint.sites(
        .poolExhaustion, ["blocking"], stacks: shown.prefix(1).map(\.stack)),
      time: time)
  }

  private func does(_ thread: ThreadID, isOne: Bool) -> String {
    guard let wait = names.threads[thread]?.waitsFor else {
      return names.threads[thread]?.state == .sleeping
        ? (isOne ? "sleeps" : "sleep") : isOne ? "waits with a time limit" : "wait with time limits"
    }
    return "\(isOne ? "waits" : "wait") for \(names.resource(wait.resource))"
  }
}
