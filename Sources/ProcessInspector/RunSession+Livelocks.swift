internal import HangReport
internal import WaitForGraph

extension RunSession {
  /// Threads that fail in turn, as one event.
  func tellLivelocks(of process: RunProcess, now: UInt64) -> RunEvent? {
    var known = Set(report.findings.map(\.fingerprint))
    var isNew = false
    for found in process.livelocks.tick(now: now, threshold: setup.waitThreshold) {
      let stacks = process.capturedStacks(found.look)
      let assembler = process.assembler(alive: true)
      var picture = process.picture(
        of: found.look, stacks: stacks, assembler: assembler, alive: true)
      let facts = assembler.facts(of: found, &picture.resources)
      let maker = LivelockFinding(
        threads: picture.threads, resources: picture.resources, process: report.process)
      guard let finding = maker.finding(for: facts), known.insert(finding.fingerprint).inserted
      else { continue }
      add([finding], picture, of: process)
      isNew = true
    }
    return isNew ? .report(report, mainThreadIsStuck: false) : nil
  }
}
