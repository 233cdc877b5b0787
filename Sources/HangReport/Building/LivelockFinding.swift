public import WaitForGraph

/// What is known of threads that fail in turn.
public struct LivelockFacts: Sendable {
  public struct Member: Sendable {
    public var thread: ThreadID
    /// How often it failed, and what it tried for last, which the next member holds.
    public var failures: Int
    public var wanted: ResourceID
    /// Where it tries, and where the next member takes that; empty where not known.
    public var tried: [Frame]
    public var taken: [Frame]
    public init(
      thread: ThreadID, failures: Int, wanted: ResourceID, tried: [Frame], taken: [Frame]
    ) {
      self.thread = thread
      self.failures = failures
      self.wanted = wanted
      self.tried = tried
      self.taken = taken
    }
  }
  /// Each is kept by the next one, the last by the first.
  public var members: [Member]
  /// For how long none of them has got on.
  public var seconds: Double
  public init(members: [Member], seconds: Double) {
    self.members = members
    self.seconds = seconds
  }
}

/// Makes the finding that threads keep failing to take what the others hold.
public struct LivelockFinding: Sendable {
  private let names: Names

  public init(threads: [Thread], resources: [Resource], process: WatchedProcess? = nil) {
    names = Names(threads: threads, resources: resources, process: process)
  }

  /// The finding; nil without members.
  public func finding(for facts: LivelockFacts, time: String = UTCTime.now()) -> Finding? {
    let members = facts.members
    guard let last = members.last else { return nil }
    var evidence: [Finding.Evidence] = []
    var clauses: [String] = []
    for (index, member) in members.enumerated() {
      let (who, wanted) = (names.short(member.thread), names.resource(member.wanted))
      // What it holds itself, the one before wants.
      let before = index == 0 ? last : members[index - 1]
      let held = names.resource(before.wanted)
      clauses.append(
        "\(who) tried for \(wanted) in vain \(times(member.failures)) while it held \(held)")
      if !before.taken.isEmpty {
        evidence.append(
          .init(label: "\(who) takes \(held) here", thread: member.thread, stack: before.taken))
      }
      if !member.tried.isEmpty {
        evidence.append(
          .init(
            label: "\(who) tries for \(wanted) here, in vain", thread: member.thread,
            stack: member.tried))
      }
    }
    let who = names.list(members.map(\.thread))
    let others = members.count == 2 ? "the other one holds" : "the next one holds"
    return Finding(
      kind: .livelock, severity: .warning, certainty: .possible,
      message: "\(who) keep failing to take what \(others), and none has got on for"
        + " \(HangFinding.words(facts.seconds)): " + clauses.joined(separator: "; "),
      cycle: members.enumerated().map { index, member in
        .init(
          thread: member.thread, waitsFor: member.wanted, mode: .exclusive,
          ownedBy: members[(index + 1) % members.count].thread)
      },
      threads: members.map(\.thread), resources: members.map(\.wanted),
      evidence: evidence,
      fingerprint: Fingerprint.cycle(
        .livelock,
        members.map { member in
          .init(
            resource: names.resources[member.wanted]?.kind ?? .mutex, mode: .exclusive,
            wait: member.tried, acquisition: member.taken)
        }),
      time: time)
  }

  private func times(_ count: Int) -> String { count == 1 ? "once" : "\(count) times" }
}
