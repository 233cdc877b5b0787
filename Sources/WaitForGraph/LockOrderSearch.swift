/// The feasible cycles of one component, a length at a time, so that the shorter are known first.
///
/// A path begins at its least step and has no chord: no step waits for what another than its next
/// one holds, for then fewer steps would make a cycle. Gates, chords and patterns depend on nodes
/// alone; only what passes them is asked for a witness.
struct LockOrderSearch {
  private let forest: LockOrderForest
  private let component: LockOrderComponent
  private let isOfOneThread: Bool
  private var witness: LockOrderWitness
  /// All paths of the present length, one after another.
  private var paths: [LockOrderPathStep]
  private var length = 1
  private var ownWork = 0

  init(
    forest: LockOrderForest, component: LockOrderComponent, witness: LockOrderWitness,
    isOfOneThread: Bool
  ) {
    self.forest = forest
    self.component = component
    self.witness = witness
    self.isOfOneThread = isOfOneThread
    paths = component.steps.indices.map { LockOrderPathStep(step: Int32($0)) }
  }

  var isOver: Bool { paths.isEmpty }
  /// Comparisons made so far, or what takes as long.
  var work: Int { ownWork + witness.work }

  /// Reports the cycles with one step more than the paths have, and makes the paths longer by one.
  /// Gives up, and says so with false, when `limit` is reached.
  mutating func advance(_ patterns: inout LockOrderPatterns, limit: Int) -> Bool {
    var longer: [LockOrderPathStep] = []
    for start in stride(from: 0, to: paths.count, by: length) {
      if work > limit { break }
      extend(Array(paths[start..<start + length]), &longer, &patterns, limit)
    }
    paths = work > limit ? [] : longer
    length += 1
    return work <= limit
  }

  private mutating func extend(
    _ path: [LockOrderPathStep], _ longer: inout [LockOrderPathStep],
    _ patterns: inout LockOrderPatterns, _ limit: Int
  ) {
    let least = Int(path[0].step) + 1
    guard least < component.steps.count else { return }
    let blockers = blockers(of: Int(path[length - 1].step))
    let lowest = forest.order[component.steps[least]]
    let first = partition(of: blockers.count) { forest.end[blockers[$0]] <= lowest }
    for blocker in blockers[first...] {
      ownWork += length
      // Asked once for all that is below: a deep stack is gated as a whole.
      if path.contains(where: { forest.areGated(heldAtEnd(Int($0.step)), blocker) }) { continue }
      var step = max(least, forest.lowerBound(component.steps, forest.order[blocker] + 1))
      while step < component.steps.count,
        forest.order[component.steps[step]] < forest.end[blocker], work <= limit
      {
        consider(step, blocker, after: path, &longer, &patterns, limit)
        step += 1
      }
    }
  }

  private mutating func consider(
    _ step: Int, _ blocker: Int, after path: [LockOrderPathStep],
    _ longer: inout [LockOrderPathStep], _ patterns: inout LockOrderPatterns, _ limit: Int
  ) {
    ownWork += length
    let end = heldAtEnd(step)
    for (index, earlier) in path.enumerated() {
      let earlier = Int(earlier.step)
      if index < length - 1, forest.ancestor(of: end, in: blockers(of: earlier)) != nil { return }
      if index > 0, forest.ancestor(of: heldAtEnd(earlier), in: blockers(of: step)) != nil {
        return
      }
      if forest.areGated(heldAtEnd(earlier), end) { return }
    }
    // What comes now allocates; a comparison does not.
    ownWork += 8
    var path = path
    path.append(
      LockOrderPathStep(
        step: Int32(step), held: Int32(blocker),
        element: patterns.id(of: element(step, blocker))))
    let newest = path[length].element
    let first = Int(path[0].step)
    guard let held = forest.ancestor(of: heldAtEnd(first), in: blockers(of: step)) else {
      let elements = path.dropFirst().map(\.element)
      let isImplied = patterns.isImplied(
        elements, newest: newest, noLongerThan: length, work: &ownWork)
      guard !isImplied, hasWitness(&path, limit) else { return }
      ownWork += 16 + length
      longer += path
      return
    }
    path[0].held = Int32(held)
    path[0].element = patterns.id(of: element(first, held))
    let elements = path.map(\.element)
    for newest in [newest, path[0].element] {
      if patterns.isImplied(elements, newest: newest, noLongerThan: length, work: &ownWork) {
        return
      }
    }
    guard !patterns.isKnown(elements), hasWitness(&path, limit) else { return }
    patterns.insert(
      elements,
      PotentialDeadlock(
        steps: path.map { .init(occurrence: witness.occurrence($0), held: Int($0.held)) },
        isOfOneThread: isOfOneThread))
  }

  private mutating func hasWitness(_ path: inout [LockOrderPathStep], _ limit: Int) -> Bool {
    isOfOneThread || witness.extend(&path, limit: limit - ownWork)
  }

  private func heldAtEnd(_ step: Int) -> Int {
    let node = component.steps[step]
    return forest.nodes[node].parent ?? node
  }

  private func blockers(of step: Int) -> [Int] { component.blockers[component.wants[step]] }

  private func element(_ step: Int, _ held: Int) -> LockOrderPatterns.Element {
    forest.element(component.steps[step], held)
  }
}

extension LockOrderForest {
  func element(_ request: Int, _ held: Int) -> LockOrderPatterns.Element {
    .init(
      lockClass: locks[nodes[request].lock].classID, requestSite: nodes[request].site,
      heldSite: nodes[held].site)
  }
}
