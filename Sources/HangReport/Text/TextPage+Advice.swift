internal import WaitForGraph

extension TextPage {
  /// The lines to change, and how; only what follows from the report.
  mutating func writeAdvice(_ cycle: CyclePage) {
    let edges = cycle.words.edges
    line()
    line(style.heading("What to change"))
    let relations = edges.map { cycle.words.relation($0) }
    let kinds = Set(edges.compactMap { names.resources[$0.waitsFor]?.kind })
    if kinds.contains(.pipe) && kinds.contains(.process) {
      line("  Read what a child writes until its end, and only then wait for the child; or read it")
      line("  on another thread meanwhile. A pipe holds 64 KiB.")
      return
    }
    if cycle.words.isStandstill {
      adviseStandstill(cycle)
    } else if relations.contains(.wouldGive) || relations.contains(.finishes) {
      adviseGiver(cycle, relations)
    } else if edges.count == 1 {
      adviseSingle(cycle, edges[0], relations[0])
    } else if relations.contains(.isJoined) {
      adviseJoin(cycle, relations)
    } else if relations.contains(.standsBefore) {
      adviseReaders(cycle, relations)
    } else {
      adviseOrder(cycle)
    }
  }

  private mutating func adviseSingle(
    _ cycle: CyclePage, _ edge: Finding.Edge, _ relation: CycleWords.Relation
  ) {
    let (taken, waits) = places(holdStack(cycle, edge), waitStack(cycle, edge))
    let lock = style.lock(cycle.letter(edge.waitsFor))
    switch relation {
    case .finishes, .wouldGive, .nobody: break
    case .rests:
      line(
        "  \(names.short(edge.ownedBy)) took \(lock) at \(taken) and rests without giving it back.")
    case .isJoined:
      line("  A thread cannot wait for its own end, as it does at \(waits).")
    case .isGone:
      let known = edge.ownedBy.map { names.threads[$0] != nil } ?? false
      let owner = known ? names.short(edge.ownedBy) : "The owner"
      line(
        "  \(owner) took \(lock) at \(taken) and never gave it back: it ended, "
          + "or a fork left it behind.")
      line(
        "  Release \(lock) on every way out, for example with defer; "
          + "in a forked child, lock nothing before exec.")
    case .holds, .standsBefore:
      guard !cycle.words.isOpen else {
        return line("  Find who holds \(lock) and does not give it back: this report cannot tell.")
      }
      if cycle.words.isUpgrade {
        line(
          "  \(waits) asks to write \(lock), which the same thread took for "
            + "reading at \(taken).")
        line(
          "  A read lock does not turn into a write lock: release it first, or "
            + "write-lock at once.")
      } else if cycle.words.isQueue(edge) {
        line("  \(waits) waits for a queue from a thread that already runs on it.")
        line(
          "  Call the code directly, use async, or split what must run on the queue from what is called there."
        )
      } else if names.resources[edge.waitsFor]?.kind == .once {
        line("  \(waits) asks for a value whose initialisation, begun at \(taken), it is part of.")
        line("  Let the initialiser not use what it initialises.")
      } else if hasReturned(holdStack(cycle, edge), waitStack(cycle, edge)) {
        line(
          "  What took \(lock) at \(taken) has returned without giving it back; \(waits) wants it again."
        )
        line(
          "  Release it on every way out, for example with defer, and never keep it over an await.")
      } else {
        line("  \(waits) takes \(lock) again in the thread that took it at \(taken).")
        let isMutex = names.resources[edge.waitsFor]?.kind == .mutex
        line(
          isMutex
            ? "  Release it first, call code that expects it to be held, or use a recursive lock."
            : "  Release it first, or call code that expects it to be held.")
      }
    }
  }

  /// Whether none of the program's functions that took a lock is on the stack any more.
  private func hasReturned(_ taken: [Frame], _ stack: [Frame]) -> Bool {
    guard let first = userFrame(taken)?.frame, !first.runtime, let symbol = first.symbol else {
      return false
    }
    let calls = stack.count { !$0.runtime && $0.symbol == symbol }
    // What waits at the same place is another call of it.
    let top = userFrame(stack)?.frame
    let isSamePlace =
      top?.symbol == symbol && top?.line == first.line && top?.column == first.column
    return calls < (isSamePlace ? 2 : 1)
  }

  private mutating func adviseJoin(_ cycle: CyclePage, _ relations: [CycleWords.Relation]) {
    let edges = cycle.words.edges
    for index in edges.indices
    where relations[index] == .isJoined && !cycle.elision.hidden.contains(index) {
      let (joiner, joined) = (names.short(edges[index].thread), names.short(edges[index].ownedBy))
      let site = place(waitStack(cycle, edges[index]))
      let waits = "  \(joiner) waits at \(site) for \(joined) to end"
      let before = cycle.words.edge(before: index)
      if case .holds = cycle.words.relation(before) {
        let lock = style.lock(cycle.letter(before.waitsFor))
        line(waits)
        line("  while it holds \(lock), taken at \(place(holdStack(cycle, before))).")
        let needs = edges.count == 2 ? joined : "what \(joined) waits for"
        line("  Release \(lock) before that wait: \(needs) needs it to go on.")
      } else {
        line("\(waits), which in turn cannot end before \(joiner) goes on.")
      }
    }
  }

