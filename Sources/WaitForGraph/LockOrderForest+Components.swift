/// Requests that can be on a common cycle, as far as locks and modes tell.
struct LockOrderComponent {
  /// Nodes, in preorder.
  var steps: [Int] = []
  /// By step: which of `blockers` keep it waiting.
  var wants: [Int] = []
  /// By lock and mode that is wanted: the outermost nodes that are in the way, in preorder.
  var blockers: [[Int]] = []
}

extension LockOrderForest {
  /// The strongly connected components of the lock orders that `steps` make.
  ///
  /// A stack of n locks has n * n / 2 orders; here it has 2 * n arcs. A vertex is a node ('this is
  /// held, and perhaps more') or a lock wanted in a mode. Arcs lead from a node to its children
  /// and to what is requested there, and from what is wanted to the nodes that are in the way. Time
  /// is linear in the nodes at and above `steps`.
  func components(of steps: [Int]) -> [LockOrderComponent] {
    var graph = OrderGraph(vertexOfHeld: [:], vertexOfWant: [:], heldNodes: [], arcs: [])
    for step in steps {
      guard var held = nodes[step].parent else { continue }
      let want = graph.vertex(ofWant: nodes[step].lock, nodes[step].mode)
      var (vertex, isNew) = graph.vertex(ofHeld: held)
      graph.arcs[vertex].append(want)
      while isNew, let parent = nodes[held].parent {
        let child = vertex
        (vertex, isNew) = graph.vertex(ofHeld: parent)
        graph.arcs[vertex].append(child)
        held = parent
      }
    }
    for held in graph.heldNodes {
      for mode in [Mode.exclusive, .shared] where isOutermostBlocker(held, of: mode) {
        guard let want = graph.vertexOfWant[.init(lock: nodes[held].lock, mode: mode)] else {
          continue
        }
        graph.arcs[want].append(graph.vertex(ofHeld: held).vertex)
      }
    }
    return split(steps, graph)
  }

  private func split(_ steps: [Int], _ graph: OrderGraph) -> [LockOrderComponent] {
    let members = WaitForGraph.stronglyConnected(graph.arcs)
    if members.isEmpty { return [] }
    var component = Array(repeating: -1, count: graph.arcs.count)
    for (index, vertices) in members.enumerated() {
      for vertex in vertices { component[vertex] = index }
    }
    var found = Array(repeating: LockOrderComponent(), count: members.count)
    var nodeOfVertex = Array(repeating: -1, count: graph.arcs.count)
    for held in graph.heldNodes { nodeOfVertex[graph.vertexOfHeld[held] ?? 0] = held }
    var listOfWant: [Int: Int] = [:]
    for step in steps.sorted(by: { order[$0] < order[$1] }) {
      guard let held = nodes[step].parent, let vertex = graph.vertexOfHeld[held],
        let want = graph.vertexOfWant[.init(lock: nodes[step].lock, mode: nodes[step].mode)],
        component[vertex] >= 0, component[vertex] == component[want]
      else { continue }
      let index = component[want]
      if listOfWant[want] == nil {
        listOfWant[want] = found[index].blockers.count
        let inside = graph.arcs[want].filter { component[$0] == index }.map { nodeOfVertex[$0] }
        found[index].blockers.append(inside.sorted { order[$0] < order[$1] })
      }
      found[index].steps.append(step)
      found[index].wants.append(listOfWant[want] ?? 0)
    }
    return found
  }
}

private struct OrderGraph {
  struct Want: Hashable {
    var lock: Int
    var mode: Mode
  }
  var vertexOfHeld: [Int: Int]
  var vertexOfWant: [Want: Int]
  var heldNodes: [Int]
  var arcs: [[Int]]

  mutating func vertex(ofHeld node: Int) -> (vertex: Int, isNew: Bool) {
    if let known = vertexOfHeld[node] { return (known, false) }
    vertexOfHeld[node] = arcs.count
    heldNodes.append(node)
    arcs.append([])
    return (arcs.count - 1, true)
  }

  mutating func vertex(ofWant lock: Int, _ mode: Mode) -> Int {
    let want = Want(lock: lock, mode: mode)
    if let known = vertexOfWant[want] { return known }
    vertexOfWant[want] = arcs.count
    arcs.append([])
    return arcs.count - 1
  }
}
