internal import WaitForGraph

extension TextPage {
  /// That no deadlock is there, and what the threads do in short.
  mutating func writeStanding() {
    let threads = report.threads.filter { $0.kind ?? .thread == .thread }
    let kept = threads.filter(isKept)
    var parts: [String] = []
    func add(_ count: Int, _ one: String, _ many: String) {
      if count > 0 { parts.append("\(count) \(count == 1 ? one : many)") }
    }
    func count(_ states: Set<Thread.State>) -> Int {
      threads.count { states.contains($0.state) && !isKept($0) && $0.waitsFor == nil }
    }
    // A core knows no times.
    let long = report.mode == .core ? ["waits", "wait"] : ["has waited long", "have waited long"]
    add(kept.count, "\(long[0]) for what another holds", "\(long[1]) for what others hold")
    add(count([.running]), "runs", "run")
    add(
      threads.count { ($0.waitsFor != nil || $0.state == .blocked) && !isKept($0) }, "waits", "wait"
    )
    add(count([.io]), "is in a call of the kernel", "are in calls of the kernel")
    add(count([.sleeping]), "sleeps", "sleep")
    add(count([.idle]), "rests", "rest")
    var verdict =
      (report.mode == .core ? "no deadlock seen" : kept.isEmpty ? "nothing hangs" : "no deadlock")
      + " in \(names.program)"
    switch report.process.stopped {
    case .signal?:
      verdict =
        "no deadlock in \(names.program), which is stopped; `kill -CONT \(report.process.pid)` lets"
        + " it go on"
    case .tracer?: verdict = "no deadlock in \(names.program), which is stopped by what traces it"
    case nil: break
    }
    let words = "hangcheck: \(verdict): \(counted(threads.count, "thread"))"
    let isGood = kept.isEmpty && report.process.stopped == nil
    line((isGood ? style.good : style.plain)(([words] + parts).joined(separator: ", ")))
  }

  /// Waits for what somebody holds, and that for longer than a lock is held in passing.
  private func isKept(_ thread: Thread) -> Bool {
    guard let wait = thread.waitsFor, wait.seconds.map({ $0 >= 1 }) ?? true else { return false }
    switch names.resources[wait.resource]?.kind {
    case .mutex, .rwlock, .spinlock, .once, .queue, .operation, .operationQueue, .workItem:
      return true
    default: return false
    }
  }
}
