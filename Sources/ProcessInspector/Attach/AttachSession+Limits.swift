internal import CHangcheck
internal import HangReport
internal import WaitForGraph

// What a report of a process that was attached to cannot know.
extension AttachSession {
  func noteLimits() {
    if arena.isBare {
      limits.append(
        "where locks were taken: that is on record only in a program that was started under hangcheck"
          + " or uses its drop-ins")
    }
    if hasNoLibC {
      limits.append(
        "what threads wait for in the C library: no symbols of it are there (a static or stripped"
          + " program)")
    }
    if !files.root.isEmpty {
      limits.append(
        "lines of code whose debug information lies outside of the files that the process sees: it"
          + " lives in another mount namespace")
    }
    if files.innerID(KernelThreadID(pid.rawValue)) != KernelThreadID(pid.rawValue) {
      limits.append(
        "the numbers of threads as the process itself knows them: it lives in another pid namespace,"
          + " and this report has those of this one")
    }
    if stopped != nil {
      limits.append(
        "what it would do next: all of it was stopped, by "
          + (stopped == .signal
            ? "a signal; `kill -CONT \(pid.rawValue)` lets it go on" : "what traces it"))
    }
  }

  /// Whether a thread was stopped by a signal, which stops all of them, or by who traces it.
  static func stop(_ proc: ProcReader, _ tid: KernelThreadID) -> WatchedProcess.Stop? {
    switch proc.state(tid) {
    case UInt8(ascii: "T"): .signal
    case UInt8(ascii: "t"): .tracer
    default: nil
    }
  }

  func allLimits(
    _ assembler: ReportAssembler, _ look: Look, _ stacks: [KernelThreadID: CapturedThread]
  ) -> [String]? {
    var all = limits + assembler.limits
    let missing = files.threads().count { stacks[$0] == nil && files.isAlive($0) }
    for resource in look.resources where resource.kind == HCK_RWLOCK.rawValue {
      guard let lock = ReadWriteLockMemory(memory, resource.address), lock.writer == nil,
        lock.readers > 0, arena.isBare
      else { continue }
      all.append(
        "who has read-write lock 0x\(String(resource.address, radix: 16)) for reading: its memory"
          + " counts \(lock.readers) and names nobody")
    }
    let unnamed = look.snapshot.threads.count { thread in
      thread.wait.map { look.resource($0.resource).kind } == DerivedKind.futex
    }
    if unnamed > 0, !hasNoLibC {
      all.append(
        "what \(unnamed == 1 ? "1 thread waits" : "\(unnamed) threads wait") for: no known function stands on their stacks, as far as these"
          + " can be followed")
    }
    if spinning > 0 {
      all.append(
        "who has the spin locks that \(spinning == 1 ? "1 thread asks" : "\(spinning) threads ask") for: their memory names nobody"
      )
    }
    if files.core != nil { all += elsewhere }
    if missing > 0 {
      let why =
        !setup.stops
        ? "they ran, and --no-stop lets them run"
        : capture.refusal ?? "they ran: a stop might have cut short what they did"
      all.append("the stacks of \(missing == 1 ? "1 thread" : "\(missing) threads") (\(why))")
    }
    return all.isEmpty ? nil : all
  }
}

extension AttachSession {
  /// What lies in other processes, which a core is not of.
  private var elsewhere: [String] {
    let waits = [SystemCalls.wait4, SystemCalls.waitid]
    let forChildren = waitForProcess.union(calls.filter { waits.contains($0.value.number) }.keys)
    return forChildren.sorted().map { tid in
      "what the child process does that thread \(tid.rawValue) waits for: look at that one, or at its"
        + " core"
    }
  }

  /// Lets threads go on that a look on this thread had asked to stop, and that have stopped since.
  package static func letGo() { StackCapture(child: nil).releaseStrays() }
}
