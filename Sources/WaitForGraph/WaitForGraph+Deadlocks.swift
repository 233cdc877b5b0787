extension WaitForGraph {
  /// Every deadlock: one for each strongly connected set of threads, one for each resource whose
  /// owner is gone; and where there is neither, one for all waits that nobody is left to end.
  ///
  /// In order of their first threads, and the same for the same snapshot in whatever order it is
  /// listed.
  public func deadlocks() -> [Deadlock] {
    let arcs = stuckArcs()
    var found: [Deadlock] = []
    var behind = Behind(arcs: arcs, threadCount: threads.count)
    for members in Self.stronglyConnected(arcs) {
      let edges = edges(along: Self.shortestCycle(in: members, arcs))
      let guilty = Set(edges.map(\.thread))
      let victims = behind.threads(behind: members).map { threads[$0].id }
      found.append(
        Deadlock(
          cause: .cycle, edges: edges, victims: victims.filter { !guilty.contains($0) },
          needsStandstill: members.contains { isOpenWant($0) }))
    }
    found += ownersGone(&behind)
    found += forsaken(&behind)
    if let deadlock = nobodyCanWake(arcs, &behind) {
      if found.isEmpty {
        found.append(deadlock)
      } else {
        // Those of the other deadlocks might have ended these waits.
        let waiters = Set(deadlock.edges.map(\.thread) + deadlock.victims)
        let told = found.reduce(into: Set<ThreadID>()) { told, other in
          told.formUnion(other.edges.map(\.thread) + other.victims)
        }
        found[0].victims = (found[0].victims + waiters.subtracting(told)).sorted()
      }
    }
    return found.sorted {
      ($0.edges[0].thread, $0.edges[0].resource) < ($1.edges[0].thread, $1.edges[0].resource)
    }
  }

  /// The arcs among what is stuck; from an open want also to those who would end it. A want that is
  /// open for others than its holders leads to both.
  private func stuckArcs() -> [[Int]] {
    arcs.indices.map { node in
      guard isStuck[node] else { return [] }
      var targets = arcs[node].filter { isStuck[$0] }
      if node >= threads.count {
        for waker in wanted[node - threads.count].wakers
        where isStuck[waker] && !targets.contains(waker) {
          targets.append(waker)
        }
      }
      return targets
    }
  }

  private func isOpenWant(_ node: Int) -> Bool {
    node >= threads.count && wanted[node - threads.count].isOpen
  }

  private func ownersGone(_ behind: inout Behind) -> [Deadlock] {
    // Readers and writers, and waiters that hold it themselves, want one lock differently.
    var wants: [ResourceID: [Int]] = [:]
    for (index, want) in wanted.enumerated() {
      let node = threads.count + index
      guard isStuck[node], arcs[node].contains(where: { !threads[$0].isAlive }) else { continue }
      wants[want.resource, default: []].append(node)
    }
    return wants.values.compactMap { nodes in
      let waiters = threads.indices.filter { arcs[$0].contains(where: nodes.contains) }
      guard let first = waiters.first, let want = arcs[first].first(where: nodes.contains),
        let owner = arcs[want].first(where: { !threads[$0].isAlive })
      else { return nil }
      let victims = behind.threads(behind: waiters).filter { $0 != first }.map { threads[$0].id }
      return Deadlock(
        cause: .ownerGone, edges: [edge(from: first, wanted[want - threads.count], to: owner)],
        victims: victims)
    }
  }

  /// The wants that lead to nobody, or to one that rests for ever: each of their waiters is an edge.
  private func nobodyCanWake(_ stuckArcs: [[Int]], _ behind: inout Behind) -> Deadlock? {
    let ends = wanted.indices.map { threads.count + $0 }.filter { node in
      isStuck[node] && stuckArcs[node].isEmpty && !wanted[node - threads.count].isForsaken
        && !arcs[node].contains { !threads[$0].isAlive }
    }
    guard !ends.isEmpty else { return nil }
    let isEnd = Set(ends)
    var edges: [Edge] = []
    for node in threads.indices where isStuck[node] {
      for want in arcs[node] where isEnd.contains(want) {
        edges.append(
          edge(from: node, wanted[want - threads.count], to: arcs[want].first))
      }
    }
    guard !edges.isEmpty else { return nil }
    let guilty = Set(edges.map(\.thread))
    let victims = behind.threads(behind: ends).map { threads[$0].id }
    return Deadlock(
      cause: .nobodyCanWake, edges: edges, victims: victims.filter { !guilty.contains($0) },
      needsStandstill: true)
  }

  /// The wants that nobody can give any more, together: one may hide behind the other. Where those who
  /// would are known, the arcs lead on.
  private func forsaken(_ behind: inout Behind) -> [Deadlock] {
    let ends = wanted.indices.filter { wanted[$0].isForsaken && !wanted[$0].hasOnlyWakers }
      .map { threads.count + $0 }
    let edges = threads.indices.flatMap { node in
      arcs[node].filter(ends.contains).map {
        edge(from: node, wanted[$0 - threads.count], to: nil)
      }
    }
    guard !edges.isEmpty else { return [] }
    let guilty = Set(edges.map(\.thread))
    let victims = behind.threads(behind: ends).map { threads[$0].id }
    return [
      Deadlock(
        cause: .forsaken, edges: edges, victims: victims.filter { !guilty.contains($0) })
    ]
  }

  /// Turns a cycle of nodes, threads and what they want by turns, into edges that begin with the
  /// lowest thread.
  private func edges(along cycle: [Int]) -> [Edge] {
    let starts = cycle.indices.filter { cycle[$0] < threads.count }
    guard let start = starts.min(by: { cycle[$0] < cycle[$1] }) else { return [] }
    let nodes = Array(cycle[start...] + cycle[..<start])
    return stride(from: 0, to: nodes.count - 1, by: 2).map { index in
      edge(
        from: nodes[index], wanted[nodes[index + 1] - threads.count],
        to: nodes[(index + 2) % nodes.count])
    }
  }
}

/// Finds who is stuck behind a set of nodes, against the direction of the arcs.
private struct Behind {
  private var reversed: [[Int]]
  private let threadCount: Int
  /// The number of the search that saw a node last: nothing has to be cleared between searches.
  private var seen: [Int]
  private var search = 0

  init(arcs: [[Int]], threadCount: Int) {
    self.threadCount = threadCount
    reversed = Array(repeating: [], count: arcs.count)
    seen = Array(repeating: 0, count: arcs.count)
    for (node, targets) in arcs.enumerated() {
      for target in targets { reversed[target].append(node) }
    }
  }

  /// The threads among `nodes` and all that wait for them, however far back, by ascending node.
  mutating func threads(behind nodes: [Int]) -> [Int] {
    search += 1
    var reached = nodes
    for node in nodes { seen[node] = search }
    var next = 0
    while next < reached.count {
      for node in reversed[reached[next]] where seen[node] != search {
        seen[node] = search
        reached.append(node)
      }
      next += 1
    }
    return reached.filter { $0 < threadCount }.sorted()
  }
}
