internal import CHangcheck
internal import HangReport
internal import WaitForGraph

/// Watches one process for timers and blocks of run loops that nobody runs, a tick at a time.
///
/// A timer is told when it has been due for long and its thread's loop is not being run, or is run in
/// a mode that does not have it. One whose thread is blocked or rests is told sooner than one whose
/// thread may yet come to run the loop. Confined to one thread.
final class RunLoopWatch {
  struct Stranded {
    var look: Look
    var thread: ThreadID
    var seconds: Double
    /// nil for a block.
    var function: UInt64?
    var isTimer: Bool
    /// Of the mode in which the loop runs; "" where that has no name that is known; nil while it is
    /// not run.
    var mode: String?
  }

  private let watch: DeadlockWatch
  private var memory: RunLoopMemory?
  private var lookedFor: UInt64 = 0
  private var lookedAt: UInt64 = 0
  private var searchedAt: UInt64 = 0
  private var cost: UInt64 = 0
  private var searchedRun: Int?
  /// Of the last search; they are read again at every tick.
  private var loops: [UInt64] = []
  private var timers: [UInt64] = []
  private var told: Set<UInt64> = []
  /// Where two looks in turn must agree: by timer or block.
  private var suspects: [UInt64: UInt64] = [:]

  private static let interval: UInt64 = 1_000_000_000
  private static let longestRest: UInt64 = 30_000_000_000
  private static let searchLimit: UInt64 = 150_000_000

  init(_ watch: DeadlockWatch) { self.watch = watch }

  /// `hang`: due for ten times as long is told, of a thread that rests; `wait`: of others.
  func tick(now: UInt64, hang: Duration, wait: Duration) -> [Stranded] {
    // What a program sets up at its start is found by the first search.
    if lookedAt == 0 { lookedAt = now }
    guard now &- lookedAt >= Self.interval else { return [] }
    lookedAt = now
    if memory == nil, lookedFor == 0 || now &- lookedFor > 5_000_000_000 {
      lookedFor = now
      memory = RunLoopMemory(files: watch.files, memory: watch.memory)
    }
    guard let memory, let dispatch = watch.runtime.dispatch else { return [] }
    // What nobody has run for since is not new.
    let run = watch.timesOthersRan?()
    let isNew = run == nil || run != searchedRun
    if isNew, now &- searchedAt >= max(Self.interval, min(100 &* cost, Self.longestRest)) {
      searchedAt = now
      searchedRun = run
      let began = hck_monotonic_ns()
      defer { cost = hck_monotonic_ns() &- began }
      guard let found = memory.search(limit: Self.searchLimit) else { return [] }
      loops = found.loops.map(\.address)
      timers = found.timers.map(\.address)
    }
    let loops = loops.compactMap(memory.loop)
    let timers = timers.compactMap(memory.timer)
    let least = hang.nanoseconds &* 10
    let late = timers.filter {
      $0.due <= now && now - $0.due >= least && !told.contains($0.address)
    }
    let blocks = loops.filter {
      $0.firstBlock != 0 && $0.mode == 0 && !told.contains($0.firstBlock)
    }
    var next: [UInt64: UInt64] = [:]
    defer { suspects = next }
    guard !late.isEmpty || !blocks.isEmpty else { return [] }
    let look = watch.wholeLook(now: now)
    var threads: [UInt64: SeenThread] = [:]
    let builder = watch.builder(now: now)
    for (tid, pthread) in dispatch.pthreads() {
      let outer = builder.known(tid)
      threads[pthread] = look.threads.first { $0.tid == outer && $0.isAlive && $0.kind == .thread }
    }
    let byAddress = Dictionary(loops.map { ($0.address, $0) }, uniquingKeysWith: { $1 })
    var result: [Stranded] = []
    var seenLoops: Set<UInt64> = []
    func consider(
      _ key: UInt64, _ loop: RunLoopMemory.Loop, since: UInt64, _ make: (SeenThread) -> Stranded
    ) {
      guard let thread = threads[loop.pthread] else { return }
      let rests = loop.mode == 0 && rests(thread)
      guard now &- since >= (rests ? least : max(wait.nanoseconds, least)) else { return }
      // It may be about to run.
      guard let before = suspects[key] else {
        next[key] = now
        return
      }
      next[key] = before
      // One of a loop stands for all.
      guard now &- before >= Self.interval, seenLoops.insert(loop.address).inserted else { return }
      told.insert(key)
      result.append(make(thread))
    }
    for timer in late.sorted(by: { ($0.due, $0.address) < ($1.due, $1.address) }) {
      guard let loop = byAddress[timer.loop],
        loop.mode == 0 || !memory.isTimer(timer, in: loop.mode)
      else { continue }
      consider(timer.address, loop, since: timer.due) { thread in
        Stranded(
          look: look, thread: thread.id, seconds: Double(now - timer.due) / 1e9,
          function: memory.function(of: timer), isTimer: true,
          mode: loop.mode == 0 ? nil : memory.name(ofMode: loop.mode) ?? "")
      }
    }
    for loop in blocks {
      let since = suspects[loop.firstBlock] ?? now
      next[loop.firstBlock] = since
      consider(loop.firstBlock, loop, since: since) { thread in
        Stranded(
          look: look, thread: thread.id, seconds: Double(now &- since) / 1e9, function: nil,
          isTimer: false, mode: nil)
      }
    }
    return result
  }

  /// It will not come to run its loop before somebody else acts.
  private func rests(_ thread: SeenThread) -> Bool {
    switch thread.standing?.kind {
    case .idle, .blocked(_, true): true
    default: false
    }
  }
}

extension ReportAssembler {
  func facts(_ stranded: RunLoopWatch.Stranded) -> StrandedFacts {
    StrandedFacts(
      thread: stranded.thread, seconds: stranded.seconds, isTimer: stranded.isTimer,
      mode: stranded.mode, function: stranded.function.map(beginning) ?? [])
  }
}

extension RunSession {
  /// Timers and blocks of run loops that nobody runs.
  func tellStranded(of process: RunProcess, now: UInt64) -> RunEvent? {
    var isNew = false
    for stranded in process.runLoops.tick(
      now: now, hang: setup.hangThreshold, wait: setup.waitThreshold)
    {
      let picture = process.picture(of: stranded.look)
      let maker = StrandedFinding(
        threads: picture.threads, resources: picture.resources, process: report.process)
      let facts = process.assembler(alive: true).facts(stranded)
      add([maker.finding(for: facts)], picture, of: process)
      isNew = true
    }
    return isNew ? .report(report, mainThreadIsStuck: false) : nil
  }
}
