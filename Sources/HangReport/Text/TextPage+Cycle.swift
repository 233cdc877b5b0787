internal import WaitForGraph

/// One finding's cycle, with a letter for each lock in it.
struct CyclePage {
  let finding: Finding
  let words: CycleWords
  let elision: Elision
  /// In the order in which the threads of the cycle hold them.
  private(set) var locks: [ResourceID] = []
  private var letters: [ResourceID: String] = [:]

  init(finding: Finding, names: Names) {
    self.finding = finding
    words = CycleWords(
      names: names, edges: finding.cycle,
      isForsaken: finding.message.contains(CycleWords.forsaken))
    elision = Elision(finding.cycle.count)
    for index in finding.cycle.indices {
      let lock = words.edge(before: index).waitsFor
      guard names.resources[lock]?.kind != .thread, letters[lock] == nil else { continue }
      letters[lock] = Self.letters(locks.count)
      locks.append(lock)
    }
  }

  /// A … Z, AA, AB …
  private static func letters(_ number: Int) -> String {
    let last = String(Character(Unicode.Scalar(UInt8(ascii: "A") + UInt8(number % 26))))
    return number < 26 ? last : letters(number / 26 - 1) + last
  }

  var victims: [ThreadID] {
    let guilty = Set(finding.cycle.map(\.thread))
    return finding.threads.filter { !guilty.contains($0) }
  }

  func letter(_ lock: ResourceID) -> String { letters[lock] ?? words.names.resource(lock) }
  func hasLetter(_ lock: ResourceID) -> Bool { letters[lock] != nil }
}

func sentenceCase(_ text: String) -> String {
  text.prefix(1).uppercased() + text.dropFirst()
}

extension TextPage {
  func verdict(_ cycle: CyclePage) -> String {
    let (words, edges) = (cycle.words, cycle.words.edges)
    let first = names.short(edges[0].thread)
    let locksOnly = edges.allSatisfy {
      guard case .holds = words.relation($0) else { return false }
      return words.holds($0.waitsFor) == "holds"
    }
    let sentence: String
    switch edges.count {
    case _ where words.isStandstill: sentence = standstill(words)
    case 1 where words.isUpgrade && words.isReadWrite(edges[0].waitsFor):
      sentence = "\(first) waits to write a read-write lock that it holds for reading itself"
    case 1 where locksOnly && !words.isOpen:
      sentence = "\(first) waits for \(names.some(edges[0].waitsFor)) that it already holds"
    case 1:
      sentence = words.clause(edges[0], what: names.some(edges[0].waitsFor))
    case 2 where edges[0].waitsFor == edges[1].waitsFor:
      let kind = names.kind(edges[0].waitsFor)
      sentence =
        words.clause(edges[0], what: names.some(edges[0].waitsFor)) + ", and "
        + words.clause(edges[1], what: "the same " + kind)
    case 2 where locksOnly:
      sentence =
        "\(names.list(edges.map(\.thread))) each hold a lock that the other waits for"
    case 2:
      sentence = edges.map { words.clause($0, what: names.some($0.waitsFor)) }
        .joined(separator: ", and ")
    case 3, 4:
      sentence = "\(names.list(edges.map(\.thread))) wait for each other in a circle"
    default:
      let last = names.short(edges[edges.count - 1].thread)
      sentence =
        "\(edges.count) threads, from \(first) to \(last), wait for each other in a circle"
    }
    let behind = words.behind(cycle.victims)
    let certainty = cycle.finding.certainty == .possible ? "possible " : ""
    return
      "hangcheck: \(certainty)DEADLOCK in \(names.program(of: edges.map(\.thread))): \(sentence)."
      + (behind.isEmpty ? "" : " \(sentenceCase(behind)).")
  }

  /// Whoever waits for what nobody is left to give.
  private func standstill(_ words: CycleWords) -> String {
    let edges = words.edges
    if edges.count == 1 {
      return words.clause(edges[0], what: names.some(edges[0].waitsFor))
    }
    let threads = edges.map(\.thread).reduce(into: [ThreadID]()) { list, id in
      if !list.contains(id) { list.append(id) }
    }
    if Set(edges.map(\.waitsFor)).count == 1 {
      return
        "\(names.list(threads)) wait for \(names.some(edges[0].waitsFor)) that "
        + (words.isForsaken ? CycleWords.forsaken : "nobody is left to \(words.end(edges[0]))")
    }
    guard threads.count <= 4 else {
      return
        "\(threads.count) threads, \(names.short(threads[0])) among them, wait for what "
        + (words.isForsaken ? CycleWords.forsaken : "nobody is left to give")
    }
    return edges.map { words.clause($0, what: names.some($0.waitsFor)) }
      .joined(separator: ", and ")
  }

