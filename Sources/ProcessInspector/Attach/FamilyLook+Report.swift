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
      report.limits = [
        "whether another thread of these processes would act, though it does something else now: that"
          + " is why the deadlock is called possible"
      ]
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
    report.threads.removeAll { found.proxies.contains($0.id) }
    for index in report.threads.indices {
      settle(&report.threads[index], found)
    }
    for (id, wait) in found.resources.sorted(by: { $0.key < $1.key }) {
      var name = wait.name
      switch wait.kind {
      case .pipe: name = wait.isFull ? "full pipe" : "empty pipe"
      case .process:
        let pid = Int32(truncatingIfNeeded: wait.number)
        name = ProcessFiles(ProcessID(pid)).name(KernelThreadID(pid))
      default: break
      }
      report.resources.append(
        Resource(
          id: id, kind: wait.kind, name: name, address: Address(wait.number), owners: [],
          waiters: []))
    }
    report.resources.removeAll { found.aliases[$0.id] != nil }
    for index in report.resources.indices {
      let resource = report.resources[index].id
      let threads = found.snapshot.threads
      let target = found.snapshot.resources[resource.rawValue - 1].thread
      report.resources[index].owners = threads.filter { thread in
        thread.id == target || thread.holds.contains { $0.resource == resource }
      }.map(\.id)
      report.resources[index].waiters = threads.filter { thread in
        thread.wait?.resource == resource
          || thread.moreWaits.contains { $0.resource == resource }
      }.map(\.id)
    }
  }

  /// What a thread waits for and holds, as the whole shows it.
  private func settle(_ thread: inout Thread, _ found: Found) {
    guard thread.id.rawValue <= found.snapshot.threads.count else { return }
    let seen = found.snapshot.threads[thread.id.rawValue - 1]
    if let resource = thread.waitsFor?.resource, let first = found.aliases[resource] {
      thread.waitsFor?.resource = first
    }
    if let wait = seen.wait, found.resources[wait.resource] != nil {
      thread.state = .blocked
      thread.waitsFor = Thread.Wait(
        resource: wait.resource, mode: .exclusive, seconds: wait.seconds, stack: thread.stack)
    }
    for index in thread.holds.indices {
      let resource = thread.holds[index].resource
      thread.holds[index].resource = found.aliases[resource] ?? resource
    }
    // The kernel's, or found in another process's look.
    for hold in seen.holds
    where found.resources[hold.resource].map({ $0.kind == .fileLock }) ?? true
      && !thread.holds.contains(where: { $0.resource == hold.resource })
    {
      thread.holds.append(
        Thread.Hold(resource: hold.resource, mode: hold.mode, seconds: hold.seconds, stack: []))
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
