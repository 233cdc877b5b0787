internal import CHangcheck
package import HangReport
internal import WaitForGraph

/// What a report says of the process at the moment that a priority inversion had lasted for the
/// threshold.
struct InversionPage {
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
      openInversions.append((opened, page(of: opened)))
    }
    var report = HangReport(
      tool: .current, mode: .inProcess,
      process: WatchedProcess(
        pid: files.pid.rawValue, executable: files.executable(), arguments: files.arguments()))
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
        report.findings.append(finding)
        (report.threads, report.resources) = (page.threads, page.resources)
        report.limits = page.limits.isEmpty ? nil : page.limits
      }
      return true
    }
    openInversions = open
    return report.findings.isEmpty ? nil : report
  }

  private func page(of opened: InversionWatch.Opened) -> InversionPage {
    let look = opened.look
    let stacks = captureStacks(
      look.threads.filter { $0.isAlive && $0.kind == .thread }.map(\.tid), look)
    let assembler = ReportAssembler(files: files, memory: memory, arena: arena, isRoot: true)
    let threads = assembler.threads(look, stacks: stacks)
    return InversionPage(
      threads: threads.filter { $0.kind ?? .thread == .thread },
      resources: ReportAssembler.named(assembler.resources(look), by: threads),
      history: assembler.history([opened.resource], look),
      limits: assembler.limits + capture.limits)
  }
}
