internal import WaitForGraph

extension TextPage {
  /// Threads that are stuck, but through no fault of their own.
  mutating func writeVictims(_ cycle: CyclePage) {
    let victims = cycle.victims
    guard !victims.isEmpty else { return }
    line()
    line(style.heading("Waiting behind"))
    writeGroups(victims) { page, id in
      guard let thread = page.names.threads[id], let wait = thread.waitsFor else { return "stuck" }
      let resource = page.names.resources[wait.resource]
      let what =
        resource?.kind == .thread
        ? "the end of \(page.names.short(resource?.owners.first))" : cycle.letter(wait.resource)
      let holdsIt = thread.holds.contains { $0.resource == wait.resource }
      return "for \(what)\(holdsIt ? ", which it holds itself," : "") at \(page.site(wait.stack))"
    }
  }

  /// Everyone whom no finding names; threads that stand at the same place share a line.
  mutating func writeOtherThreads() {
    let named = Set(report.findings.flatMap { $0.threads + $0.cycle.map(\.thread) })
    let gone = Set(report.findings.flatMap { $0.cycle.compactMap(\.ownedBy) })
    let others = report.threads.filter { thread in
      // libdispatch's threads that rest tell nothing.
      let rests = thread.state == .idle && Names.isWorker(thread) && !options.verbose
      return !named.contains(thread.id) && !gone.contains(thread.id) && !rests
    }.map(\.id)
    guard !others.isEmpty else { return }
    line()
    line(style.heading(named.isEmpty ? "Threads" : "Other threads"))
    writeGroups(others) { page, id in
      guard let thread = page.names.threads[id] else { return "" }
      var words = thread.state.rawValue
      if thread.state == .io { words = "in I/O" }
      if let wait = thread.waitsFor { words = "waiting for \(page.names.resource(wait.resource))" }
      // Which call it is in tells why it stands there.
      if let top = thread.stack.first, top.runtime, let symbol = top.symbol {
        words += " in \(cleaned(symbol))"
        if thread.stack.allSatisfy(\.runtime) { return words + page.holdings(thread) }
      }
      if !thread.stack.isEmpty { words += " at \(page.site(thread.stack))" }
      return words + page.holdings(thread)
    }
  }

  /// `; holds mutex 0x55… taken at main.swift:4 in cancel()`; nothing for a thread that holds
  /// nothing.
  private func holdings(_ thread: Thread) -> String {
    guard let first = thread.holds.first else { return "" }
    let more = thread.holds.count > 1 ? " and \(thread.holds.count - 1) more" : ""
    let taken = first.stack.isEmpty ? "" : " taken at \(site(first.stack))"
    return "; holds \(names.resource(first.resource))\(more)\(taken)"
  }

  private struct Group {
    var words: String
    var members: [ThreadID]
  }

  /// What makes two stacks the same in a reader's eyes.
  private struct StackKey: Hashable {
    struct Site: Hashable {
      var name: String
      var line: Int
    }
    var words: String
    var sites: [Site]
  }

  mutating func writeGroups(
    _ threads: [ThreadID], _ words: (TextPage, ThreadID) -> String
  ) {
    var groups: [Group] = []
    var known: [StackKey: Int] = [:]
    for id in threads {
      let sites = (names.threads[id]?.stack ?? []).map {
        StackKey.Site(name: $0.symbol ?? $0.address.description, line: $0.line ?? 0)
      }
      let key = StackKey(words: words(self, id), sites: sites)
      if let index = known[key] {
        groups[index].members.append(id)
      } else {
        known[key] = groups.count
        groups.append(Group(words: key.words, members: [id]))
      }
    }
    let most = options.verbose ? groups.count : 20
    for group in groups.prefix(most) { write(group) }
    let rest = groups.dropFirst(most)
    if !rest.isEmpty {
      let threads = rest.reduce(0) { $0 + $1.members.count }
      line("  … \(counted(threads, "more thread")) at \(counted(rest.count, "other place"))")
    }
  }

  private mutating func write(_ group: Group) {
    guard group.members.count > 1 else {
      line("  \(style.thread(names.long(group.members[0]))) \(group.words)")
      return writeVerboseStack(group)
    }
    let areThreads = group.members.allSatisfy { names.threads[$0]?.kind ?? .thread == .thread }
    let count = "\(group.members.count) \(areThreads ? "threads" : "of them")"
    line("  \(style.thread(count)) \(group.words)")
    var list = "    "
    for (position, id) in group.members.enumerated() {
      let rest = group.members.count - position
      let name = (position > 0 ? ", " : "") + names.short(id)
      if !options.verbose, list.count + name.count > max(40, options.width - 16) {
        list += ", … \(rest) more"
        break
      }
      list += name
    }
    line(style.faint(list))
    writeVerboseStack(group)
  }

  private mutating func writeVerboseStack(_ group: Group) {
    guard options.verbose, let thread = names.threads[group.members[0]] else { return }
    writeFrames(thread.stack, indent: "    ")
  }
}
