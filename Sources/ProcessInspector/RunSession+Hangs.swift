internal import CHangcheck
internal import HangReport
internal import WaitForGraph

extension RunSession {
  /// Hangs that have begun, last or are over, as one event. A finding is told when a hang begins,
  /// and grows with it; another hang in the same place is counted.
  ///
  /// `isLast`: the process has ended, and what it said of an end is all that counts.
  func tellHangs(of process: RunProcess, now: UInt64, isLast: Bool = false) -> RunEvent? {
    var isNew = false
    let events = process.main.look(now: now, threshold: setup.hangThreshold.nanoseconds)
    for (watched, event) in events {
      if isLast, case .closed = event {} else if isLast { continue }
      switch event {
      case .sample: process.sample(watched, now: now)
      case .forgotten: watched.forget()
      case .opened(let hang), .updated(let hang):
        process.sample(watched, now: now)
        if follow(watched, hang, process, now: now) { isNew = true }
      case .closed(let hang):
        if close(watched, hang, process, now: now) { isNew = true }
        watched.forget()
      }
    }
    for (watched, since) in isLast ? [] : process.main.postponed(now: now) {
      let hang = HangTracker.Hang(
        since: since, duration: process.main.duration(since: since, now: now))
      if follow(watched, hang, process, now: now) { isNew = true }
    }
    return isNew ? .report(report, mainThreadIsStuck: false) : nil
  }

  /// The process has ended: how often each hang came.
  func countHangs(of process: RunProcess) {
    _ = tellHangs(of: process, now: hck_monotonic_ns(), isLast: true)
    for told in process.main.told.values where told.count > 1 {
      report.findings[told.finding].message += HangFinding.repeated(
        told.count, seconds: told.seconds)
    }
  }

  /// A hang goes on. Whether there is anything to tell.
  private func follow(
    _ watched: MainWatch.Watched, _ hang: HangTracker.Hang, _ process: RunProcess, now: UInt64
  ) -> Bool {
    switch watched.telling {
    case .silent: return false
    case .told(let index):
      guard
        let (finding, picture) = process.finding(
          of: watched, hang, in: report.process, hasEnded: false, now: now)
      else { return false }
      replace(index, by: finding, picture, of: process)
      return true
    case .untold, .postponed: break
    }
    // A turn that is none ends with the next look.
    guard watched.checked?.isTurn ?? true else { return false }
    if isInDeadlock(watched.thread) {
      watched.telling = .silent(fingerprint: nil)
      return false
    }
    if let patience = process.postpones(watched, hang, now: now) {
      watched.telling = .postponed(until: now &+ patience)
      return false
    }
    guard
      let (finding, picture) = process.finding(
        of: watched, hang, in: report.process, hasEnded: false, now: now)
    else { return false }
    guard process.main.told[finding.fingerprint] == nil else {
      watched.telling = .silent(fingerprint: finding.fingerprint)
      return false
    }
    add([finding], picture, of: process)
    let index = report.findings.count - 1
    watched.telling = .told(index)
    process.main.told[finding.fingerprint] = MainWatch.Told(
      finding: index, seconds: Double(hang.duration) / 1e9)
    return true
  }

  private func close(
    _ watched: MainWatch.Watched, _ hang: HangTracker.Hang, _ process: RunProcess, now: UInt64
  ) -> Bool {
    let seconds = Double(hang.duration) / 1e9
    switch watched.telling {
    case .silent(let fingerprint):
      guard let fingerprint else { return false }
      process.main.told[fingerprint]?.count += 1
      process.main.told[fingerprint]?.seconds += seconds
      return false
    case .told(let index):
      guard
        let (finding, picture) = process.finding(
          of: watched, hang, in: report.process, hasEnded: true, now: now)
      else { return false }
      replace(index, by: finding, picture, of: process)
      process.main.told[finding.fingerprint]?.seconds = seconds
      return true
    // What kept it from being told was never more than that.
    case .untold, .postponed: return false
    }
  }

  private func isInDeadlock(_ tid: KernelThreadID?) -> Bool {
    let told = Set(report.findings.filter { $0.kind == .deadlock }.flatMap(\.threads))
    return report.threads.contains { told.contains($0.id) && $0.tid == tid?.rawValue }
  }
}

