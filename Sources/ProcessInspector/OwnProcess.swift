internal import CHangcheck
package import HangReport
internal import WaitForGraph

/// This process, looked at by a thread of its own: the arena of the drop-in types, through the same
/// watch, graph and report as another process's. Confined to the thread that made it, which no
/// report mentions.
package final class OwnProcess {
  private let arena: Arena
  private let watch: DeadlockWatch
  private let lockUse: LockUseWatch
  private let files: ProcessFiles
  private let memory: ProcessMemory
  private let capture = SignalCapture()
  private let observer: KernelThreadID
  /// From when on a wait is told that no deadlock explains.
  package var waitThreshold = Duration.seconds(10)

  /// nil while nothing has been recorded in this process.
  package init?() {
    guard let own = hck_arena_get() else { return nil }
    arena = Arena(own: own)
    let pid = ProcessID(Int32(bitPattern: own.pointee.pid))
    files = ProcessFiles(pid)
    memory = ProcessMemory(pid)
    watch = DeadlockWatch(pid: pid, arena: arena)
    lockUse = LockUseWatch(arena: arena, files: files, memory: memory)
    observer = KernelThreadID(Int32(bitPattern: hck_gettid()))
    watch.ignored = [observer]
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
    let confirmed = watch.tick(now: now)
    unsettled = arena.takeAlarms() + lockUse.tick(now: now) + watch.takeNeverLeft()
    let long = confirmed.isEmpty ? watch.newLongWaits(now: now, threshold: waitThreshold) : []
    // All deadlocks of one tick come from the same look.
    guard
      let look = confirmed.first?.look
        ?? (unsettled.isEmpty && long.isEmpty ? nil : watch.wholeLook(now: now))
    else { return nil }
    let alive = look.threads.filter { $0.isAlive && $0.kind == .thread }.map(\.tid)
    let stacks = captureStacks(alive, look)
    let assembler = ReportAssembler(files: files, memory: memory, arena: arena, isRoot: true)
    var alarms = AlarmReport(
      look: look, assembler: assembler, memory: memory, stacks: stacks,
      threads: assembler.threads(look, stacks: stacks),
      resources: assembler.resources(look))
    for alarm in unsettled { alarms.add(alarm) }
    for (deadlock, _) in alarms.deadlocks { watch.markTold(deadlock, look) }
    var report = HangReport(
      tool: .current, mode: .inProcess,
      process: WatchedProcess(
        pid: files.pid.rawValue, executable: files.executable(), arguments: files.arguments()),
      threads: alarms.threads, resources: alarms.resources)
    let resources = confirmed.flatMap(\.deadlock.edges).map(\.resource)
    let maker = DeadlockFinding(
      threads: report.threads, resources: report.resources, process: report.process,
      history: assembler.history(resources, look))
    let misuses = MisuseFinding(
      threads: report.threads, resources: report.resources, process: report.process)
    let deadlocks = confirmed.map(\.deadlock) + alarms.deadlocks.map(\.deadlock)
    report.findings =
      deadlocks.map { maker.finding(for: $0) } + alarms.misuses.map { misuses.finding(for: $0) }
    report.findings += longWaits(in: long, look, report, assembler)
    guard !report.findings.isEmpty else { return nil }
    let named = Set(report.findings.flatMap { $0.threads + $0.cycle.compactMap(\.ownedBy) })
    report.threads.removeAll { $0.kind ?? .thread != .thread && !named.contains($0.id) }
    var limits = assembler.limits + capture.limits
    let missing = alive.filter { stacks[$0] == nil }.count
    if missing > 0 && capture.limits.isEmpty {
      limits.append(
        "\(missing) threads block signals or did not answer, so their stacks are not known")
    }
    report.limits = limits.isEmpty ? nil : limits
    return report
  }
  /// Told by the report that the last look returned.
  private var unsettled: [RecordedAlarm] = []

  private func longWaits(
    in slots: Set<UInt32>, _ look: Look, _ report: HangReport, _ assembler: ReportAssembler
  ) -> [Finding] {
    let waiting = look.threads.filter { seen in
      seen.record.map { slots.contains($0.slot) } ?? false
    }
    let resources = waiting.compactMap { look.snapshot.threads[$0.id.rawValue - 1].wait?.resource }
    let maker = LongWaitFinding(
      threads: report.threads, resources: report.resources, process: report.process,
      history: assembler.history(resources, look))
    return waiting.compactMap { seen in
      report.threads.first { $0.id == seen.id }.flatMap { maker.finding(for: $0) }
    }
  }

  /// Sleepers are left to sleep; all others are asked; who does not answer is known by where it
  /// waits.
  private func captureStacks(
    _ alive: [KernelThreadID], _ look: Look
  ) -> [KernelThreadID: CapturedThread] {
    let sleeping = SleeperCapture(files: files, memory: memory)
    let sleepers = sleeping.sleepers(among: alive)
    var stacks = capture.capture(alive.filter { sleepers[$0] == nil }, files: files)
    for thread in look.threads
    where thread.isAlive && thread.kind == .thread && stacks[thread.tid] == nil {
      stacks[thread.tid] =
        stackFromWait(thread, look) ?? stackFromAlarm(thread) ?? sleeping.capture(thread.tid)
    }
    return stacks
  }

  /// The stack of a thread that cannot be asked (libdispatch's workers block most signals): from
  /// where the drop-in that it waits in was called, for it is still in there.
  private func stackFromWait(_ thread: SeenThread, _ look: Look) -> CapturedThread? {
    guard let record = thread.record, record.waitFrame != 0,
      look.snapshot.threads.contains(where: { $0.id == thread.id && $0.wait != nil }),
      let frame = words(at: record.waitFrame, 2)
    else { return nil }
    // At the call itself, not behind it: that may be another line.
    let registers = Registers(rip: frame[1] &- 1, rsp: record.waitFrame &+ 16, rbp: frame[0])
    return CapturedThread(
      tid: thread.tid, registers: registers, stack: StackCopy(base: registers.rsp, bytes: []))
  }

  /// The same of a thread that stands still for its alarm: in a timed wait, which no signal is to
  /// cut short.
  private func stackFromAlarm(_ thread: SeenThread) -> CapturedThread? {
    let alarm = unsettled.first { $0.waits && $0.tid == thread.tid }
    guard let site = alarm?.site else { return nil }
    let registers = Registers(
      rip: site.returnAddress &- 1, rsp: site.stackPointer, rbp: site.framePointer)
    return CapturedThread(
      tid: thread.tid, registers: registers, stack: StackCopy(base: registers.rsp, bytes: []))
  }

  private func words(at address: UInt64, _ count: Int) -> [UInt64]? {
    var words = [UInt64](repeating: 0, count: count)
    let got = words.withUnsafeMutableBytes { memory.read(address, into: $0) }
    return got == count * 8 ? words : nil
  }
}
