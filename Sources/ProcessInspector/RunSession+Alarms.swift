internal import HangReport
internal import WaitForGraph

extension RunSession {
  /// What the alarms of a process come to, as one event; nil while there are none.
  func tellAlarms(of process: RunProcess, now: UInt64) -> RunEvent? {
    guard let (alarms, picture, look) = process.alarmed(now: now) else { return nil }
    let findings = findings(of: alarms, in: picture)
    guard !findings.isEmpty else { return nil }
    var isStuck = false
    for (deadlock, traps) in alarms.deadlocks {
      process.watch.markTold(deadlock, look)
      // One that traps ends by itself, and not for hangcheck's sake.
      let stuck = Set(deadlock.edges.map(\.thread))
      if !traps, let main = picture.threads.first(where: { $0.tid == process.pid.rawValue }) {
        isStuck = isStuck || stuck.contains(main.id)
      }
    }
    let traps = !alarms.deadlocks.isEmpty && alarms.deadlocks.allSatisfy(\.traps)
    add(findings, picture, of: process)
    return .report(
      report, mainThreadIsStuck: isStuck && process.isRoot,
      stuckChildren: isStuck && !process.isRoot ? [process.pid.rawValue] : [], endsByItself: traps)
  }

  /// What a process said in its last moments.
  func addLastAlarms(of process: RunProcess, now: UInt64) {
    guard let (alarms, picture, _) = process.alarmed(now: now) else { return }
    let findings = findings(of: alarms, in: picture)
    if !findings.isEmpty { add(findings, picture, of: process) }
    process.settleAlarms()
  }

  private func findings(of alarms: AlarmReport, in picture: RunProcess.Picture) -> [Finding] {
    let circles = DeadlockFinding(
      threads: picture.threads, resources: picture.resources, process: report.process)
    let misuses = MisuseFinding(
      threads: picture.threads, resources: picture.resources, process: report.process)
    let races = DataRaceFinding(
      threads: picture.threads, resources: picture.resources, process: report.process)
    return alarms.deadlocks.map { circles.finding(for: $0.deadlock) }
      + alarms.misuses.map { misuses.finding(for: $0) }
      + alarms.races.map { races.finding(for: $0) }
  }
}
