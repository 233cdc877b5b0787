internal import CHangcheck
package import HangReport
internal import WaitForGraph

/// What a report says of the process at one moment.
struct OwnPage {
  var threads: [Thread]
  var resources: [Resource]
  var history: [ResourceID: [ResourceEvent]]
  var limits: [String]
}

extension OwnProcess {
  package var hasOpenInversions: Bool { !openInversions.isEmpty }

  /// The report of priority inversions that are over, or have gone on for long enough. `isLast`: the
  /// process ends. `opens` is called before the stacks of one are looked at, which takes a while.
  package func inversionReport(
    now: UInt64, isLast: Bool, opens: () -> Void
  ) -> HangReport? {
    hck_sanitizer_ignore_begin()
    defer { hck_sanitizer_ignore_end() }
    for opened in inversions.opened(now: now, threshold: inversionThreshold.nanoseconds) {
      opens()
      openInversions.append((opened, page(of: opened.look, history: [opened.resource])))
    }
    guard !openInversions.isEmpty else { return nil }
    var report = emptyReport
    var open = openInversions
    open.removeAll { opened, page in
      // One report has the threads of one moment.
      guard report.findings.isEmpty,
        let outcome = inversions.outcome(of: opened, now: now, isLast: isLast)
      else { return false }
      let maker = InversionFinding(
        threads: page.threads, resources: page.resources, process: report.process,
        history: page.history)
      if let finding = maker.finding(for: outcome.facts, goesOn: outcome.goesOn),
        toldInversions.insert(finding.fingerprint).inserted
      {
        fill(&report, page, [finding])
      }
      return true
    }
    openInversions = open
    return report.findings.isEmpty ? nil : report
  }

  /// The report of pools whose threads are all blocked while work is queued.
  package func poolReport(now: UInt64) -> HangReport? {
    hck_sanitizer_ignore_begin()
    defer { hck_sanitizer_ignore_end() }
    // One report has the threads of one moment.
    let found = pools.tick(now: now, threshold: waitThreshold)
    guard let pool = found.first(where: { !isDeadlocked($0) }) else { return nil }
    let page = page(of: pool.look, history: [])
    var report = emptyReport
    let maker = PoolFinding(
      threads: page.threads, resources: page.resources, process: report.process)
    fill(&report, page, [maker.finding(for: pool.facts)])
    return report
  }

  /// The report of threads of the cooperative pool that block while others are left.
  package func blockingReport(now: UInt64) -> HangReport? {
    hck_sanitizer_ignore_begin()
    defer { hck_sanitizer_ignore_end() }
    for pool in pools.blocking(now: now, threshold: waitThreshold) {
      let told = pool.fresh.allSatisfy { pool.look.thread($0).record.map(wasTold) ?? false }
      if told { continue }
      let page = page(of: pool.look, history: [])
      var report = emptyReport
      let maker = PoolFinding(
        threads: page.threads, resources: page.resources, process: report.process)
      let finding = maker.finding(for: pool.facts)
      guard toldBlocking.insert("\(finding.fingerprint) \(finding.severity)").inserted else {
        continue
      }
      for id in pool.fresh { noteTold(pool.look.thread(id)) }
      fill(&report, page, [finding])
      return report
    }
    return nil
  }

  /// The report of timers and blocks of run loops that nobody runs. `hang`: a hang's threshold.
  package func strandedReport(now: UInt64, hang: Duration) -> HangReport? {
    hck_sanitizer_ignore_begin()
    defer { hck_sanitizer_ignore_end() }
    let all = runLoops.tick(now: now, hang: hang, wait: waitThreshold)
    guard let first = all.first else { return nil }
    let page = page(of: first.look, history: [])
    var report = emptyReport
    let maker = StrandedFinding(
      threads: page.threads, resources: page.resources, process: report.process)
    let assembler = ReportAssembler(files: files, memory: memory, arena: arena, isRoot: true)
    fill(&report, page, all.map { maker.finding(for: assembler.facts($0)) })
    return report
  }

  /// The report of threads that fail in turn to take what the others of them hold.
  package func livelockReport(now: UInt64) -> HangReport? {
    hck_sanitizer_ignore_begin()
    defer { hck_sanitizer_ignore_end() }
    // One report has the threads of one moment.
    guard let found = livelocks.tick(now: now, threshold: waitThreshold).first else { return nil }
    var page = page(of: found.look, history: [])
    let assembler = ReportAssembler(files: files, memory: memory, arena: arena, isRoot: true)
    let facts = assembler.facts(of: found, &page.resources)
    var report = emptyReport
    let maker = LivelockFinding(
      threads: page.threads, resources: page.resources, process: report.process)
    guard let finding = maker.finding(for: facts),
      toldLivelocks.insert(finding.fingerprint).inserted
    else { return nil }
    fill(&report, page, [finding])
    return report
  }

  private func isDeadlocked(_ pool: PoolWatch.Exhausted) -> Bool {
    pool.workers.contains { id in
      pool.look.thread(id).record.map(wasTold) ?? false
    }
  }

  private var emptyReport: HangReport {
    HangReport(
      tool: .current, mode: .inProcess,
      process: WatchedProcess(
        pid: files.pid.rawValue, executable: files.executable(), arguments: files.arguments()))
  }

  private func fill(_ report: inout HangReport, _ page: OwnPage, _ findings: [Finding]) {
    let named = Set(findings.flatMap(\.threads))
    report.findings += findings
    report.threads = page.threads.filter { $0.kind ?? .thread == .thread || named.contains($0.id) }
    report.resources = page.resources
    report.limits = page.limits.isEmpty ? nil : page.limits
  }

  private func page(of look: Look, history: [ResourceID]) -> OwnPage {
    let stacks = captureStacks(
      look.threads.filter { $0.isAlive && $0.kind == .thread }.map(\.tid), look)
    let assembler = ReportAssembler(files: files, memory: memory, arena: arena, isRoot: true)
    let threads = assembler.threads(look, stacks: stacks)
    return OwnPage(
      threads: threads, resources: ReportAssembler.named(assembler.resources(look), by: threads),
      history: assembler.history(history, look), limits: assembler.limits + capture.limits)
  }
}
