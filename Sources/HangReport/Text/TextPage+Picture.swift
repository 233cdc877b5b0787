internal import WaitForGraph

extension TextPage {
  /// All threads, whether or not anything is wrong.
  mutating func writeWholePicture() {
    let threads = report.threads.filter { $0.kind ?? .thread == .thread }
    let what = names.program
    let count = counted(threads.count, "thread")
    if report.findings.isEmpty {
      line(style.good("hangcheck: \(what): \(count), nothing hangs"))
    } else {
      line(style.bad("hangcheck: \(what): \(count), \(counted(report.findings.count, "deadlock"))"))
      for finding in report.findings { line("  - " + cleaned(finding.message)) }
    }
    // Who waits or holds something is what a reader looks for.
    let entangled = report.threads.filter { $0.waitsFor != nil || !$0.holds.isEmpty }.map(\.id)
    let others = report.threads.filter { $0.waitsFor == nil && $0.holds.isEmpty }.map(\.id)
    write(entangled, title: "Threads that wait or hold something")
    write(others, title: entangled.isEmpty ? "Threads" : "Other threads")
    writeLimits()
  }

  private mutating func write(_ threads: [ThreadID], title: String) {
    guard !threads.isEmpty else { return }
    line()
    line(style.heading(title))
    writeGroups(threads) { page, id in
      guard let thread = page.names.threads[id] else { return "" }
      return ([page.standing(thread)] + thread.holds.map(page.holding)).joined(separator: "; ")
    }
  }

  /// `waiting for mutex "accounts" of "submit" for 2.3 s`, or what else it does.
  private func standing(_ thread: Thread) -> String {
    guard let wait = thread.waitsFor else {
      return thread.state == .io ? "in I/O" : thread.state.rawValue
    }
    var words = "waiting for \(names.resource(wait.resource))"
    let owners = names.resources[wait.resource]?.owners ?? []
    if !owners.isEmpty {
      words += ", which \(names.list(owners)) \(owners.count == 1 ? "has" : "have")"
    }
    if let seconds = wait.seconds { words += ", for \(Self.duration(seconds))" }
    return words
  }

  private func holding(_ hold: Thread.Hold) -> String {
    let taken = hold.stack.isEmpty ? "" : " taken at \(site(hold.stack))"
    let time = hold.seconds.map { " for \(Self.duration($0))" } ?? ""
    return "holds \(names.resource(hold.resource))\(time)\(taken)"
  }
}
