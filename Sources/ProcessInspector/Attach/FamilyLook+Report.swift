internal import HangReport
internal import WaitForGraph

extension FamilyLook {
  func report(_ found: Found, tool: HangReport.Tool) -> HangReport {
    let files = root.files
    var report = HangReport(
      tool: tool, mode: .attach,
      process: WatchedProcess(
        pid: root.pid.rawValue, executable: files.executable(), arguments: files.arguments()))
    var offset = (threads: 0, resources: 0)
    for (number, member) in members.enumerated() {
      let look = found.looks[number]
      let assembler = member.assembler(isRoot: number == 0)
      report.threads += assembler.threads(look, stacks: member.lastStacks).map {
        $0.moved(offset.threads, offset.resources)
      }
      report.resources += assembler.resources(look).map {
        $0.moved(offset.threads, offset.resources)
      }
      if number > 0 {
        report.processes =
          (report.processes ?? []) + [
            WatchedProcess(
              pid: member.pid.rawValue, executable: member.files.executable(),
              arguments: member.files.arguments())
          ]
      }
      offset.threads += look.threads.count
      offset.resources += look.snapshot.resources.count
    }
    addKernelWaits(found, &report)
    let maker = DeadlockFinding(
      threads: report.threads, resources: report.resources, process: report.process)
    report.findings = found.deadlocks.map { maker.finding(for: $0) }
    if found.isLenient {
      let threshold = Double(root.setup.waitThreshold.nanoseconds) / 1e9
      for index in report.findings.indices {
        let waits = report.findings[index].cycle.map(\.thread)
          .filter { !found.lookingAfter.contains($0) }
          .map { id in found.snapshot.threads.first { $0.id == id }?.wait?.seconds ?? 0 }
        report.findings[index].certainty = .possible
        report.findings[index].severity = waits.allSatisfy { $0 >= threshold } ? .warning : .note
      }
    }
    let named = Set(report.findings.flatMap { $0.threads + $0.cycle.compactMap(\.ownedBy) })
    report.threads.removeAll { $0.kind ?? .thread != .thread && !named.contains($0.id) }
    return report
  }

  private func addKernelWaits(_ found: Found, _ report: inout HangReport) {
    for (id, resource) in found.resources.sorted(by: { $0.key < $1.key }) {
      let waiters = found.snapshot.threads.filter { $0.wait?.resource == id }
      for waiter in waiters {
        guard let index = report.threads.firstIndex(where: { $0.id == waiter.id }) else { continue }
        report.threads[index].state = .blocked
        report.threads[index].waitsFor = Thread.Wait(
          resource: id, mode: .exclusive, seconds: waiter.wait?.seconds,
          stack: report.threads[index].stack)
      }
      let owners = found.snapshot.threads.filter { thread in
        thread.holds.contains { $0.resource == id }
      }
      var name: String?
      switch resource.kind {
      case .pipe: name = resource.isFull ? "full pipe" : "empty pipe"
      case .process:
        let pid = Int32(truncatingIfNeeded: resource.number)
        name = ProcessFiles(ProcessID(pid)).name(KernelThreadID(pid))
      default: break
      }
      report.resources.append(
        Resource(
          id: id, kind: resource.kind, name: name, address: Address(resource.number),
          owners: owners.map(\.id), waiters: waiters.map(\.id)))
    }
  }
}

extension Thread {
  fileprivate func moved(_ threads: Int, _ resources: Int) -> Thread {
    var copy = self
    copy.id = ThreadID(id.rawValue + threads)
    if let wait = waitsFor {
      copy.waitsFor?.resource = ResourceID(wait.resource.rawValue + resources)
    }
    for index in copy.holds.indices {
      copy.holds[index].resource = ResourceID(holds[index].resource.rawValue + resources)
    }
    return copy
  }
}

extension Resource {
  fileprivate func moved(_ threads: Int, _ resources: Int) -> Resource {
    var copy = self
    copy.id = ResourceID(id.rawValue + resources)
    copy.owners = owners.map { ThreadID($0.rawValue + threads) }
    copy.waiters = waiters.map { ThreadID($0.rawValue + threads) }
    return copy
  }
}
