// Both algorithms keep their own stacks: a chain may be as long as there are threads.

extension WaitForGraph {
  /// The strongly connected sets that hold a cycle, each sorted (Tarjan, 1972).
  static func stronglyConnected(_ arcs: [[Int]]) -> [[Int]] {
    let unseen = -1
    var index = Array(repeating: unseen, count: arcs.count)
    var lowLink = Array(repeating: 0, count: arcs.count)
    var onStack = Array(repeating: false, count: arcs.count)
    var stack: [Int] = []
    var visits: [(node: Int, nextArc: Int)] = []
    var counter = 0
    var components: [[Int]] = []

    for root in arcs.indices where index[root] == unseen {
      visits.append((root, 0))
      while let (node, nextArc) = visits.last {
        if nextArc == 0 {
          index[node] = counter
          lowLink[node] = counter
          counter += 1
          stack.append(node)
          onStack[node] = true
        }
        if nextArc < arcs[node].count {
          visits[visits.count - 1].nextArc += 1
          let target = arcs[node][nextArc]
          if index[target] == unseen {
            visits.append((target, 0))
          } else if onStack[target] {
            lowLink[node] = min(lowLink[node], index[target])
          }
          continue
        }
        visits.removeLast()
        if let parent = visits.last?.node { lowLink[parent] = min(lowLink[parent], lowLink[node]) }
        guard lowLink[node] == index[node] else { continue }
        var members: [Int] = []
        repeat {
          members.append(stack.removeLast())
          onStack[members[members.count - 1]] = false
        } while members.last != node
        // Threads and resources alternate, so even a thread that waits for itself makes two nodes.
        if members.count > 1 { components.append(members.sorted()) }
      }
    }
    return components
  }

  /// The shortest cycle inside a strongly connected set, as nodes in order.
  ///
  /// A set that is not one plain ring has, on each of its cycles, a node where the ways part; it is
  /// enough to search from those. Beyond `effort` steps the shortest cycle found so far is taken:
  /// still a cycle, and readable enough.
  static func shortestCycle(
    in members: [Int], _ arcs: [[Int]], effort: Int = 20_000_000
  ) -> [Int] {
    let inside = Set(members)
    let forks = members.filter { node in
      var count = 0
      for target in arcs[node] where inside.contains(target) { count += 1 }
      return count > 1
    }
    var best: [Int] = []
    var steps = 0
    for start in forks.isEmpty ? [members[0]] : forks {
      let found = cycle(
        through: start, arcs, inside: inside, shorterThan: best.isEmpty ? Int.max : best.count,
        steps: &steps)
      if let found { best = found }
      if best.count == 2 || (steps > effort && !best.isEmpty) { break }
    }
    return best
  }

  /// Breadth first from `start` back to `start`.
  private static func cycle(
    through start: Int, _ arcs: [[Int]], inside: Set<Int>, shorterThan limit: Int,
    steps: inout Int
  ) -> [Int]? {
    var cameFrom: [Int: Int] = [:]
    var level = [start]
    var length = 1
    while !level.isEmpty, length < limit {
      var next: [Int] = []
      for node in level {
        for target in arcs[node] where inside.contains(target) {
          steps += 1
          if target == start {
            var cycle = [node]
            while let before = cameFrom[cycle[cycle.count - 1]] { cycle.append(before) }
            return cycle.reversed()
          }
          if cameFrom[target] == nil {
            cameFrom[target] = node
            next.append(target)
          }
        }
      }
      level = next
      length += 1
    }
    return nil
  }
}
