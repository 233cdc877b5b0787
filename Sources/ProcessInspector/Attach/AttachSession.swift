internal import CHangcheck
internal import Glibc
package import HangReport
internal import WaitForGraph

/// What `hangcheck attach` asks for.
package struct AttachSetup: Sendable {
  package var tool: HangReport.Tool
  /// From when on a wait is worth a note.
  package var waitThreshold: Duration
  /// Whether the process may be stopped for a moment, to copy its stacks.
  package var stops: Bool
  /// Whether other processes are looked at which it waits for.
  package var follows: Bool
  package init(
    tool: HangReport.Tool, waitThreshold: Duration, stops: Bool, follows: Bool = true
  ) {
    self.follows = follows
    self.tool = tool
    self.waitThreshold = waitThreshold
    self.stops = stops
  }
}

/// Looks at a process that was not started by us, and leaves it as it was.
///
/// It is stopped once, for some milliseconds; all else is read while it runs. What looks like a
/// deadlock is looked at again. Confined to the thread that made it: ptrace demands it.
package final class AttachSession {
  let setup: AttachSetup
  let pid: ProcessID
  let files: ProcessFiles
  let memory: ProcessMemory
  let proc: ProcReader
  let arena: Arena
  let watch: DeadlockWatch
  let capture: StackCapture
  private let pools: PoolWatch
  /// Nil where a core file is looked at.
  private let identity: ProcessIdentity?
  let hasNoLibC: Bool
  var limits: [String] = []
  /// Nanoseconds for which the process was stopped by the last look.
  package private(set) var stoppedFor: UInt64 = 0

  /// How long threads may take to be back in the calls that the stop interrupted, and how much longer
  /// for each of them.
  private static let returning: UInt64 = 100_000_000
  private static let returningEach: UInt64 = 500_000
  /// Between two looks that must agree.
  private static let interval: UInt64 = 25_000_000
  /// So long a look goes on while something looks like a deadlock and is not certain.
  private static let mostTime: UInt64 = 1_500_000_000
  private static let leastLooks = 4

  /// `child`: the process's first thread, where it is our own child, whose end is not taken here.
  package convenience init(
    pid: Int32, setup: AttachSetup, child: KernelThreadID? = nil
  ) throws(AttachRefusal) {
    if let refusal = AttachFacts.of(pid, stops: setup.stops).refusal { throw refusal }
    let pid = ProcessID(pid)
    try self.init(
      files: ProcessFiles(pid), memory: ProcessMemory(pid), setup: setup, child: child)
  }

  /// Looks at what is left of a process.
  package convenience init(core: CoreFile, setup: AttachSetup) throws(AttachRefusal) {
    try self.init(
      files: ProcessFiles(core), memory: ProcessMemory(core), setup: setup, child: nil)
    let unnamed = arena.isBare ? ["names of threads: a core has none"] : []
    limits = core.limits + [CoreFile.untold] + unnamed + limits
  }

  private init(
    files: ProcessFiles, memory: ProcessMemory, setup: AttachSetup, child: KernelThreadID?
  ) throws(AttachRefusal) {
    self.setup = setup
    self.files = files
    self.memory = memory
    pid = files.pid
    proc = ProcReader(files)
    identity = files.core == nil ? ProcessIdentity(proc) : nil
    guard identity != nil || files.core != nil else { throw Self.ended(pid.rawValue) }
    let images = files.images(memory)
    let pointers = ThreadPointers(images: images, memory: memory)
    let inner = files.innerID(KernelThreadID(pid.rawValue))?.rawValue ?? pid.rawValue
    guard
      let arena = Arena.copied(from: files, memory)
        ?? Arena.bare(pid: inner, tidOffset: pointers?.tidOffset)
    else {
      throw AttachRefusal(message: "there is no memory for a look at process \(pid.rawValue)")
    }
    self.arena = arena
    watch = DeadlockWatch(files: files, memory: memory, arena: arena)
    watch.pthreads = pointers?.all() ?? [:]
    capture = StackCapture(child: child)
    pools = PoolWatch(watch)
    functions = WaitingFunctions(images, executable: files.executable())
    tidOffset = pointers?.tidOffset
    hasNoLibC = !functions.hasLibC
    stopped = files.core == nil ? Self.stop(proc, KernelThreadID(pid.rawValue)) : nil
    watch.runtime.isStopped = stopped != nil
    noteLimits()
  }
  /// Why all of it stood still when it was first seen.
  let stopped: WatchedProcess.Stop?
  let functions: WaitingFunctions
  private let tidOffset: UInt64?

  private static func ended(_ pid: Int32) -> AttachRefusal {
    AttachRefusal(message: "process \(pid) ended while it was looked at")
  }

  /// Looks until two looks agree; the report of what is there.
  package func look() throws(AttachRefusal) -> HangReport {
    let stacks = prepare()
    let assembler = assembler(isRoot: true)
    var candidates: [DeadlockWatch.Identity: DeadlockWatch.Candidate] = [:]
    var look = watch.look(.whole, now: hck_monotonic_ns())
    var confirmed = watch.confirm(look, &candidates, now: hck_monotonic_ns())
    // The first look only raises suspicions. However long looks take, some must follow.
    let begun = hck_monotonic_ns()
    var looks = 1
    while !candidates.isEmpty,
      looks < Self.leastLooks || hck_monotonic_ns() &- begun < Self.mostTime
    {
      looks += 1
      usleep(UInt32(Self.interval / 1000))
      capture.releaseStrays()
      look = watch.look(.whole, now: hck_monotonic_ns())
      let more = watch.confirm(look, &candidates, now: hck_monotonic_ns())
      confirmed += more
      if !more.isEmpty { break }
    }
    if confirmed.isEmpty {
      (look, confirmed) = guesses() ?? (look, [])
    }
    var pool: PoolWatch.Exhausted?
    if confirmed.isEmpty {
      pool = pools.exhausted(
        look, rested: watch.quiet, now: hck_monotonic_ns(), threshold: setup.waitThreshold)
    }
    if confirmed.isEmpty, pool == nil, files.core == nil, let report = try familyReport() {
      return report
    }
    try checkIdentity()
    return report(confirmed, pool, pool?.look ?? confirmed.last?.look ?? look, stacks, assembler)
  }

  /// Deadlocks by who would end the waits that nobody owns: two looks must agree, of threads that have
  /// not run for a while.
  private func guesses() -> (Look, [ConfirmedDeadlock])? {
    var candidates: [DeadlockWatch.Identity: DeadlockWatch.Candidate] = [:]
    for _ in 0..<2 {
      let look = watch.lookForGivers(.kernel, now: hck_monotonic_ns())
      let found = watch.confirm(look, &candidates, now: hck_monotonic_ns())
      if !found.isEmpty { return (look, found) }
      if candidates.isEmpty { return nil }
      usleep(UInt32(Self.interval / 1000))
    }
    return nil
  }

  /// What several processes that wait for each other do, where that is a deadlock.
  private func familyReport() throws(AttachRefusal) -> HangReport? {
    guard setup.follows, let family = FamilyLook(self),
      let found = family.confirmed(inside: true)
    else { return nil }
    try checkIdentity()
    var report = family.report(found, tool: setup.tool)
    let all = (report.limits ?? []) + limits
    report.limits = all.isEmpty ? nil : all
    return report
  }

  /// Copies the stacks, and names what threads wait for.
  func prepare() -> [KernelThreadID: CapturedThread] {
    let stacks = copyStacks()
    lastStacks = stacks
    knownItems = [:]
    itemTools = nil
    watch.itemRegisters = { [weak self] tid in self?.itemRegisters(tid) ?? [] }
    name(stacks, assembler(isRoot: true))
    return stacks
  }
  private(set) var lastStacks: [KernelThreadID: CapturedThread] = [:]
  /// Threads inside of Foundation's `Process.waitUntilExit()`.
  private(set) var waitForProcess: Set<KernelThreadID> = []

  func assembler(isRoot: Bool) -> ReportAssembler {
    ReportAssembler(files: files, memory: memory, arena: arena, isRoot: isRoot)
  }

  /// Refuses what was read of two processes, or of none.
  private func checkIdentity() throws(AttachRefusal) {
    guard let identity else { return }
    guard let now = ProcessIdentity(proc), now.isSameProcess(as: identity) else {
      throw Self.ended(pid.rawValue)
    }
    if now != identity {
      throw AttachRefusal(
        message:
          "process \(pid.rawValue) executed another program while it was looked at; look again:"
          + " it is now \(files.executable())")
    }
  }

  // MARK: - Stacks

  private func copyStacks() -> [KernelThreadID: CapturedThread] {
    let threads = files.threads()
    if let core = files.core {
      calls = Dictionary(
        uniqueKeysWithValues: threads.compactMap { tid in
          proc.systemCall(tid)?.call.map { (tid, $0) }
        })
      return core.stacks()
    }
    var quiet = ThreadRest().seconds(proc, threads)
    let before = Dictionary(uniqueKeysWithValues: threads.map { ($0, proc.systemCall($0)?.call) })
    var stacks: [KernelThreadID: CapturedThread] = [:]
    if setup.stops {
      var safety = StopSafety(proc: proc)
      let unharmed = safety.unharmed(threads, before)
      stacks = capture.capture(unharmed, memory: memory, where: safety.isUnharmed)
      stoppedFor = capture.stoppedFor
      capture.releaseStrays()
      catchCallers(&stacks)
    }
    let sleepers = SleeperCapture(files: files, memory: memory)
    for tid in threads where stacks[tid] == nil { stacks[tid] = sleepers.capture(tid) }
    // Whoever stands where it stood has not run but for our stop; it takes a moment to come back.
    calls = [:]
    let patience = Self.returning &+ UInt64(threads.count) &* Self.returningEach
    let deadline = hck_monotonic_ns() &+ patience
    for (tid, call) in before {
      guard let call else {
        quiet[tid] = nil
        calls[tid] = proc.systemCall(tid)?.call
        continue
      }
      var isBack = proc.systemCall(tid)?.call?.goesOn(from: call) ?? false
      while !isBack, hck_monotonic_ns() < deadline {
        usleep(200)
        isBack = proc.systemCall(tid)?.call?.goesOn(from: call) ?? false
      }
      // The stack was copied in that call; a look believes it only of a thread that is there again.
      calls[tid] = call
      if !isBack { quiet[tid] = nil }
    }
    watch.quiet = quiet
    return stacks
  }
  /// Who asks for its own one-time initialisation again and again is in the kernel most of the time:
  /// only there its registers tell for which.
  private func catchCallers(_ stacks: inout [KernelThreadID: CapturedThread]) {
    let swiftOnce = functions.ranges(of: .swiftOnce)
    for (tid, thread) in stacks where thread.systemCall == nil {
      guard thread.mentions(swiftOnce) else { continue }
      for _ in 0..<20 {
        guard let again = capture.capture([tid], memory: memory)[tid] else { break }
        stacks[tid] = again
        if again.systemCall != nil { break }
      }
    }
  }

  /// The calls that threads were in when they were stopped.
  private(set) var calls: [KernelThreadID: SystemCall] = [:]
  /// Threads that ask for a spin lock.
  private(set) var spinning = 0
  var knownItems: [KernelThreadID: Set<UInt64>] = [:]
  /// Made once for all threads of a look: each reads all mappings.
  var itemTools: (unwinder: Unwinder?, ranges: MemoryRanges)?

  /// What the stacks tell of waits that are not on record.
  private func name(_ stacks: [KernelThreadID: CapturedThread], _ assembler: ReportAssembler) {
    guard let unwinder = assembler.unwinder else { return }
    let reader = WaitReader(memory: memory, functions: functions, tidOffset: tidOffset)
    let listed = files.threads()
    // In one namespace all ids are the same; to read each costs more than all else here.
    let isInside = files.innerID(KernelThreadID(pid.rawValue)) == KernelThreadID(pid.rawValue)
    let outer = Dictionary(
      listed.map { (isInside ? $0 : files.innerID($0) ?? $0, $0) },
      uniquingKeysWith: { first, _ in first })
    var known: [KernelThreadID: KnownWait] = [:]
    let waitUntilExit = functions.ranges(of: .waitForProcess)
    waitForProcess = []
    spinning = 0
    for (tid, thread) in stacks {
      let call = calls[tid]
      if !waitUntilExit.isEmpty, call?.number == SystemCalls.ppoll {
        let frames = unwinder.unwind(thread.registers, stack: [thread.stack], limit: 64).frames
        if frames.contains(where: { frame in waitUntilExit.contains { $0.contains(frame.pc &- 1) } }
        ) {
          waitForProcess.insert(tid)
        }
      }
      guard call == nil || call?.number == SystemCalls.futex else { continue }
      let frames = unwinder.unwind(thread.registers, stack: [thread.stack], limit: 10).frames
      known[tid] = reader.wait(
        of: thread, frames: frames, call: call,
        isAlive: { outer[$0].map(files.isAlive) ?? false })
      if call == nil, functions.innermost(frames, memory)?.function == .spin { spinning += 1 }
      known[tid]?.isStopped = stopped != nil && Self.stop(proc, tid) == stopped
    }
    watch.knownWaits = known
  }

  // MARK: - The report

  private func report(
    _ confirmed: [ConfirmedDeadlock], _ pool: PoolWatch.Exhausted?, _ look: Look,
    _ stacks: [KernelThreadID: CapturedThread], _ assembler: ReportAssembler
  ) -> HangReport {
    var process = WatchedProcess(
      pid: pid.rawValue, executable: files.executable(), arguments: files.arguments(),
      exit: files.core?.ending.map { WatchedProcess.Exit(signal: $0.signal) })
    process.stopped = stopped
    let threads = assembler.threads(look, stacks: stacks)
    let resources = ReportAssembler.named(assembler.resources(look), by: threads)
    var report = HangReport(
      tool: setup.tool, mode: files.core == nil ? .attach : .core, process: process,
      threads: threads, resources: resources)
    let edges = confirmed.flatMap(\.deadlock.edges)
    let waits = look.snapshot.threads.compactMap(\.wait?.resource)
    let history =
      arena.isBare ? [:] : assembler.history(edges.map(\.resource) + waits, look)
    let maker = DeadlockFinding(
      threads: threads, resources: resources, process: process, history: history)
    report.findings = confirmed.map { confirmed in
      var finding = maker.finding(for: confirmed.deadlock, isGuess: confirmed.isGuess)
      // That nothing else could have helped is more than a core tells, or a process that is stopped.
      if files.core != nil || stopped != nil, confirmed.deadlock.needsStandstill {
        finding.certainty = .possible
      }
      return finding
    }
    if let pool {
      let words = PoolFinding(threads: threads, resources: resources, process: process)
      report.findings.append(words.finding(for: pool.facts))
    }
    report.findings += longWaits(report, history)
    let named = Set(report.findings.flatMap { $0.threads + $0.cycle.compactMap(\.ownedBy) })
    report.threads.removeAll { $0.kind ?? .thread != .thread && !named.contains($0.id) }
    let doubts = confirmed.filter(\.isGuess).map { maker.doubt($0.deadlock) }
    let limits = doubts + (allLimits(assembler, look, stacks) ?? [])
    report.limits = limits.isEmpty ? nil : limits
    return report
  }
}

extension CapturedThread {
  /// Whether the top of its stack, or its program counter, points into some code.
  fileprivate func mentions(_ code: [Range<UInt64>]) -> Bool {
    if code.contains(where: { $0.contains(registers.rip) }) { return true }
    return stack.bytes.prefix(512).withUnsafeBytes { bytes in
      stride(from: 0, to: bytes.count - 7, by: 8).contains { at in
        let word = bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
        return code.contains { $0.contains(word) }
      }
    }
  }
}
