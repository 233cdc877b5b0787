internal import HangReport
internal import WaitForGraph

extension RunSession {
  /// The races that ThreadSanitizer found in a process since the last look, as one event; nil for
  /// none that are new.
  func tellRaces(of process: RunProcess) -> RunEvent? {
    addRaces(of: process) ? .report(report, mainThreadIsStuck: false) : nil
  }

  /// Adds them; whether there was any. The same pair of functions is told of once.
  @discardableResult func addRaces(of process: RunProcess) -> Bool {
    let reports = process.words.newReports()
    if process.words.isCut {
      addLimit("ThreadSanitizer printed more than is read of it: its later reports are left out")
    }
    guard reports.contains(where: \.isRace) else { return false }
    let isSure = !process.words.isAlone
    if !isSure {
      addLimit(
        "what orders the program's threads: ThreadSanitizer does not see the libraries that are"
          + " linked into it, and may call what they order a race (build without -static-stdlib)")
    }
    var known = Set(report.findings.filter { $0.kind == .dataRace }.map(\.fingerprint))
    let race = RacePicture(reports, of: process, program: report.process, isSure: isSure)
    let findings = race.findings.filter { known.insert($0.fingerprint).inserted }
    guard !findings.isEmpty else { return false }
    add(
      findings, RunProcess.Picture(threads: race.threads, resources: [], limits: []), of: process,
      isWhole: false)
    return true
  }
}

/// The threads that reports of ThreadSanitizer speak of, and the findings that these come to.
private struct RacePicture {
  private(set) var threads: [Thread] = []
  private(set) var findings: [Finding] = []
  private let process: RunProcess

  init(
    _ reports: [SanitizerReport], of process: RunProcess, program: WatchedProcess, isSure: Bool
  ) {
    self.process = process
    let symbolizer = process.assembler(alive: process.isAlive).symbolizer
    for report in reports where report.isRace {
      var who: [SanitizerReport.Who: ThreadID] = [
        .main: thread(process.pid.rawValue, name: "", isRunning: true)
      ]
      for origin in report.threads {
        who[.thread(origin.number)] = thread(
          outer(origin.tid), name: origin.name, isRunning: origin.isRunning)
      }
      let maker = SanitizerFinding(
        threads: threads, process: program, who: who, isSure: isSure
      ) { call in
        symbolizer.frames(image: call.image, offset: call.offset) ?? [call.frame]
      }
      if let finding = maker.finding(for: report) { findings.append(finding) }
    }
  }

  /// In a namespace of its own the process knows its threads by other numbers.
  private func outer(_ inner: Int32) -> Int32 {
    guard process.arena.ownPID != UInt32(bitPattern: process.pid.rawValue) else { return inner }
    let id = process.files.threads().first {
      process.files.innerID($0) == KernelThreadID(inner)
    }
    return id?.rawValue ?? -inner
  }

  private mutating func thread(_ tid: Int32, name: String, isRunning: Bool) -> ThreadID {
    if let known = threads.first(where: { $0.tid == tid }) { return known.id }
    let id = ThreadID(threads.count + 1)
    let current = isRunning ? process.files.name(KernelThreadID(tid)) : ""
    // What a thread never named itself it has from the one that started it.
    let old = name.hasSuffix("-qos") ? "" : name
    threads.append(
      Thread(
        id: id, tid: tid, pid: process.isRoot ? nil : process.pid.rawValue,
        name: current.isEmpty ? old : current, state: isRunning ? .running : .idle))
    return id
  }
}
