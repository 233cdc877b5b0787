import Testing
import WaitForGraph

/// Who can go on, said as simply as possible: again and again, until nothing changes.
private struct NaiveModel {
  let snapshot: Snapshot

  func waits(_ thread: Snapshot.Thread) -> [Snapshot.Wait] {
    guard thread.isAlive else { return [] }
    return ((thread.wait.map { [$0] } ?? []) + thread.moreWaits).filter { !$0.isTimed }
  }

  func resource(_ wait: Snapshot.Wait) -> Snapshot.Resource {
    snapshot.resources.first { $0.id == wait.resource }!
  }

  func owners(_ wait: Snapshot.Wait, of thread: Snapshot.Thread) -> [Snapshot.Thread] {
    let resource = resource(wait)
    if resource.hasOnlyWakers {
      return snapshot.threads.filter { $0.isAlive && resource.wakers.contains($0.id) }
    }
    switch resource.kind {
    case .condition, .barrier: return []
    case .thread: return snapshot.threads.filter { $0.id == resource.thread && $0.isAlive }
    default: break
    }
    let owners = snapshot.threads.filter { other in
      if other.id == thread.id, resource.isReentrant, resource.kind != .rwlock { return false }
      return other.holds.contains {
        $0.resource == wait.resource && (wait.mode == .exclusive || $0.mode == .exclusive)
      }
    }
    if !owners.isEmpty || wait.mode == .exclusive { return owners }
    return snapshot.threads.filter { other in
      waits(other).contains { $0.resource == wait.resource && $0.mode == .exclusive }
    }
  }

  /// Whom a circle may lead to: whoever is in the way, and whoever would end an open wait.
  func next(_ thread: Snapshot.Thread, among stuck: Set<ThreadID>) -> Set<ThreadID> {
    Set(
      waits(thread).filter { !isGiven($0, thread, free: live(stuck)) }.flatMap { wait in
        owners(wait, of: thread).map(\.id) + resource(wait).wakers
      }
    ).intersection(stuck)
  }

  func live(_ stuck: Set<ThreadID>) -> Set<ThreadID> {
    let notStuck = snapshot.threads.filter { $0.isAlive && !stuck.contains($0.id) }
    // An idle one can be given something to do, where there is anybody who gives.
    let anybody = snapshot.hasOpenings || notStuck.contains { !$0.isIdle }
    return Set(notStuck.filter { !$0.isIdle || anybody }.map(\.id))
  }

  func isGiven(_ wait: Snapshot.Wait, _ thread: Snapshot.Thread, free: Set<ThreadID>) -> Bool {
    let (resource, owners) = (resource(wait), owners(wait, of: thread))
    let isGiven =
      resource.needsOne && !owners.isEmpty
      ? owners.contains { free.contains($0.id) } : owners.allSatisfy { free.contains($0.id) }
    return isGiven && (!resource.isOpen || snapshot.hasOpenings || !free.isEmpty)
  }

  func stuck() -> Set<ThreadID> {
    var free: Set<ThreadID> = []
    while true {
      let anybody = snapshot.hasOpenings || !free.isEmpty
      let more = snapshot.threads.filter { thread in
        thread.isAlive && !free.contains(thread.id) && (!thread.isIdle || anybody)
          && waits(thread).allSatisfy { isGiven($0, thread, free: free) }
      }
      if more.isEmpty { break }
      free.formUnion(more.map(\.id))
    }
    return Set(
      snapshot.threads.filter {
        $0.isAlive && !free.contains($0.id) && !waits($0).isEmpty
      }.map(\.id))
  }

  /// The length of the shortest circle through a thread, by powers of the relation.
  func shortestCircle(through start: ThreadID, among stuck: Set<ThreadID>) -> Int? {
    let byID = Dictionary(uniqueKeysWithValues: snapshot.threads.map { ($0.id, $0) })
    var reached: Set<ThreadID> = [start]
    for length in 1...snapshot.threads.count {
      reached = Set(reached.flatMap { next(byID[$0]!, among: stuck) })
      if reached.contains(start) { return length }
    }
    return nil
  }

