public import WaitForGraph

/// What was seen while a thread waited long.
public struct LongWaitFacts: Sendable {
  public struct Taker: Sendable {
    public var thread: ThreadID
    public var count: Int
    public var stack: [Frame]
    public init(thread: ThreadID, count: Int, stack: [Frame]) {
      self.thread = thread
      self.count = count
      self.stack = stack
    }
  }
  /// What those do who would have to act.
  public var activities: [ThreadID: HangActivity]
  /// How often others took what is waited for, at least, how often of that to read, and in how many
  /// seconds.
  public var taken: Int
  public var read: Int
  public var seconds: Double
  /// Who took it most.
  public var takers: [Taker]
  public init(
    activities: [ThreadID: HangActivity] = [:], taken: Int = 0, read: Int = 0, seconds: Double = 0,
    takers: [Taker] = []
  ) {
    self.activities = activities
    self.taken = taken
    self.read = read
    self.seconds = seconds
    self.takers = takers
  }

  /// Once or twice is a queue.
  var isPassedOver: Bool { taken >= 5 }
}

/// Makes the note that a thread waited long for one thing and no cycle explains it.
public struct LongWaitFinding: Sendable {
  private let names: Names
  private let history: [ResourceID: [ResourceEvent]]

  public init(
    threads: [Thread], resources: [Resource], process: WatchedProcess? = nil,
    history: [ResourceID: [ResourceEvent]] = [:]
  ) {
    names = Names(threads: threads, resources: resources, process: process)
    self.history = history
  }

  /// The note; nil for a thread that does not wait. The first of its threads is the one that waits.
  public func finding(
    for thread: Thread, _ facts: LongWaitFacts = LongWaitFacts(), time: String = UTCTime.now()
  ) -> Finding? {
    guard let wait = thread.waitsFor else { return nil }
    let resource = names.resources[wait.resource]
    let chain = facts.isPassedOver ? [] : chain(from: thread)
    var evidence = [
      Finding.Evidence(
        label: "\(names.short(thread.id)) waits here", thread: thread.id, stack: wait.stack)
    ]
    if facts.isPassedOver {
      for taker in facts.takers where !taker.stack.isEmpty {
        evidence.append(
          .init(
            label: "\(names.short(taker.thread)) took it here, \(times(taker.count)) as seen",
            thread: taker.thread, stack: taker.stack))
      }
    } else {
      evidence += holders(wait.resource) + stands(chain)
    }
    for event in history[wait.resource] ?? [] {
      evidence.append(
        .init(label: event.label(wait.resource, names), thread: nil, stack: event.stack))
    }
    let wants = wait.mode == .exclusive && facts.isPassedOver && facts.read > 0 ? "to write" : "for"
    let others =
      facts.isPassedOver ? facts.takers.map(\.thread) : chain.map(\.owner)
    return Finding(
      kind: .longWait, severity: .note, certainty: .possible,
      message: "\(names.short(thread.id)) has waited \(seconds(wait.seconds ?? 0)) \(wants)"
        + " \(names.resource(wait.resource))"
        + (facts.isPassedOver
          ? passedOver(facts, wait.mode) : "; " + held(wait.resource, chain, facts)),
      threads: [thread.id] + others.filter { $0 != thread.id },
      resources: [wait.resource] + chain.map(\.resource).filter { $0 != wait.resource },
      evidence: evidence,
      fingerprint: Fingerprint.sites(
        .longWait, [resource?.kind.rawValue ?? ""], stacks: [wait.stack]),
      time: time)
  }

  private func seconds(_ seconds: Double) -> String {
    let tenths = Int(seconds * 10)
    return "\(tenths / 10).\(tenths % 10) s"
  }

  private func times(_ count: Int) -> String { count == 1 ? "once" : "\(count) times" }

  // MARK: - Starvation

