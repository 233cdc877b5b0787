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

extension PoolWatch.Exhausted {
  var facts: PoolFacts {
    PoolFacts(
      workers: workers, queued: queued, queuedCount: queuedCount,
      resource: look.resources.firstIndex(of: resource).map { ResourceID($0 + 1) },
      isCooperative: isCooperative, isSmall: isSmall, seconds: seconds)
  }
}
