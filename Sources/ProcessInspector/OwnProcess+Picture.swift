internal import CHangcheck
internal import Glibc
package import HangReport
internal import WaitForGraph

extension OwnProcess {
  /// Threads that no report is about either, from here on.
  package func leaveOut(_ helpers: [UInt32]) {
    if helpers != leftOut {
      leftOut = helpers
      watch.ignored = Set(helpers.map { KernelThreadID(Int32(bitPattern: $0)) } + [observer])
    }
    watch.ignoredSignals = hck_quit_is_taken() != 0 ? [SIGQUIT] : []
  }

  /// All threads as they stand, and the queued work: a report of what is there, not of what is
  /// wrong. Its findings are the deadlocks that were told before and are still there.
  package func picture(now: UInt64) -> HangReport {
    hck_sanitizer_ignore_begin()
    defer { hck_sanitizer_ignore_end() }
    // A standstill is one only where nothing from outside could act.
    let look = watch.look(.whole, now: now)
    let alive = look.threads.filter { $0.isAlive && $0.kind == .thread }.map(\.tid)
    let stacks = captureStacks(alive, look)
    let assembler = ReportAssembler(files: files, memory: memory, arena: arena, isRoot: true)
    let threads = assembler.threads(look, stacks: stacks)
    var report = HangReport(
      tool: .current, mode: .inProcess,
      process: WatchedProcess(
        pid: files.pid.rawValue, executable: files.executable(), arguments: files.arguments()),
      threads: threads, resources: ReportAssembler.named(assembler.resources(look), by: threads))
    let maker = DeadlockFinding(
      threads: report.threads, resources: report.resources, process: report.process)
    report.findings = watch.toldDeadlocks(in: look).map { maker.finding(for: $0) }
    report.limits = limits(assembler, missing: alive.count { stacks[$0] == nil })
    return report
  }
}
