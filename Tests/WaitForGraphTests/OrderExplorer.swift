import WaitForGraph

extension OrderProgram {
  /// The patterns of all deadlocks over locks and queues that some schedule ends in, and how many
  /// states there were; nil when there are too many.
  ///
  /// A deadlock stays, and programs are finite, so it is enough to look at states where nothing can
  /// go on; and those are all reached although a harmless step is made alone wherever there is one
  /// (a persistent set of one; Godefroid, 1996).
  func reachableDeadlocks(atMost limit: Int) -> (Set<NaiveLockOrder.Pattern>, states: Int)? {
    var patterns: Set<NaiveLockOrder.Pattern> = []
    var seen: Set<State> = [start]
    var pending = [start]
    while let state = pending.popLast() {
      var next: [State] = []
      for context in contexts.indices {
        guard let after = step(context, state) else { continue }
        if isHarmless(context, state) {
          next = [after]
          break
        }
        next.append(after)
      }
      if next.isEmpty { patterns.formUnion(deadlocks(state)) }
      for after in next where seen.insert(after).inserted { pending.append(after) }
      if seen.count > limit { return nil }
    }
    return (patterns, seen.count)
  }

  private struct Request {
    var lock: Int
    var mode: Mode
    var site: Int
  }

  private func request(_ context: Int, _ state: State) -> Request? {
    guard runs(context, state) else { return nil }
    let site = Self.site(context, state.place(context))
    switch next(context, state) {
    case .take(let lock, let mode): return Request(lock: lock, mode: mode, site: site)
    case .enter(let queue):
      return Request(lock: queueBase + queue, mode: .exclusive, site: site)
    default: return nil
    }
  }

  /// The cycles without chords among contexts of a state where nothing can go on.
  private func deadlocks(_ state: State) -> [NaiveLockOrder.Pattern] {
    var arcs: [[Int: Hold]] = []
    for context in contexts.indices {
      guard let wanted = request(context, state) else {
        arcs.append([:])
        continue
      }
      // A reader that nobody but readers keeps out has a writer before it, which they keep out.
      let isBehindWriter =
        wanted.mode == .shared
        && contexts.indices.allSatisfy {
          blocker(wanted.lock, .shared, at: $0, state) == nil
        }
      var blockers: [Int: Hold] = [:]
      for other in contexts.indices {
        blockers[other] = blocker(
          wanted.lock, isBehindWriter ? .exclusive : wanted.mode, at: other, state)
      }
      arcs.append(blockers)
    }
    var found: [NaiveLockOrder.Pattern] = []
    func extend(_ path: [Int]) {
      let last = path[path.count - 1]
      if arcs[last][path[0]] != nil {
        let hasChord = path.enumerated().contains { index, context in
          let next = path[(index + 1) % path.count]
          return path.contains { $0 != next && arcs[context][$0] != nil }
        }
        if !hasChord { found.append(pattern(path, arcs, state)) }
      }
      for next in arcs[last].keys where next > path[0] && !path.contains(next) {
        extend(path + [next])
      }
    }
    for context in contexts.indices { extend([context]) }
    return found
  }

  private func pattern(
    _ path: [Int], _ arcs: [[Int: Hold]], _ state: State
  ) -> NaiveLockOrder.Pattern {
    canonical(
      path.enumerated().map { index, context in
        let before = path[(index + path.count - 1) % path.count]
        let wanted = request(context, state)!
        return [wanted.lock, wanted.site, arcs[before][context]!.site]
      })
  }
}
