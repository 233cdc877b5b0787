internal import HangReport
internal import WaitForGraph

extension RunProcess {
  /// A picture and what alarms add to it; nil while there is none. Its threads wait until
  /// `settleAlarms`.
  func alarmed(now: UInt64) -> (report: AlarmReport, picture: Picture, look: Look)? {
    let alarms = arena.takeAlarms()
    guard !alarms.isEmpty else { return nil }
    unsettled += alarms
    let alive = isAlive
    let look = alive ? wholeLook(now: now) : watch.lastLook(now: now)
    let stacks = alive ? capturedStacks(look) : [:]
    let assembler = assembler(alive: alive)
    var picture = picture(of: look, stacks: stacks, assembler: assembler, alive: alive)
    var report = AlarmReport(
      look: look, assembler: assembler, memory: memory, stacks: stacks, threads: picture.threads,
      resources: picture.resources)
    for alarm in alarms { report.add(alarm) }
    (picture.threads, picture.resources) = (report.threads, report.resources)
    return (report, picture, look)
  }

  /// What was taken has been told.
  func settleAlarms() {
    for alarm in unsettled { arena.settle(alarm) }
    unsettled = []
  }
}
