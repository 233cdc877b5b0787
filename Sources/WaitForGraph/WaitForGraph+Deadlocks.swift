extension WaitForGraph {
  /// Every deadlock: one for each strongly connected set of threads, and one for each resource
  /// whose owner is gone.
  ///
  /// In order of their first threads, and the same for the same snapshot in whatever order it is
  /// listed.
  public func deadlocks() -> [Deadlock] {
    let components = stronglyConnected()
    var found: [Deadlock] = []
    var behind = Behind(arcs: arcs, threadCount: threads.count)
    for members in components {
      let cycle = shortestCycle(in: members)
      let edges = edges(along: cycle)
      let guilty = Set(edges.map(\.thread))
      let victims = behind.threads(behind: members).map { threads[$0].id }
      found.append(
        Deadlock(cause: .cycle, edges: edges, victims: victims.filter { !guilty.contains($0) }))
    }
    found += ownersGone(&behind)
    return found.sorted {
      ($0.edges[0].thread, $0.edges[0].resource) < ($1.edges[0].thread, $1.edges[0].resource)
    }
  }

  private func ownersGone(_ behind: inout Behind) -> [Deadlock] {
    var waiters: [ResourceID: [Int]] = [:]
    for node in threads.indices {
      guard let wait = wait(of: threads[node].id),
        blockers(of: node).contains(where: { !threads[$0].isAlive })
      else { continue }
      waiters[wait.resource, default: []].append(node)
    }
    return waiters.values.compactMap { nodes in
      guard let first = nodes.first, let wait = threads[first].wait,
        let owner = blockers(of: first).first(where: { !threads[$0].isAlive })
      else { return nil }
      let victims = behind.threads(behind: nodes).filter { $0 != first }.map { threads[$0].id }
      return Deadlock(
        cause: .ownerGone, edges: [edge(from: first, wait, to: owner)], victims: victims)
    }
  }

  /// Turns a cycle of nodes into edges that begin with the lowest thread.
  private func edges(along cycle: [Int]) -> [Edge] {
    let nodes = cycle.filter { $0 < threads.count }
    guard let start = nodes.indices.min(by: { nodes[$0] < nodes[$1] }) else { return [] }
    let rotated = nodes[start...] + nodes[..<start]
    return zip(rotated, rotated.dropFirst() + rotated.prefix(1)).compactMap { node, next in
      threads[node].wait.map { edge(from: node, $0, to: next) }
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