  func check(_ context: @autoclosure () -> String) {
    let deadlocks = WaitForGraph(snapshot).deadlocks()
    let stuck = stuck()
    var told: Set<ThreadID> = []
    let byID = Dictionary(uniqueKeysWithValues: snapshot.threads.map { ($0.id, $0) })
    for deadlock in deadlocks {
      let circle = deadlock.edges.map(\.thread)
      told.formUnion(circle + deadlock.victims)
      #expect(Set(circle).isDisjoint(with: deadlock.victims), "\(context())")
      #expect(deadlock.victims == deadlock.victims.sorted(), "\(context())")
      for (edge, following) in zip(deadlock.edges, circle.dropFirst() + circle.prefix(1)) {
        let thread = byID[edge.thread]!
        #expect(waits(thread).contains { $0.resource == edge.resource }, "\(context())")
        guard let owner = edge.owner else { continue }
        let isNamed = waits(thread).filter { $0.resource == edge.resource }.contains { wait in
          owners(wait, of: thread).contains { $0.id == owner }
            || resource(wait).wakers.contains(owner)
        }
        #expect(isNamed, "\(context())")
        if deadlock.cause == .cycle { #expect(owner == following, "\(context())") }
      }
      switch deadlock.cause {
      case .cycle:
        #expect(Set(circle).count == circle.count, "\(context())")
        #expect(circle.first == circle.min(), "\(context())")
        // Among the circle's own threads and those that are both before and behind it, none has a shorter one.
        let knot = circle.compactMap { shortestCircle(through: $0, among: stuck) }.min()
        #expect(knot == circle.count, "\(context())")
      case .ownerGone:
        #expect(byID[deadlock.edges[0].owner!]?.isAlive == false, "\(context())")
      case .forsaken:
        Issue.record("nothing is forsaken here: \(context())")
      case .nobodyCanWake:
        #expect(!snapshot.hasOpenings && deadlock.needsStandstill, "\(context())")
        let owners = deadlock.edges.compactMap(\.owner)
        #expect(owners.allSatisfy { byID[$0]?.isIdle == true }, "\(context())")
      }
    }
    #expect(told == stuck, "\(context())")
  }
}

@Suite struct NaiveModelTests {
  @Test("every state of three threads over three mutexes")
  func exhaustive() {
    // Each mutex is free or held by one of three; each thread waits for none or one of three.
    let resources = (0..<3).map { Snapshot.Resource(id: ResourceID($0), kind: .mutex) }
    for code in 0..<(4 * 4 * 4 * 4 * 4 * 4) {
      var digits = code
      func digit() -> Int {
        defer { digits /= 4 }
        return digits % 4
      }
      var threads = (0..<3).map { Snapshot.Thread(id: ThreadID($0)) }
      for resource in resources {
        let owner = digit()
        if owner < 3 {
          threads[owner].holds.append(.init(resource: resource.id, mode: .exclusive))
        }
      }
      for thread in threads.indices {
        let wanted = digit()
        guard wanted < 3 else { continue }
        threads[thread].wait = .init(resource: ResourceID(wanted), mode: .exclusive)
      }
      NaiveModel(snapshot: Snapshot(threads: threads, resources: resources)).check("state \(code)")
    }
  }

  @Test("random snapshots against the naive model")
  func random() {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("seed \(seed)")
    var source = SplitMix(state: seed)
    for round in 0..<4000 {
      NaiveModel(snapshot: randomSnapshot(&source)).check("seed \(seed), round \(round)")
    }
  }
}

private func randomSnapshot(_ source: inout SplitMix) -> Snapshot {
  let threadCount = Int.random(in: 1...12, using: &source)
  let kinds: [ResourceKind] = [
    .mutex, .mutex, .rwlock, .rwlock, .spinlock, .condition, .barrier, .semaphore, .group, .pool,
  ]
  var resources = (0..<Int.random(in: 1...8, using: &source)).map { id in
    Snapshot.Resource(
      id: ResourceID(id), kind: kinds.randomElement(using: &source)!,
      isReentrant: Int.random(in: 0..<4, using: &source) == 0)
  }
  for index in resources.indices {
    resources[index].needsOne = resources[index].kind == .pool
    if resources[index].kind == .group { resources[index].isOpen = Bool.random(using: &source) }
    if resources[index].isOpen, Bool.random(using: &source) {
      resources[index].wakers = (0..<2).map { _ in
        ThreadID(Int.random(in: 0..<threadCount, using: &source))
      }
      if Int.random(in: 0..<3, using: &source) == 0 {
        resources[index].hasOnlyWakers = true
        resources[index].isOpen = false
        resources[index].needsOne = Bool.random(using: &source)
      }
    }
  }
  for id in 0..<threadCount where Int.random(in: 0..<5, using: &source) == 0 {
    resources.append(
      .init(id: ResourceID(resources.count), kind: .thread, thread: ThreadID(id)))
  }
  var threads = (0..<threadCount).map { id in
    Snapshot.Thread(
      id: ThreadID(id), isAlive: Int.random(in: 0..<15, using: &source) != 0,
      isIdle: Int.random(in: 0..<8, using: &source) == 0)
  }
  for resource in resources where resource.kind != .thread {
    let readers =
      [.rwlock, .pool].contains(resource.kind) && Bool.random(using: &source)
    for _ in 0..<(readers ? Int.random(in: 0...4, using: &source) : 1) {
      let mode = readers ? Mode.shared : .exclusive
      let owner = Int.random(in: 0..<threadCount, using: &source)
      threads[owner].holds.append(.init(resource: resource.id, mode: mode))
    }
  }
  let isStill = Bool.random(using: &source)
  for index in threads.indices where !threads[index].isIdle {
    guard isStill || Int.random(in: 0..<6, using: &source) != 0 else { continue }
    threads[index].wait = randomWait(resources, &source)
    if Int.random(in: 0..<5, using: &source) == 0 {
      threads[index].moreWaits = [randomWait(resources, &source)]
    }
  }
  return Snapshot(
    threads: threads.shuffled(using: &source), resources: resources,
    hasOpenings: Bool.random(using: &source))
}

private func randomWait(
  _ resources: [Snapshot.Resource], _ source: inout SplitMix
) -> Snapshot.Wait {
  let resource = resources.randomElement(using: &source)!
  let mode: Mode = resource.kind == .rwlock && Bool.random(using: &source) ? .shared : .exclusive
  return .init(
    resource: resource.id, mode: mode, isTimed: Int.random(in: 0..<6, using: &source) == 0)
}

struct SplitMix: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}