  private func passedOver(_ facts: LongWaitFacts, _ mode: Mode) -> String {
    let most = facts.takers.map { "\(names.short($0.thread)) \(times($0.count))" }
    let who = most.isEmpty ? "" : " (\(joined(most)))"
    if facts.read * 2 > facts.taken, mode == .exclusive {
      return ", while readers came at least \(times(facts.read)) in"
        + " \(seconds(facts.seconds))\(who): it is starved by readers, since the lock lets them in as long as one of them reads,"
        + " unless it is made with PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP"
    }
    return ", and was passed over at least \(times(facts.taken)) in \(seconds(facts.seconds)),"
      + " when others took it\(who): an unlock hands a lock to nobody, and who runs already is"
      + " faster than who must be woken"
  }

  // MARK: - A holder that takes its time

  private struct Link {
    var resource: ResourceID
    var owner: ThreadID
  }

  /// From holder to holder, as long as the one before waits itself.
  private func chain(from thread: Thread) -> [Link] {
    var links: [Link] = []
    var seen: Set<ThreadID> = [thread.id]
    var wait = thread.waitsFor
    while let resource = wait?.resource, links.count < 8,
      let owner = (names.resources[resource]?.owners ?? []).first(where: { !seen.contains($0) })
    {
      seen.insert(owner)
      links.append(Link(resource: resource, owner: owner))
      wait = names.threads[owner]?.waitsFor
    }
    return links
  }

  private func held(_ resource: ResourceID, _ chain: [Link], _ facts: LongWaitFacts) -> String {
    let owners = names.resources[resource]?.owners ?? []
    guard !owners.isEmpty else { return "nobody is known to hold it" }
    guard let first = chain.first, owners.count == 1 else {
      let rest = owners.count > 4 ? " and \(owners.count - 4) more" : ""
      return "held by " + owners.prefix(4).map(names.short).joined(separator: ", ") + rest
    }
    let since = names.threads[first.owner]?.holds.last { $0.resource == resource }?.seconds
    var words = [
      "held\(since.map { $0 < 0.1 ? "" : " for \(seconds($0))" } ?? "") by"
        + " \(names.short(first.owner))"
    ]
    for link in chain.dropFirst() {
      words.append(
        "which waits for \(names.resource(link.resource)), held by \(names.short(link.owner))")
    }
    if let end = chain.last?.owner, let doing = doing(end, facts) { words.append(doing) }
    return words.joined(separator: ", ")
  }

  private func doing(_ owner: ThreadID, _ facts: LongWaitFacts) -> String? {
    switch facts.activities[owner]?.kind {
    case .computing: return "which runs"
    case .call(let name, _) where Self.sleeps.contains(name): return "which sleeps"
    // What a thread on record does not say it waits for.
    case .call("futex", _): return "which is blocked"
    case .call(let name, let what): return "which is in \(name)" + (what.map { " (\($0))" } ?? "")
    default: return nil
    }
  }
  /// The last is what a sleep is called once it was interrupted.
  private static let sleeps: Set<String> = ["nanosleep", "clock_nanosleep", "restart_syscall"]

  private func holders(_ resource: ResourceID) -> [Finding.Evidence] {
    (names.resources[resource]?.owners ?? []).compactMap { owner in
      guard let hold = names.threads[owner]?.holds.last(where: { $0.resource == resource }),
        !hold.stack.isEmpty
      else { return nil }
      return .init(label: "\(names.short(owner)) took it here", thread: owner, stack: hold.stack)
    }
  }

  /// Where those stand who are in each other's way.
  private func stands(_ chain: [Link]) -> [Finding.Evidence] {
    chain.compactMap { link in
      guard let owner = names.threads[link.owner], owner.kind ?? .thread == .thread,
        !owner.stack.isEmpty
      else { return nil }
      return .init(
        label: "\(names.short(link.owner)) stands here meanwhile", thread: link.owner,
        stack: owner.stack)
    }
  }
}
