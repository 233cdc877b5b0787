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
    words = CycleWords(names: names, edges: finding.cycle)
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

  func letter(_ lock: ResourceID) -> String { letters[lock] ?? words.names.resource(lock) }
  func hasLetter(_ lock: ResourceID) -> Bool { letters[lock] != nil }
}

extension TextPage {
  func verdict(_ cycle: CyclePage) -> String {
    let (words, edges) = (cycle.words, cycle.words.edges)
    var sentence: String
    let locksOnly = edges.allSatisfy { if case .holds = words.relation($0) { true } else { false } }
    if words.isUpgrade {
      sentence =
        "\(names.short(edges[0].thread)) waits to write a read-write lock that it holds for reading itself"
    } else if edges.count == 1, edges[0].thread == edges[0].ownedBy, locksOnly {
      sentence =
        "\(names.short(edges[0].thread)) waits for a \(names.kind(edges[0].waitsFor)) that it already holds"
    } else if edges.count == 2, locksOnly, edges[0].waitsFor != edges[1].waitsFor {
      sentence =
        "\(names.list(edges.map(\.thread))) each hold a lock that the other waits for"
    } else if edges.count <= 2 {
      sentence = edges.map {
        words.clause($0, what: "a " + names.kind($0.waitsFor))
      }.joined(separator: ", and ")
    } else if edges.count <= 4 {
      sentence = "\(names.list(edges.map(\.thread))) wait for each other in a circle"
    } else {
      sentence =
        "\(edges.count) threads, from \(names.short(edges[0].thread)) "
        + "to \(names.short(edges[edges.count - 1].thread)), wait for each other in a circle"
    }
    let behind = words.behind(cycle.finding.threads.count - edges.count)
    let program = cleaned(fileName(report.process.executable))
    let certainty = cycle.finding.certainty == .possible ? "possible " : ""
    return "hangcheck: \(certainty)DEADLOCK in \(program) (pid \(report.process.pid)): \(sentence)."
      + (behind.isEmpty ? "" : " \(behind).")
  }

  /// The threads one below the other, an arrow for each wait, and a line on the left that closes the circle.
  mutating func writePicture(_ cycle: CyclePage) {
    let (words, edges) = (cycle.words, cycle.words.edges)
    let isOpen = edges.count == 1 && words.relation(edges[0]) == .isGone
    let side = isOpen ? " " : "│"
    line()
    var hides = false
    for index in edges.indices {
      guard !cycle.elision.hidden.contains(index) else {
        if !hides {
          line("  \(side)      ⋮  \(cycle.elision.hidden.count) more threads, each waiting for the next")
          line("  \(side)      ▼")
        }
        hides = true
        continue
      }
      let thread = style.thread(names.long(edges[index].thread))
      line((index == 0 && !isOpen ? "  ┌─▶ " : "  \(side)   ") + thread)
      line("  \(side)      │  \(arrow(edges[index], cycle))")
      if isOpen || index < edges.count - 1 {
        let hidden = cycle.elision.hidden.contains(index + 1)
        if !hidden { line("  \(side)      ▼") }
      } else {
        line("  └──────┘")
      }
    }
    if isOpen {
      let name = style.thread(names.long(edges[0].ownedBy))
      line("      \(name)" + (names.threads[edges[0].ownedBy ?? ThreadID(-1)] == nil ? "" : ", which has ended"))
    }
    writeLegend(cycle)
  }

  private func arrow(_ edge: Finding.Edge, _ cycle: CyclePage) -> String {
    let words = cycle.words
    let lock = style.lock(cycle.letter(edge.waitsFor))
    let itself = edge.thread == edge.ownedBy ? " itself" : ""
    return switch words.relation(edge) {
    case .isJoined: "waits for the end of" + itself
    case .isGone: "\(words.waits(edge, for: lock)), last held by"
    case .standsBefore: "\(words.waits(edge, for: lock)), behind the waiting writer"
    case .holds: "\(words.waits(edge, for: lock)), held\(words.use(edge)) by\(itself)"
    }
  }

  private mutating func writeLegend(_ cycle: CyclePage) {
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
