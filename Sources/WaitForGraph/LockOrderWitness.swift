/// One step of a path, and who of those that met it was chosen. 32 bits each: a search keeps many.
struct LockOrderPathStep {
  /// Index into the component's steps.
  var step: Int32
  /// The node whose lock the step before waits for; -1 at a path's beginning.
  var held: Int32 = -1
  /// Of `LockOrderPatterns`; -1 at a path's beginning.
  var element: Int32 = -1
  /// The context, and the first of its occurrences that the other steps do not rule out.
  var context: Int32 = 0
  var front: Int32 = 0
}

/// Finds occurrences of distinct threads, pairwise concurrent, for the steps of a path.
///
/// For given contexts this is the detection of a weak conjunctive predicate (Garg & Waldecker,
/// 1994): an occurrence that happens before another context's foremost one is over whatever that
/// context does later, so it is passed for good; time is linear in the occurrences, and less where
/// many are passed at once. Which contexts is found by backtracking.
struct LockOrderWitness {
  let record: LockOrderRecord
  /// By step and context: its occurrences, in the order of time.
  let contexts: [[[Int]]]
  private(set) var work = 0

  init(record: LockOrderRecord, contexts: [[[Int]]]) {
    self.record = record
    self.contexts = contexts
  }

  func occurrence(_ choice: LockOrderPathStep) -> Int {
    contexts[Int(choice.step)][Int(choice.context)][Int(choice.front)]
  }

  /// Completes a path whose last step has no witness yet. The others have the first witness there
  /// is in lexicographic order of contexts; so has the whole then, and nothing is tried twice.
  mutating func extend(_ path: inout [LockOrderPathStep], limit: Int) -> Bool {
    var place = path.count - 1
    path[place].context = 0
    while work <= limit {
      if Int(path[place].context) == contexts[Int(path[place].step)].count {
        if place == 0 { return false }
        place -= 1
        path[place].context += 1
        // What the abandoned contexts ruled out may be possible again.
        for index in 0..<place { path[index].front = 0 }
        for index in 0..<place { _ = settle(&path, upTo: index) }
        continue
      }
      var trial = path
      if isOfOtherThread(path, place), settle(&trial, upTo: place) {
        path = trial
        place += 1
        if place == path.count { return true }
        path[place].context = 0
      } else {
        path[place].context += 1
      }
    }
    return false
  }

  private mutating func isOfOtherThread(_ path: [LockOrderPathStep], _ place: Int) -> Bool {
    work += place + 1
    let own = thread(path[place])
    for index in 0..<place where thread(path[index]) == own { return false }
    return true
  }

  private func thread(_ choice: LockOrderPathStep) -> Int {
    record.occurrences[contexts[Int(choice.step)][Int(choice.context)][0]].thread
  }

  /// Passes what is ruled out, until the steps up to `place` are pairwise concurrent. The ones
  /// before `place` are so already. False when one of them has nothing left.
  private mutating func settle(_ path: inout [LockOrderPathStep], upTo place: Int) -> Bool {
    path[place].front = 0
    var unsettled = [place]
    while let moved = unsettled.popLast() {
      for other in 0...place where other != moved {
        for (passed, by) in [(other, moved), (moved, other)] {
          guard let front = firstAfter(path[passed], before: path[by]) else { return false }
          guard front != path[passed].front else { continue }
          path[passed].front = front
          unsettled.append(passed)
        }
      }
    }
    return true
  }

  /// The first occurrence at or after the front of one choice that does not happen before that of
  /// another.
  private mutating func firstAfter(
    _ choice: LockOrderPathStep, before other: LockOrderPathStep
  ) -> Int32? {
    work += 1
    let (passed, limit) = (occurrence(choice), occurrence(other))
    guard record.happensBefore(passed, limit) else { return choice.front }
    let (own, others) = (record.occurrences[passed], record.occurrences[limit])
    if own.component == others.component, own.start == others.start { return nil }
    let known = record.knowledge(of: own.component, at: others)
    let list = contexts[Int(choice.step)][Int(choice.context)]
    let first = partition(of: list.count) { record.occurrences[list[$0]].epoch <= known }
    return first < list.count ? Int32(first) : nil
  }
}
