internal import HangReport
internal import WaitForGraph

extension RunSession {
  /// What waits when the time is up: without a cycle there is nobody to blame, so each is a note.
  package func timeoutReport(now: UInt64) -> RunEvent? {
    var isNew = false
    for pid in processes.keys.sorted() {
      guard let process = processes[pid], process.isAlive else { continue }
      if lastFamilyLook(of: process, now: now) != nil {
        isNew = true
        continue
      }
      if hasPicture && !process.isRoot { continue }
      let look = process.wholeLook(now: now)
      let picture = process.picture(of: look, waitsOf: look.snapshot.threads.map(\.id))
      let findings = untold(longWaits(picture), picture)
      if hasPicture && findings.isEmpty { continue }
      isNew = true
      add(findings, picture, of: process)
      let openings = process.watch.openings(limit: 4)
      if !report.findings.contains(where: { $0.kind == .deadlock }), !openings.isEmpty {
        addLimit(
          "whether it would have gone on: something might still act ("
            + openings.joined(separator: "; ") + ")")
      }
    }
    return isNew ? .report(report, mainThreadIsStuck: false) : nil
  }

  /// Those about threads that no finding names yet.
  private func untold(_ findings: [Finding], _ picture: RunProcess.Picture) -> [Finding] {
    let told = Set(report.findings.flatMap(subjects))
    let tids = Set(report.threads.filter { told.contains($0.id) }.map(\.tid))
    return findings.filter { finding in
      !picture.threads.contains { subjects(finding).contains($0.id) && tids.contains($0.tid) }
    }
  }

  /// Of a long wait the one that waits: others are named who are in its way.
  private func subjects(_ finding: Finding) -> [ThreadID] {
    finding.kind == .longWait ? Array(finding.threads.prefix(1)) : finding.threads
  }

  /// The waits that have become long since the last look, each told once.
  func tellLongWaits(of process: RunProcess, now: UInt64) -> RunEvent? {
    let slots = process.watch.newLongWaits(now: now, threshold: setup.waitThreshold)
    guard !slots.isEmpty else { return nil }
    let look = process.watch.look(atWaitsIn: slots, now: now)
    let ids = look.threads.filter { seen in
      seen.record.map { slots.contains($0.slot) } ?? false
        && look.snapshot.threads[seen.id.rawValue - 1].wait != nil
    }.map(\.id)
    guard !ids.isEmpty else { return nil }
    let picture = process.picture(of: look, waitsOf: ids)
    let findings = untold(longWaits(picture, of: ids), picture)
    guard !findings.isEmpty else { return nil }
    add(findings, picture, of: process)
    return .report(report, mainThreadIsStuck: false)
  }

  private func longWaits(_ picture: RunProcess.Picture, of ids: [ThreadID]? = nil) -> [Finding] {
    let threshold = Double(setup.waitThreshold.nanoseconds) / 1e9
    let maker = LongWaitFinding(
      threads: picture.threads, resources: picture.resources, process: report.process,
      history: picture.history)
    return picture.threads.compactMap { thread in
      guard let wait = thread.waitsFor, thread.kind ?? .thread == .thread,
        ids?.contains(thread.id) ?? ((wait.seconds ?? 0) >= threshold)
      else { return nil }
      return maker.finding(for: thread, picture.waits[thread.id] ?? LongWaitFacts())
    }
  }
}
