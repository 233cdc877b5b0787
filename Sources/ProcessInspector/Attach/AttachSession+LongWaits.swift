internal import CHangcheck
internal import HangReport
internal import WaitForGraph

extension AttachSession {
  /// Threads that have waited for long for what somebody holds, and that no deadlock names.
  func longWaits(
    _ report: HangReport, _ history: [ResourceID: [ResourceEvent]]
  ) -> [Finding] {
    let told = Set(report.findings.flatMap(\.threads))
    let threshold = Double(setup.waitThreshold.nanoseconds) / 1e9
    let held = Set(report.resources.filter(isHeld).map(\.id))
    let maker = LongWaitFinding(
      threads: report.threads, resources: report.resources, process: report.process,
      history: history)
    return report.threads.compactMap { thread in
      guard thread.kind ?? .thread == .thread, !told.contains(thread.id),
        let wait = thread.waitsFor, let seconds = wait.seconds, seconds >= threshold,
        held.contains(wait.resource)
      else { return nil }
      return maker.finding(for: thread)
    }
  }

  /// Whether a wait for it is one for somebody who has it; threads may wait for each other's end, or for
  /// work, as long as they like.
  private func isHeld(_ resource: Resource) -> Bool {
    switch resource.kind {
    case .mutex, .queue, .once, .operation, .workItem, .group, .fileLock: !resource.owners.isEmpty
    // Its memory does not name its readers.
    case .rwlock: true
    case .semaphore:
      watch.runtime.dispatch?.semaphore(resource.address.rawValue).map { $0.original > 0 } ?? false
    default: false
    }
  }
}
