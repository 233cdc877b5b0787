internal import CHangcheck
internal import Glibc
internal import HangReport
internal import WaitForGraph

/// One process that reports to `hangcheck run`: the program, or a child that it started.
final class RunProcess: HangSource {
  let pid: ProcessID
  let arena: Arena
  let watch: DeadlockWatch
  let lockUse: LockUseWatch
  let orders: OrderWatch
  let inversions: InversionWatch
  let pools: PoolWatch
  let family: FamilyWatch
  let main: MainWatch
  let reader: ProcReader
  let runLoops: RunLoopWatch
  let livelocks: LivelockWatch
  /// Those that have lasted for the threshold, as they stood then.
  var openInversions: [(opened: InversionWatch.Opened, picture: Picture)] = []
  let files: ProcessFiles
  let memory: ProcessMemory
  /// Alarms that were taken and are not told yet.
  var unsettled: [RecordedAlarm] = []
  /// Whether a group or semaphore that somebody waits for while the program ends can be left or
  /// signalled by nothing that lives; without it none is told. The process stands still meanwhile.
  var confirmsAtExit: ((RecordedAlarm, Look) -> Bool)?
  let words: SanitizerWords
  private let capture: StackCapture
  private let pidfd: Int32
  let isRoot: Bool

  init?(pid: ProcessID, descriptor: Int32, isRoot: Bool) {
    guard let arena = Arena(descriptor: descriptor) else { return nil }
    self.pid = pid
    self.arena = arena
    self.isRoot = isRoot
    capture = StackCapture(child: isRoot ? KernelThreadID(pid.rawValue) : nil)
    files = ProcessFiles(pid)
    words = SanitizerWords(arena)
    memory = ProcessMemory(pid)
    watch = DeadlockWatch(pid: pid, arena: arena)
    lockUse = LockUseWatch(arena: arena, files: files, memory: memory)
    orders = OrderWatch(arena: arena)
    inversions = InversionWatch(watch)
    pools = PoolWatch(watch)
    family = FamilyWatch(pid)
    reader = ProcReader(pid)
    main = MainWatch(watch, reader: reader)
    runLoops = RunLoopWatch(watch)
    livelocks = LivelockWatch(watch)
    pidfd = hck_pidfd_open(pid.rawValue)
    watch.stopper = capture
    watch.pidfd = pidfd
  }

  deinit { if pidfd >= 0 { close(pidfd) } }

  /// False once it has exited, also while nobody has waited for it.
  var isAlive: Bool {
    guard pidfd >= 0 else { return kill(pid.rawValue, 0) == 0 }
    var entry = pollfd(fd: pidfd, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) == 0
  }

  /// Deadlocks that became certain, each once. `now`: CLOCK_MONOTONIC in nanoseconds.
  func tick(now: UInt64) -> [ConfirmedDeadlock] {
    arena.setClock(milliseconds: UInt32(truncatingIfNeeded: now / 1_000_000))
    if let own = words.sanitizerThread { watch.ignored = [own] }
    capture.releaseStrays()
    if now &- mappedAt > mappingInterval {
      // For the case that the process is killed: its libraries are known soon after its start,
      // plugins later.
      let mappings = files.mappings()
      // Of a process that has ended they are empty.
      if !mappings.isEmpty {
        lastMappings = mappings
        arena.setSeen()
      }
      mappedAt = now
      mappingInterval = min(mappingInterval * 2, 30_000_000_000)
    }
    // With thousands of threads a look costs milliseconds: a twentieth of a processor is enough, as
    // long as a deadlock is told within some tenths of a second.
    guard now >= restsUntil else { return [] }
    var confirmed = watch.tick(now: now)
    if confirmed.isEmpty { confirmed = watch.forsaken(now: now) }
    let end = hck_monotonic_ns()
    restsUntil = end &+ min((end &- now) &* 20, 150_000_000)
    return confirmed
  }
  private var restsUntil: UInt64 = 0
  private var lastMappings: [Mapping] = []
  private var mappedAt: UInt64 = 0
  private var mappingInterval: UInt64 = 50_000_000

  /// What was on record when the process was killed.
  func lastPicture(now: UInt64) -> Picture {
    picture(
      of: watch.lastLook(now: now), stacks: [:], assembler: assembler(alive: false), alive: false)
  }

