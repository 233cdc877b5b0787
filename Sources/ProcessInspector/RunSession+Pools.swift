internal import HangReport
internal import WaitForGraph

extension RunSession {
  /// Pools whose threads are all blocked, as one event.
  func tellPools(of process: RunProcess, now: UInt64) -> RunEvent? {
    // What is in a deadlock has been told.
    let told = Set(report.findings.filter { $0.kind == .deadlock }.flatMap(\.threads))
    let tids = Set(report.threads.filter { told.contains($0.id) }.map(\.tid))
    var isNew = false
    for pool in process.pools.tick(now: now, threshold: setup.waitThreshold)
    where !pool.workers.contains(where: { tids.contains(pool.look.thread($0).tid.rawValue) }) {
      let picture = process.picture(of: pool.look)
      let maker = PoolFinding(
        threads: picture.threads, resources: picture.resources, process: report.process)
      add([maker.finding(for: pool.facts)], picture, of: process)
      isNew = true
    }
    return isNew ? .report(report, mainThreadIsStuck: false) : nil
  }
}

extension RunSession {
  /// Threads of the cooperative pool that block while others are left; each place in the code once.
  func tellBlocking(of process: RunProcess, now: UInt64) -> RunEvent? {
    var isNew = false
    for pool in process.pools.blocking(now: now, threshold: setup.waitThreshold) {
      let told = Set(report.findings.flatMap(\.threads))
      let tids = Set(report.threads.filter { told.contains($0.id) }.map(\.tid))
      if pool.fresh.allSatisfy({ tids.contains(pool.look.thread($0).tid.rawValue) }) { continue }
      let picture = process.picture(of: pool.look)
      let maker = PoolFinding(
        threads: picture.threads, resources: picture.resources, process: report.process)
      let finding = maker.finding(for: pool.facts)
      guard toldBlocking.insert("\(finding.fingerprint) \(finding.severity)").inserted else {
        continue
      }
      add([finding], picture, of: process)
      isNew = true
    }
    return isNew ? .report(report, mainThreadIsStuck: false) : nil
  }
}

extension PoolWatch.Exhausted {
  var facts: PoolFacts {
    PoolFacts(
      workers: workers, queued: queued, queuedCount: queuedCount,
      resource: look.resources.firstIndex(of: resource).map { ResourceID($0 + 1) },
      isCooperative: isCooperative, isSmall: isSmall, seconds: seconds)
  }
}
