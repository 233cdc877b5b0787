internal import CHangcheck
internal import HangReport
internal import WaitForGraph

extension RunProcess {
  /// A picture and what alarms add to it; nil while there is none. Its threads wait until
  /// `settleAlarms`.
  func alarmed(now: UInt64) -> (report: AlarmReport, picture: Picture, look: Look)? {
    let alive = isAlive
    let alarms =
      arena.takeAlarms() + (alive ? lockUse.tick(now: now) + watch.takeNeverLeft() : [])
    unsettled += alarms
    let isExit = { (alarm: RecordedAlarm) in alarm.kind == HCK_ALARM_AT_EXIT.rawValue }
    // Without a judge what is outstanding at the end is no fault.
    guard !alarms.allSatisfy({ isExit($0) && confirmsAtExit == nil }) else {
      settleAlarms()
      return nil
    }
    let look = alive ? wholeLook(now: now) : watch.lastLook(now: now)
    let told = alarms.filter {
      lockUse.isNews($0) && (!isExit($0) || confirmsAtExit?($0, look) == true)
    }
    guard !told.isEmpty else {
      settleAlarms()
      return nil
    }
    let stacks = alive ? capturedStacks(look) : [:]
    let assembler = assembler(alive: alive)
    var picture = picture(of: look, stacks: stacks, assembler: assembler, alive: alive)
    var report = AlarmReport(
      look: look, assembler: assembler, memory: memory, stacks: stacks, threads: picture.threads,
      resources: picture.resources)
    for alarm in told { report.add(alarm) }
    picture.threads = report.threads
    picture.resources = ReportAssembler.named(report.resources, by: report.threads)
    return (report, picture, look)
  }

  /// What was taken has been told.
  func settleAlarms() {
    for alarm in unsettled { arena.settle(alarm) }
    unsettled = []
  }
}