  /// A circle through something that somebody in it would signal, leave or finish.
  private mutating func adviseGiver(_ cycle: CyclePage, _ relations: [CycleWords.Relation]) {
    let edges = cycle.words.edges
    if edges.allSatisfy({ names.threads[$0.thread]?.kind == .operation }) {
      line("  These operations depend on each other in a circle, so none of them can ever begin:")
      return line("  take one of the dependencies away (addDependency).")
    }
    for index in edges.indices
    where [.wouldGive, .finishes].contains(relations[index])
      && !cycle.elision.hidden.contains(index)
    {
      let owner = edges[index].ownedBy
      let (waiter, giver) = (names.short(edges[index].thread), names.short(owner))
      let site = place(waitStack(cycle, edges[index]))
      let what =
        relations[index] == .finishes
        ? "to finish"
        : "to \(cycle.words.end(edges[index])) \(cycle.letter(edges[index].waitsFor))"
      if owner == edges[index].thread {
        line("  \(waiter) waits at \(site) for itself \(what): it has to come after.")
        continue
      }
      line("  \(waiter) waits at \(site) for \(giver) \(what),")
      let next = edges[(index + 1) % edges.count]
      line("  which first needs \(cycle.letter(next.waitsFor)).")
      if names.threads[owner ?? ThreadID(0)]?.kind == .block {
        line(
          "  Do not wait on a queue, or on the main thread, for what has to run there: use notify"
            + " or a completion.")
      }
    }
    if edges.contains(where: { names.resources[$0.waitsFor]?.kind == .pool }) {
      line(
        "  The cooperative pool has one thread for each processor: never block one for what a task"
          + " has to do; await it.")
    }
    if edges.contains(where: { names.resources[$0.waitsFor]?.kind == .operationQueue }) {
      line(
        "  An operation that waits takes one of its queue's places: use a dependency, another queue"
          + " or a greater width.")
    }
  }

  private mutating func adviseReaders(_ cycle: CyclePage, _ relations: [CycleWords.Relation]) {
    let edges = cycle.words.edges
    for index in edges.indices
    where relations[index] == .standsBefore && !cycle.elision.hidden.contains(index) {
      let reader = names.short(edges[index].thread)
      let lock = style.lock(cycle.letter(edges[index].waitsFor))
      let site = place(waitStack(cycle, edges[index]))
      line(
        cycle.words.isQueue(edges[index])
          ? "  \(reader) syncs onto \(lock) at \(site), but a barrier that waits lets nobody in before it."
          : "  \(reader) reads \(lock) at \(site), but a writer that waits keeps new readers out.")
    }
    if edges.count == 2, edges[0].waitsFor == edges[1].waitsFor {
      line(
        cycle.words.isQueue(edges[0])
          ? "  Do not sync onto a queue from a block that runs on it."
          : "  Do not take a read lock again in a thread that holds it already.")
    } else {
      adviseOrder(cycle)
    }
  }

  /// Rows such as `"cancel" takes A at main.swift:17, then B at main.swift:19`.
  private mutating func adviseOrder(_ cycle: CyclePage) {
    let edges = cycle.words.edges
    let sites = edges.indices.map { index in
      places(holdStack(cycle, cycle.words.edge(before: index)), waitStack(cycle, edges[index]))
    }
    let (first, then) = sites[0]
    if edges.count > 2, sites.allSatisfy({ $0 == (first, then) }) {
      line(
        "  All \(edges.count) threads run the same lines: one lock at \(first), "
          + "the next at \(then).")
      line("  Let them all take their locks in one order, for example by index or by address.")
      return
    }
    line("  Take the locks in one order everywhere:")
    var hides = false
    for index in edges.indices {
      guard !cycle.elision.hidden.contains(index) else {
        if !hides { line("    …") }
        hides = true
        continue
      }
      let (holds, waits) = (cycle.words.edge(before: index).waitsFor, edges[index].waitsFor)
      let thread = names.short(edges[index].thread)
      line(
        "    \(thread) takes \(style.lock(cycle.letter(holds))) at \(sites[index].0), "
          + "then \(style.lock(cycle.letter(waits))) at \(sites[index].1)")
    }
    if edges.contains(where: { names.resources[$0.waitsFor]?.kind == .once }) {
      line("  ask for a lazy global before a lock is taken, or keep locks out of its initialiser;")
    }
    line("  or release the first lock before taking the second.")
  }
}