  /// The threads one below the other, an arrow for each wait, and a line on the left that closes
  /// the circle.
  mutating func writePicture(_ cycle: CyclePage) {
    let (words, edges) = (cycle.words, cycle.words.edges)
    let side = words.isOpen ? " " : "│"
    line()
    var hides = false
    for index in edges.indices {
      guard !cycle.elision.hidden.contains(index) else {
        if !hides {
          let count = cycle.elision.hidden.count
          line("  \(side)      ⋮  \(count) more threads, each waiting for the next")
          line("  \(side)      ▼")
        }
        hides = true
        continue
      }
      let thread = style.thread(names.long(edges[index].thread))
      line((index == 0 && !words.isOpen ? "  ┌─▶ " : "  \(side)   ") + thread)
      line("  \(side)      │  \(arrow(edges[index], cycle))")
      if words.isOpen || index < edges.count - 1 {
        let hidden = cycle.elision.hidden.contains(index + 1)
        if !hidden { line("  \(side)      ▼") }
      } else {
        line("  └──────┘")
      }
    }
    if words.isOpen {
      let owner = edges[0].ownedBy
      let isListed = owner.map { names.threads[$0] != nil } ?? false
      let name = style.thread(names.long(owner))
      let gone = isListed ? name + ", which no longer exists in this process" : words.gone(owner)
      line("      " + (owner == nil ? name : gone))
    }
    writeLegend(cycle)
  }

  private func arrow(_ edge: Finding.Edge, _ cycle: CyclePage) -> String {
    let words = cycle.words
    let lock = style.lock(cycle.letter(edge.waitsFor))
    let itself = edge.thread == edge.ownedBy ? " itself" : ""
    if cycle.finding.kind == .livelock { return "tries for \(lock) in vain, taken by" }
    return switch words.relation(edge) {
    case .isJoined: "waits for the end of" + itself
    case .isGone: "\(words.waits(edge, for: lock)), last held by"
    case .standsBefore where words.isQueue(edge):
      "\(words.waits(edge, for: lock)), behind the waiting barrier"
    case .standsBefore: "\(words.waits(edge, for: lock)), behind the waiting writer"
    case .holds: "\(words.waits(edge, for: lock)), \(held(edge, words)) by\(itself)"
    case .finishes: "waits for the end of" + itself
    case .wouldGive:
      "\(words.waits(edge, for: lock)), which would be \(given(edge, words)) by\(itself)"
    case .rests: "\(words.waits(edge, for: lock)), held by, at rest,"
    case .nobody: "\(words.waits(edge, for: lock))"
    }
  }

  private func held(_ edge: Finding.Edge, _ words: CycleWords) -> String {
    switch names.resources[edge.waitsFor]?.kind {
    case .queue, .actor, .operationQueue, .pool: "occupied"
    case .once: "being run"
    default: "held" + words.use(edge)
    }
  }

  private func given(_ edge: Finding.Edge, _ words: CycleWords) -> String {
    switch names.resources[edge.waitsFor]?.kind {
    case .group: "left"
    case .continuation: "resumed"
    case .barrier: "reached"
    case .futex: "woken"
    case .pipe: names.isFull(edge.waitsFor) ? "read" : "written"
    default: "signalled"
    }
  }

  mutating func writeLegend(_ cycle: CyclePage) {
    let hidden = cycle.elision.hidden
    let shown = cycle.locks.enumerated().filter { index, _ in
      hidden.isEmpty || index <= hidden.lowerBound || index >= hidden.upperBound
    }
    if !shown.isEmpty { line() }
    for (_, lock) in shown {
      var words = "  \(style.lock(cycle.letter(lock))) is \(names.resource(lock))"
      if let created = names.resources[lock]?.created, userFrame(created) != nil {
        words += style.faint(", made at \(place(created))")
      }
      line(words)
    }
  }
}
