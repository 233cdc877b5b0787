internal import WaitForGraph

extension TextPage {
  /// What is on record of the resources that nobody holds as one holds a lock: from where they were
  /// taken and given.
  mutating func writeHistory(_ cycle: CyclePage) {
    let words = cycle.words
    let told = Set(words.edges.flatMap { [words.tookLabel($0), words.waitsLabel($0)] })
    let rest = cycle.finding.evidence.filter { !told.contains($0.label) }
    let most = options.verbose ? rest.count : 12
    for evidence in rest.prefix(most) {
      line()
      line(style.heading(sentenceCase(cleaned(evidence.label))))
      write(evidence.stack, indent: "  ", start: "at ")
    }
    if rest.count > most {
      line()
      line("… \(counted(rest.count - most, "more place"))")
    }
  }

  /// What each wait that nobody is left to end would need.
  mutating func adviseStandstill(_ cycle: CyclePage) {
    let words = cycle.words
    if words.isForsaken { return adviseForsaken(cycle) }
    if report.mode == .core {
      line(
        "  Every other thread rests: unless something from outside would have made one of them act,"
      )
      line("  what is waited for could not come any more.")
    } else {
      line(
        "  Every other thread rests, and no timer, descriptor, child process or signal handler could"
      )
      line("  make one of them act: what is waited for cannot come any more.")
    }
    var seen: Set<ResourceID> = []
    for edge in words.edges where seen.insert(edge.waitsFor).inserted {
      let name = names.resource(edge.waitsFor)
      switch names.resources[edge.waitsFor]?.kind {
      case .semaphore:
        line(
          "  Signal \(name) on every path that \(names.short(edge.thread)) counts on, errors and early returns too."
        )
      case .group:
        line(
          "  Balance each enter of \(name) with one leave, on every path: defer { group.leave() }.")
      case .condition:
        line(
          "  Signal \(name) at every change of what is waited for, broadcast where several may wait, and"
        )
        line(
          "  wait in a loop that tests a state under the mutex: a signal that comes before the wait is lost."
        )
      case .continuation:
        line("  Resume the continuation exactly once on every path, also where its owner has gone.")
      case .queue: line("  Resume \(name): it is suspended.")
      default: break
      }
    }
    let blocks = cycle.victims.compactMap { names.threads[$0] }.filter { $0.kind == .block }
    guard !blocks.isEmpty else { return }
    line(
      "  \(counted(blocks.count, "block")) that might have done so cannot run: the queue is occupied by a thread that waits."
    )
    line("  Do not wait on a queue, or on the main thread, for what has to run there.")
  }

  private mutating func adviseForsaken(_ cycle: CyclePage) {
    var seen: Set<ResourceID> = []
    let all = cycle.words.edges.map(\.waitsFor).filter { seen.insert($0).inserted }
    let those = all.count == 1 ? names.resource(all[0]) : "any of these"
    line("  The rest of the program goes on, but no variable, object or other thread has a")
    line("  reference to \(those): whoever was to end the wait has let go of it, or has gone.")
    line("  Signal, leave or resume on every path before the last reference goes, also in deinit;")
    line("  a thread that serves an object has to be told to stop when the object goes.")
  }
}