  /// What a report says of this process at this moment.
  struct Picture {
    var threads: [Thread]
    var resources: [Resource]
    var limits: [String]
    /// What was done to the resources without owners.
    var history: [ResourceID: [ResourceEvent]] = [:]
    /// What was seen of the long waits among its threads.
    var waits: [ThreadID: LongWaitFacts] = [:]
  }

  /// `deadlocks`, `waitsOf`: whose resources' history is wanted.
  func picture(
    of look: Look, deadlocks: [Deadlock] = [], waitsOf threads: [ThreadID] = []
  ) -> Picture {
    let activities = watch.activities(of: threads, in: look)
    let stacks = capturedStacks(look)
    let assembler = assembler(alive: true)
    var picture = picture(of: look, stacks: stacks, assembler: assembler, alive: true)
    let waits = look.snapshot.threads.filter { threads.contains($0.id) }.compactMap(\.wait)
    picture.history = assembler.history(
      deadlocks.flatMap(\.edges).map(\.resource) + waits.map(\.resource), look)
    for id in threads where look.snapshot.threads[id.rawValue - 1].wait != nil {
      picture.waits[id] = watch.facts(of: id, in: look, activities, assembler)
    }
    return picture
  }

  /// Of a process that has ended, what was last known of its libraries stands in.
  func assembler(alive: Bool) -> ReportAssembler {
    let mappings = alive ? files.mappings() : []
    if !mappings.isEmpty { lastMappings = mappings }
    return ReportAssembler(
      files: files, memory: memory, arena: arena, isRoot: isRoot,
      mappings: mappings.isEmpty ? lastMappings : nil)
  }

  /// The stack of one thread, stopped for that at most once while it stays in one system call, and
  /// not at all in one that a stop would cut short.
  func capturedStack(_ tid: KernelThreadID) -> CapturedThread? {
    let timesRun = files.timesRun(tid)
    if let last = lastCaptured, last.thread.tid == tid, last.timesRun == timesRun, timesRun != nil,
      files.call(tid) != nil
    {
      return last.thread
    }
    let captured = capturedStacks([tid])[tid]
    // A stop counts as a run.
    lastCaptured = captured.map { (files.timesRun(tid), $0) }
    return captured
  }
  private var lastCaptured: (timesRun: UInt64?, thread: CapturedThread)?

  func capturedStacks(_ look: Look) -> [KernelThreadID: CapturedThread] {
    capturedStacks(look.threads.filter { $0.isAlive && $0.kind == .thread }.map(\.tid))
  }

  /// Of threads in calls that a stop would cut short, what memory alone tells.
  private func capturedStacks(_ threads: [KernelThreadID]) -> [KernelThreadID: CapturedThread] {
    let safety = StopSafety(proc: reader)
    let delicate = Set(
      threads.filter { reader.systemCall($0)?.call.map(safety.goesOnUnchanged) == false })
    var stacks = capture.capture(threads.filter { !delicate.contains($0) }, memory: memory)
    let sleepers = SleeperCapture(files: files, memory: memory)
    for tid in delicate { stacks[tid] = sleepers.capture(tid) }
    return stacks
  }

  func picture(
    of look: Look, stacks: [KernelThreadID: CapturedThread], assembler: ReportAssembler,
    alive: Bool
  ) -> Picture {
    let threads = assembler.threads(look, stacks: stacks)
    var limits = assembler.limits
    let missing = look.threads.count { $0.isAlive && $0.kind == .thread } - stacks.count
    if !alive {
      limits.append("the process is gone: where its threads stood cannot be read any more")
    } else if let refusal = capture.refusal, missing > 0 {
      limits.append("the stacks of \(missing) threads could not be read (\(refusal))")
    }
    return Picture(
      threads: threads, resources: ReportAssembler.named(assembler.resources(look), by: threads),
      limits: limits)
  }

  /// What it runs now.
  var program: WatchedProcess {
    WatchedProcess(
      pid: pid.rawValue, executable: files.executable(), arguments: files.arguments())
  }

  func wholeLook(now: UInt64) -> Look { watch.wholeLook(now: now) }
}
