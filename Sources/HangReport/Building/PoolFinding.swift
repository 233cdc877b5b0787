public import WaitForGraph

/// What is known of a pool whose threads are all blocked.
public struct PoolFacts: Sendable {
  public var workers: [ThreadID]
  /// Those of the queued blocks or tasks that are listed, and how many there are.
  public var queued: [ThreadID]
  public var queuedCount: Int
  public var resource: ResourceID?
  public var isCooperative: Bool
  /// Of a pool that grows: it has few threads yet.
  public var isSmall: Bool
  public var seconds: Double
  public init(
    workers: [ThreadID], queued: [ThreadID], queuedCount: Int, resource: ResourceID?,
    isCooperative: Bool, isSmall: Bool, seconds: Double
  ) {
    self.workers = workers
    self.queued = queued
    self.queuedCount = queuedCount
    self.resource = resource
    self.isCooperative = isCooperative
    self.isSmall = isSmall
    self.seconds = seconds
  }
}

/// Makes the finding that every thread of a pool is blocked while work is queued behind them.
public struct PoolFinding: Sendable {
  let names: Names
  static let mostPlaces = 4
  private static let mostQueued = 3

  public init(threads: [Thread], resources: [Resource], process: WatchedProcess? = nil) {
    names = Names(threads: threads, resources: resources, process: process)
  }

  public func finding(for facts: PoolFacts, time: String = UTCTime.now()) -> Finding {
    let places = places(of: facts.workers)
    var evidence: [Finding.Evidence] = []
    for place in places.prefix(Self.mostPlaces) {
      guard let first = place.threads.first else { continue }
      let who =
        place.threads.count == 1
        ? names.short(first)
        : "\(place.threads.count) threads of the pool, \(names.short(first)) among them,"
      let wait = names.threads[first]?.waitsFor.map { " for \(names.resource($0.resource))" } ?? ""
      let verb = place.threads.count == 1 ? "waits" : "wait"
      evidence.append(.init(label: "\(who) \(verb)\(wait) here", thread: first, stack: place.stack))
    }
    let unnamed = places.dropFirst(Self.mostPlaces).map(\.threads.count).reduce(0, +)
    let waiting = self.places(of: facts.queued).prefix(Self.mostQueued)
    for place in waiting {
      guard let first = place.threads.first else { continue }
      let others = place.threads.count - 1
      let what =
        names.threads[first]?.kind == .task
        ? names.short(first) : "a block that is queued behind them"
      let who = others == 0 ? "\(what) has" : "\(what) and \(counted(others, "other")) have"
      evidence.append(
        .init(label: "\(who) no thread to run on", thread: first, stack: place.stack))
    }
    let queued = counted(facts.queuedCount, facts.isCooperative ? "job" : "item")
    let pool =
      facts.isCooperative
      ? "the cooperative pool" : "the global queue" + named(facts.resource)
    let many = facts.workers.count
    let blocked =
      many == 1
      ? "the only thread of \(pool) is blocked" : "all \(many) threads of \(pool) are blocked"
    let tenths = Int(facts.seconds * 10)
    let outlook =
      facts.isCooperative
      ? "; it never gets more" : "; libdispatch starts one more each second, up to 255"
    return Finding(
      kind: .poolExhaustion, severity: facts.isSmall ? .note : .error, certainty: .certain,
      message: "\(blocked) and have been for \(tenths / 10).\(tenths % 10) s, with \(queued)"
        .replacing("is blocked and have", with: "is blocked and has")
        + " queued behind them\(outlook)"
        + (unnamed > 0 ? " (\(unnamed) of them wait at other places)" : ""),
      threads: facts.workers + waiting.compactMap(\.threads.first),
      resources: facts.resource.map { [$0] } ?? [],
      evidence: evidence,
      fingerprint: Fingerprint.sites(
        .poolExhaustion, [facts.isCooperative ? "cooperative" : "global"],
        stacks: places.map(\.stack).prefix(1).map { $0 }),
      time: time)
  }

  private func named(_ resource: ResourceID?) -> String {
    resource.flatMap { names.resources[$0]?.name }.map { " (\($0))" } ?? ""
  }

  struct Place {
    var key: String
    var threads: [ThreadID]
    var stack: [Frame]
  }

  /// Where they wait, the most crowded place first.
  func places(of workers: [ThreadID]) -> [Place] {
    var places: [Place] = []
    for id in workers {
      let stack = names.threads[id]?.stack ?? []
      let own = stack.first { !$0.runtime }
      let key =
        own.map { "\($0.symbol ?? $0.image):\($0.line ?? 0)" } ?? stack.first?.symbol ?? "?"
      if let index = places.firstIndex(where: { $0.key == key }) {
        places[index].threads.append(id)
      } else {
        places.append(Place(key: key, threads: [id], stack: stack))
      }
    }
    return places.enumerated().sorted { a, b in
      (b.element.threads.count, a.offset) < (a.element.threads.count, b.offset)
    }.map(\.element)
  }
}
