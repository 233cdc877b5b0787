internal import HangReport
internal import WaitForGraph

extension RunSession {
  /// Priority inversions that are over, or have gone on for long enough, as one event. `isLast`: the
  /// process ends.
  func tellInversions(of process: RunProcess, now: UInt64, isLast: Bool = false) -> RunEvent? {
    if !isLast {
      let threshold = setup.inversionThreshold.nanoseconds
      for opened in process.inversions.opened(now: now, threshold: threshold) {
        let picture = process.picture(of: opened.look, waitsOf: [opened.waiter, opened.owner])
        process.openInversions.append((opened, picture))
      }
    }
    var known = Set(report.findings.map(\.fingerprint))
    var isNew = false
    var open = process.openInversions
    open.removeAll { opened, picture in
      guard let outcome = process.inversions.outcome(of: opened, now: now, isLast: isLast) else {
        return false
      }
      let maker = InversionFinding(
        threads: picture.threads, resources: picture.resources, process: report.process,
        history: picture.history)
      if let finding = maker.finding(for: outcome.facts, goesOn: outcome.goesOn),
        known.insert(finding.fingerprint).inserted
      {
        add([finding], picture, of: process)
        isNew = true
      }
      return true
    }
    process.openInversions = open
    return isNew ? .report(report, mainThreadIsStuck: false) : nil
  }
}