extension RunProcess {
  /// Copies the stack of the thread that should make progress, and asks the kernel what it has had.
  func sample(_ watched: MainWatch.Watched, now: UInt64) {
    guard let tid = watched.thread, let use = ask(tid, watched.samples, now: now),
      use.state != UInt8(ascii: "T"), use.state != UInt8(ascii: "t")
    else { return }
    if let captured = capturedStack(tid) { watched.samples.add(captured) }
    if let turn = arena.mainLoop.busySince {
      main.check(watched, turn: turn) { assembler(alive: true) }
    }
  }

  /// For how many nanoseconds a hang is not told yet: it may be a deadlock that needs a second look;
  /// or nobody gives the thread a processor, as happens to any program on a machine with too much to
  /// do.
  func postpones(
    _ watched: MainWatch.Watched, _ hang: HangTracker.Hang, now: UInt64
  ) -> UInt64? {
    guard hang.duration < Self.longestPostponement else { return nil }
    let shares = watched.samples.shares
    if let shares, shares.delay > shares.run, shares.delay >= 0.4,
      hang.duration < Self.starvation
    {
      return Self.starvation - hang.duration
    }
    guard shares.map({ $0.run < 0.5 }) ?? true, let tid = watched.thread else { return nil }
    let look = watch.look(.whole, now: now)
    let stuck = WaitForGraph(look.snapshot).deadlocks().flatMap { deadlock in
      deadlock.edges.map(\.thread) + deadlock.victims
    }
    return stuck.contains { look.thread($0).tid == tid } ? Self.secondThought : nil
  }
  private static let secondThought: UInt64 = 200_000_000
  private static let starvation: UInt64 = 1_000_000_000
  /// A deadlock would have been told by then.
  private static let longestPostponement: UInt64 = 12_000_000_000

  /// What is to be told of a hang, in the numbers of the picture; nil where that comes too late.
  ///
  /// What the threads do comes first, for names take long to find. Where it hangs again and again,
  /// they are not all stopped each time.
  func finding(
    of watched: MainWatch.Watched, _ hang: HangTracker.Hang, in program: WatchedProcess,
    hasEnded: Bool, now: UInt64
  ) -> (Finding, Picture)? {
    let samples = watched.samples
    var look: Look?
    var stacks: [KernelThreadID: CapturedThread] = [:]
    var goesOn = false
    if !hasEnded {
      let seen = wholeLook(now: now)
      if samples.fingerprint != nil || main.mayStop(now: now) { stacks = capturedStacks(seen) }
      goesOn = main.goesOn(watched, since: hang.since, now: now)
      // What it waited for it has just been given: it is about to go on.
      let waits = seen.snapshot.threads.contains {
        $0.wait != nil && seen.thread($0.id).tid == watched.thread
      }
      if samples.activity.kind == .waiting, !waits, !samples.hasLeftWait {
        samples.hasLeftWait = true
        return nil
      }
      samples.hasLeftWait = false
      let isThere = seen.threads.contains { $0.isAlive && $0.tid == watched.thread }
      guard isThere, goesOn || samples.fingerprint == nil else { return nil }
      look = seen
    }
    let assembler = assembler(alive: true)
    var limits: [String] = []
    if let look {
      let picture = picture(of: look, stacks: stacks, assembler: assembler, alive: true)
      (samples.threads, samples.resources) = (picture.threads, picture.resources)
      samples.thread = watched.thread
      limits = picture.limits
    }
    let thread = samples.threads.first {
      $0.kind ?? .thread == .thread && $0.tid == samples.thread?.rawValue
    }
    if !hasEnded {
      samples.activity = activity(
        samples.thread, goesOn ? thread : nil, watched.subject, samples)
    }
    let maker = HangFinding(
      threads: samples.threads, resources: samples.resources, process: program)
    let finding = maker.finding(
      of: .init(name: watched.subject.name, thread: thread?.id),
      seconds: Double(hang.duration) / 1e9, began: UTCTime.string(monotonic: hang.since),
      hasEnded: hasEnded, activity: samples.activity, samples: samples.fold(assembler),
      fingerprint: samples.fingerprint)
    samples.fingerprint = finding.fingerprint
    return (
      finding,
      Picture(threads: samples.threads, resources: samples.resources, limits: limits)
    )
  }
}
