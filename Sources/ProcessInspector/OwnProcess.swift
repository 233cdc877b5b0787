internal import CHangcheck
internal import Glibc
package import HangReport
internal import WaitForGraph

/// This process, looked at by a thread of its own: the arena of the drop-in types, through the same
/// watch, graph and report as another process's. Confined to the thread that made it, which no
/// report mentions.
package final class OwnProcess {
  let arena: Arena
  let watch: DeadlockWatch
  private let lockUse: LockUseWatch
  private let orders: OrderWatch
  let inversions: InversionWatch
  let pools: PoolWatch
  let runLoops: RunLoopWatch
  /// Those that have lasted for the threshold, as they stood then.
  var openInversions: [(opened: InversionWatch.Opened, page: OwnPage)] = []
  var toldInversions: Set<String> = []
  /// Of blocking calls in tasks: by fingerprint and severity.
  var toldBlocking: Set<String> = []
  let livelocks: LivelockWatch
  var toldLivelocks: Set<String> = []
  /// The addresses of what was in each deadlock that was told.
  private var deadlocked: [Set<UInt64>] = []
  let files: ProcessFiles
  let memory: ProcessMemory
  let capture = SignalCapture()
  let reader: ProcReader
  let observer: KernelThreadID
  /// Threads of handlers.
  var leftOut: [UInt32] = []
  /// From when on a wait is told that no deadlock explains.
  package var waitThreshold = Duration.seconds(10)
  /// From when on a priority inversion is told.
  package var inversionThreshold = Duration.milliseconds(100)

  /// Where there is no memory for an arena nothing is on record, and hangs are told all the same;
  /// nil where there is none at all.
  package init?() {
    guard let own = hck_arena_get() ?? Self.emptyArena() else { return nil }
    arena = Arena(own: own)
    let pid = ProcessID(Int32(bitPattern: own.pointee.pid))
    files = ProcessFiles(pid)
    memory = ProcessMemory(pid)
    reader = ProcReader(pid)
    watch = DeadlockWatch(pid: pid, arena: arena)
    lockUse = LockUseWatch(arena: arena, files: files, memory: memory)
    orders = OrderWatch(arena: arena)
    inversions = InversionWatch(watch)
    pools = PoolWatch(watch)
    runLoops = RunLoopWatch(watch)
    livelocks = LivelockWatch(watch)
    observer = KernelThreadID(Int32(bitPattern: hck_gettid()))
    watch.ignored = [observer]
    watch.thrift = 10
    watch.timesOthersRan = { Self.switches(0) - Self.switches(1) }
  }

  /// Context switches of the process (RUSAGE_SELF, 0) or of the calling thread (RUSAGE_THREAD, 1).
  private static func switches(_ who: __rusage_who_t) -> Int {
    var usage = rusage()
    getrusage(who, &usage)
    return usage.ru_nvcsw + usage.ru_nivcsw
  }

  private static func emptyArena() -> UnsafeMutablePointer<hck_arena>? {
    let size = Int(HCK_FIRST_SLOT) + Int(HCK_SLOT_BYTES)
    guard
      let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      memory != MAP_FAILED
    else { return nil }
    let arena = memory.bindMemory(to: hck_arena.self, capacity: 1)
    arena.pointee.size = UInt64(size)
    arena.pointee.pid = UInt32(bitPattern: getpid())
    return arena
  }

  /// Loads what unwinding needs, while nobody hangs inside the loader's lock.
  package static func prepare() {
    _ = try? Unwinder(images: ImageMap([]), memory: ProcessMemory(ProcessID(0)))
  }

  /// Monotonic nanoseconds, as `tick` wants them.
  package static var now: UInt64 { hck_monotonic_ns() }

  /// Whether any wait is so young that it may yet turn out to be a deadlock.
  package func seesYoungWaits(now: UInt64) -> Bool { watch.seesYoungWaits(now: now) }

  /// Looks once; the report of the deadlocks that became certain and of what threads said of
  /// themselves, each of which is told once. Those threads wait until the next look.
  package func tick(now: UInt64) -> HangReport? {
    // The recorder's slots are read while their threads write them, which is meant so
    // (hck_layout.h).
    hck_sanitizer_ignore_begin()
    defer { hck_sanitizer_ignore_end() }
    arena.isWatched = true
    arena.setClock(milliseconds: UInt32(truncatingIfNeeded: now / 1_000_000))
    for alarm in unsettled { arena.settle(alarm) }
    var confirmed = watch.tick(now: now)
    if confirmed.isEmpty { confirmed = watch.forsaken(now: now) }
    unsettled = arena.takeAlarms() + lockUse.tick(now: now) + watch.takeNeverLeft()
    var said = unsettled.filter { isNews($0, now: now) }
    if confirmed.isEmpty { confirmed = circles(&said, now: now) }
    let long = confirmed.isEmpty ? newLongWaits(now: now) : []
    // All deadlocks of one tick come from the same look.
    guard
      let look = confirmed.first?.look
        ?? (said.isEmpty && long.isEmpty ? nil : watch.look(atWaitsIn: long, now: now))
    else { return nil }
    let alive = look.threads.filter { $0.isAlive && $0.kind == .thread }.map(\.tid)
    let waiting = look.threads.filter { $0.record.map { long.contains($0.slot) } ?? false }
    let activities = watch.activities(of: waiting.map(\.id), in: look)
    let stacks = captureStacks(alive, look)
    let assembler = ReportAssembler(files: files, memory: memory, arena: arena, isRoot: true)
    var alarms = AlarmReport(
      look: look, assembler: assembler, memory: memory, stacks: stacks,
      threads: assembler.threads(look, stacks: stacks),
      resources: assembler.resources(look))
    for alarm in said { alarms.add(alarm) }
    for (deadlock, _) in alarms.deadlocks { watch.markTold(deadlock, look) }
    var report = HangReport(
      tool: .current, mode: .inProcess,
      process: WatchedProcess(
        pid: files.pid.rawValue, executable: files.executable(), arguments: files.arguments()),
      threads: alarms.threads,
      resources: ReportAssembler.named(alarms.resources, by: alarms.threads))
    let resources = confirmed.flatMap(\.deadlock.edges).map(\.resource)
    let maker = DeadlockFinding(
      threads: report.threads, resources: report.resources, process: report.process,
      history: assembler.history(resources, look))
    let misuses = MisuseFinding(
      threads: report.threads, resources: report.resources, process: report.process)
    let races = DataRaceFinding(
      threads: report.threads, resources: report.resources, process: report.process)
    let deadlocks = confirmed.map(\.deadlock) + alarms.deadlocks.map(\.deadlock)
    report.findings =
      confirmed.map { maker.finding(for: $0.deadlock, isGuess: $0.isGuess) }
      + alarms.deadlocks.map { maker.finding(for: $0.deadlock) }
      + alarms.misuses.map { misuses.finding(for: $0) }
      + alarms.races.map { races.finding(for: $0) }
    for deadlock in deadlocks { noteTold(deadlock, look) }
    for finding in report.findings where finding.kind == .deadlock {
      deadlocked.append(
        Set(
          report.resources.filter { finding.resources.contains($0.id) }.map(\.address.rawValue)))
    }
    report.findings += longWaits(waiting, look, report, assembler, activities)
    guard !report.findings.isEmpty else { return nil }
    let named = Set(report.findings.flatMap { $0.threads + $0.cycle.compactMap(\.ownedBy) })
    report.threads.removeAll { $0.kind ?? .thread != .thread && !named.contains($0.id) }
    let doubts = confirmed.filter(\.isGuess).map { maker.doubt($0.deadlock) }
    let limits = (limits(assembler, missing: alive.count { stacks[$0] == nil }) ?? []) + doubts
    report.limits = limits.isEmpty ? nil : limits
    return report
  }

  func limits(_ assembler: ReportAssembler, missing: Int) -> [String]? {
    var limits = assembler.limits + capture.limits
    if missing > 0 && capture.limits.isEmpty {
      limits.append(
        "\(missing) threads block signals or did not answer, so their stacks are not known")
    }
    return limits.isEmpty ? nil : limits
  }

  /// The report of lock orders that could deadlock and were not told before; `isLast`: the process
  /// ends.
  package func orderReport(now: UInt64, isLast: Bool) -> HangReport? {
    hck_sanitizer_ignore_begin()
    defer { hck_sanitizer_ignore_end() }
    let cycles = orders.tick(now: now, isLast: isLast).filter { cycle in
      !deadlocked.contains { cycle.locks.isSubset(of: $0) }
    }
    guard !cycles.isEmpty else { return nil }
    var page = OrderPage(
      assembler: ReportAssembler(files: files, memory: memory, arena: arena, isRoot: true))
    var report = HangReport(
      tool: .current, mode: .inProcess,
      process: WatchedProcess(
        pid: files.pid.rawValue, executable: files.executable(), arguments: files.arguments()))
    report.findings = page.findings(of: cycles, process: report.process).map(\.finding)
      .filter(orders.isNews)
    guard !report.findings.isEmpty else { return nil }
    (report.threads, report.resources) = (page.threads, page.resources)
    let limits = page.assembler.limits + orders.limits
    report.limits = limits.isEmpty ? nil : limits
    return report
  }

  /// Told by the report that the last look returned.
  private(set) var unsettled: [RecordedAlarm] = []

  /// Whether a thread stands still until the last report is told.
  package var isAwaited: Bool { unsettled.contains(where: \.waits) }

  /// How many times threads have said something of themselves.
  package static var alarmsRaised: UInt32 {
    hck_arena_get().map { hck_load32(&$0.pointee.alarms_raised) } ?? 0
  }

  private func isNews(_ alarm: RecordedAlarm, now: UInt64) -> Bool {
    guard lockUse.isNews(alarm) else { return false }
    return alarm.kind != HCK_ALARM_AT_EXIT.rawValue || watch.confirmsAtExit(alarm, now: now)
  }

  /// Operations that a thread has found to wait for each other, as the graph sees them. What it
  /// does not see stays among what is said.
  private func circles(_ said: inout [RecordedAlarm], now: UInt64) -> [ConfirmedDeadlock] {
    let isCircle = { (alarm: RecordedAlarm) in alarm.kind == HCK_ALARM_OPERATION_CYCLE.rawValue }
    let operations = Set(said.filter(isCircle).map(\.key.address))
    guard !operations.isEmpty else { return [] }
    let (found, members) = watch.circles(of: operations, now: now)
    said.removeAll { isCircle($0) && members.contains($0.key.address) }
    return found
  }

  // MARK: - Long waits

  private struct ToldWait: Hashable {
    var tid: KernelThreadID
    var key: ResourceKey
  }
  /// Of deadlocks: that they last is no news.
  private var toldWaits: Set<ToldWait> = []

  private func noteTold(_ deadlock: Deadlock, _ look: Look) {
    for id in deadlock.edges.map(\.thread) + deadlock.victims
    where id.rawValue <= look.threads.count {
      let record = look.thread(id).record
      if let record, let key = record.wait?.key {
        toldWaits.insert(ToldWait(tid: record.tid, key: key))
      }
    }
  }

  /// That it lasts is no news any more.
  func noteTold(_ thread: SeenThread) {
    guard let record = thread.record, let key = record.wait?.key else { return }
    toldWaits.insert(ToldWait(tid: record.tid, key: key))
  }

  func wasTold(_ record: RecordedThread) -> Bool {
    record.wait.map { toldWaits.contains(ToldWait(tid: record.tid, key: $0.key)) } ?? false
  }

  private func newLongWaits(now: UInt64) -> Set<UInt32> {
    watch.newLongWaits(now: now, threshold: waitThreshold).filter { slot in
      guard let record = arena.thread(slot), let key = record.wait?.key else { return false }
      return !toldWaits.contains(ToldWait(tid: record.tid, key: key))
    }
  }

  private func longWaits(
    _ waiting: [SeenThread], _ look: Look, _ report: HangReport, _ assembler: ReportAssembler,
    _ activities: [ThreadID: HangActivity]
  ) -> [Finding] {
    let resources = waiting.compactMap { look.snapshot.threads[$0.id.rawValue - 1].wait?.resource }
    let maker = LongWaitFinding(
      threads: report.threads, resources: report.resources, process: report.process,
      history: assembler.history(resources, look))
    return waiting.compactMap { seen in
      let facts = watch.facts(of: seen.id, in: look, activities, assembler)
      return report.threads.first { $0.id == seen.id }.flatMap { maker.finding(for: $0, facts) }
    }
  }
}
