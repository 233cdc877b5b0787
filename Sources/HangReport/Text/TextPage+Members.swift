internal import WaitForGraph

extension TextPage {
  /// For each thread of the cycle: what it took, what it waits for, and from where.
  ///
  /// Of a long cycle one thread stands for all that do the same at the same places.
  mutating func writeMembers(_ cycle: CyclePage) {
    let indices = cycle.words.edges.indices
    if cycle.elision.hidden.isEmpty || options.verbose {
      for index in indices { writeMember(cycle, index) }
    } else {
      var alike: [String: [Int]] = [:]
      for index in indices { alike[step(cycle, index), default: []].append(index) }
      let groups = alike.values.sorted { $0[0] < $1[0] }
      for group in groups.prefix(Elision.most) {
        writeMember(cycle, group[0])
        if group.count > 1 {
          line("… \(counted(group.count - 1, "more thread")) of the circle at the same places")
        }
      }
      let rest = groups.dropFirst(Elision.most).reduce(0) { $0 + $1.count }
      if rest > 0 {
        line()
        line("… \(counted(rest, "more thread")) of the circle at other places")
      }
    }
    guard let gone = cycle.words.edges.first, cycle.words.relation(gone) == .isGone,
      !holdStack(cycle, gone).isEmpty
    else { return }
    line()
    line(style.thread(names.long(gone.ownedBy)))
    writeHold(cycle, gone)
  }

  private mutating func writeMember(_ cycle: CyclePage, _ index: Int) {
    let edge = cycle.words.edges[index]
    line()
    line(style.thread(names.long(edge.thread)))
    if let member = names.threads[edge.thread], let kind = member.kind, kind != .thread {
      // One that has not begun stands where its function begins.
      let what =
        kind == .task && member.waitsFor.map { names.resources[$0.resource]?.kind } != .pool
        ? "is suspended at " : "will run "
      if !member.stack.isEmpty {
        write(member.stack, indent: "  ", start: what, callers: kind == .task)
      }
      let lock = style.lock(cycle.letter(edge.waitsFor))
      return line("  \(cycle.words.waits(edge, for: lock))")
    }
    let before = cycle.words.edge(before: index)
    let (taken, waits) = (holdStack(cycle, before), waitStack(cycle, edge))
    if case .holds = cycle.words.relation(before), !cycle.words.isStandstill,
      // On a queue that ran the block by itself it is where it is: there is no site.
      !taken.isEmpty || cycle.words.holds(before.waitsFor) == "holds"
    {
      // Both stacks often end alike; the callers are then told once, below.
      writeHold(cycle, before, callers: callers(taken) != callers(waits))
    }
    let what =
      cycle.words.relation(edge) == .isJoined
      ? "waits for the end of \(names.short(edge.ownedBy))"
      : cycle.words.waits(edge, for: style.lock(cycle.letter(edge.waitsFor)))
    let start =
      cycle.words.wait(edge)?.seconds.map {
        "has waited \(Self.duration($0))\(what.dropFirst("waits".count))"
      } ?? what
    write(waits, indent: "  ", start: start + " at ")
    writeOtherHolds(edge.thread, besides: before.waitsFor)
  }

  private mutating func writeHold(_ cycle: CyclePage, _ edge: Finding.Edge, callers: Bool = true) {
    let seconds = cycle.words.hold(edge.ownedBy, edge.waitsFor)?.seconds
    let time = seconds.map { " \(Self.duration($0)) ago" } ?? ""
    let lock = style.lock(cycle.letter(edge.waitsFor))
    let took =
      switch names.resources[edge.waitsFor]?.kind {
      case .queue: "got onto"
      case .once: "began"
      default: "took"
      }
    let start = "\(took) \(lock)\(cycle.words.use(edge))\(time) at "
    write(holdStack(cycle, edge), indent: "  ", start: start, callers: callers)
  }

  private mutating func writeOtherHolds(_ thread: ThreadID, besides lock: ResourceID) {
    guard let all = names.threads[thread]?.holds else { return }
    // Where it runs is no lock that it took, unless it said so by a synchronous call.
    let others = all.filter { hold in
      hold.resource != lock && hold.resource != names.threads[thread]?.waitsFor?.resource
        && (names.resources[hold.resource].map { Self.isTaken($0.kind) } ?? false
          || !hold.stack.isEmpty)
    }
    guard !others.isEmpty else { return }
    let most = options.verbose ? others.count : 3
    for hold in others.prefix(most) {
      line("  also holds \(names.resource(hold.resource)), taken at \(place(hold.stack))")
    }
    if others.count > most { line("  and holds \(counted(others.count - most, "more lock"))") }
  }

  private static func isTaken(_ kind: ResourceKind) -> Bool {
    switch kind {
    case .queue, .task, .actor, .pool, .taskGroup, .group, .operation, .operationQueue, .pipe,
      .process:
      false
    default: true
    }
  }

  /// Where a member takes the one and where it waits for the other, without names.
  private func step(_ cycle: CyclePage, _ index: Int) -> String {
    let edge = cycle.words.edges[index]
    let before = cycle.words.edge(before: index)
    return "\(site(holdStack(cycle, before)))\n\(site(waitStack(cycle, edge)))"
  }

  private func callers(_ stack: [Frame]) -> [Frame] {
    guard let (index, _) = userFrame(stack) else { return [] }
    return stack[(index + 1)...].map {
      // The addresses of one caller differ between two calls of one function.
      var frame = $0
      frame.address = Address(0)
      return frame
    }
  }

  /// The stack in which the owner of the edge took the resource: of the thread as it stands, else
  /// from the evidence.
  func holdStack(_ cycle: CyclePage, _ edge: Finding.Edge) -> [Frame] {
    if let hold = cycle.words.hold(edge.ownedBy, edge.waitsFor) { return hold.stack }
    return evidence(cycle, cycle.words.tookLabel(edge), edge.ownedBy)
  }

  func waitStack(_ cycle: CyclePage, _ edge: Finding.Edge) -> [Frame] {
    if let wait = cycle.words.wait(edge) { return wait.stack }
    return evidence(cycle, cycle.words.waitsLabel(edge), edge.thread)
  }

  private func evidence(_ cycle: CyclePage, _ label: String, _ thread: ThreadID?) -> [Frame] {
    cycle.finding.evidence.first { $0.thread == thread && $0.label == label }?.stack ?? []
  }
}
