internal import HangReport
internal import WaitForGraph

extension RunSession {
  /// The program and its children wait for each other, as one event: a parent for a child that waits
  /// for it to read a pipe.
  func tellFamily(of process: RunProcess, now: UInt64) -> RunEvent? {
    guard process.isRoot, setup.followsChildren,
      process.family.isDue(now: now, threshold: setup.waitThreshold.nanoseconds)
    else { return nil }
    return lookAtFamily(of: process, threshold: setup.waitThreshold)
  }

  /// The same when the time is up: then what is possible has lasted as long as it could.
  func lastFamilyLook(of process: RunProcess, now: UInt64) -> RunEvent? {
    guard process.isRoot, setup.followsChildren, !process.family.isTold,
      process.family.hasStood(now: now)
    else { return nil }
    return lookAtFamily(of: process, threshold: .zero)
  }

  private func lookAtFamily(of process: RunProcess, threshold: Duration) -> RunEvent? {
    let asked = AttachSetup(tool: setup.tool, waitThreshold: threshold, stops: true)
    let child = KernelThreadID(process.pid.rawValue)
    guard let root = try? AttachSession(pid: process.pid.rawValue, setup: asked, child: child)
    else { return nil }
    _ = root.prepare()
    guard let family = FamilyLook(root), let found = family.confirmed() else { return nil }
    let seen = family.report(found, tool: setup.tool)
    // A note now may be a warning later.
    let findings = seen.findings.filter { $0.severity != .note }
    guard !findings.isEmpty else { return nil }
    process.family.isTold = true
    let picture = RunProcess.Picture(
      threads: seen.threads, resources: seen.resources, limits: seen.limits ?? [])
    add(findings, picture, of: process)
    for one in seen.processes ?? []
    where report.processes?.contains(where: { $0.pid == one.pid }) != true {
      report.processes = (report.processes ?? []) + [one]
    }
    let main = seen.threads.first { $0.pid == nil && $0.tid == process.pid.rawValue }
    let isStuck = findings.contains { finding in
      finding.certainty == .certain && main.map { finding.threads.contains($0.id) } ?? false
    }
    return .report(report, mainThreadIsStuck: isStuck)
  }
}
