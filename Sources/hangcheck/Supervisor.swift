import CHangcheck
import Glibc
import HangReport
import ProcessInspector

/// Waits for everything that can happen while the program runs, and does what it calls for.
///
/// One thread, one poll. hangcheck ends when the program does, and never before it.
final class Supervisor {
  static let tickInterval: UInt64 = 10_000_000

  let child: ChildProcess
  let options: Options
  let intake: SignalIntake
  let listener: ListeningSocket
  let watch: any RunWatch
  let output: RunOutput
  private(set) var screen: FindingScreen
  private let started: UInt64
  private(set) var findings: [Finding] = []
  private(set) var plan: EndingPlan?
  private var timedOut = false
  private var family = ProcessFamily()
  /// The processes that a core is wanted of.
  private var deadlocked: [Int32] = []
  var stopRequested: UInt64?
  private(set) var end: RunEnd?

  init(
    child: ChildProcess, options: Options, intake: consuming SignalIntake,
    listener: consuming ListeningSocket, watch: any RunWatch, output: RunOutput,
    screen: FindingScreen, started: UInt64
  ) {
    self.child = child
    self.options = options
    self.intake = intake
    self.listener = listener
    self.watch = watch
    self.output = output
    self.screen = screen
    self.started = started
  }

  /// Returns once the program has ended and everything is told: its end, and whether hangcheck
  /// ended it for its time-out.
  func run() -> (end: RunEnd, report: HangReport, timedOut: Bool, killed: Bool) {
    var nextTick = monotonicNow()
    look()
    while end == nil {
      serve(timeout: nextTick)
      let now = monotonicNow()
      if now >= nextTick, end == nil {
        // SIGCHLD tells of it at once; this is for the case that a library took that signal away.
        look()
        if end == nil { handle(watch.tick(now: now)) }
        // After a stop or a slow look the ticks that were missed are not made up for.
        nextTick = monotonicNow() + Self.tickInterval
      }
      checkTimeout(now)
      endReprieved(now)
      advancePlan(now)
    }
    drain()
    family.end(by: plan?.end)
    let end = self.end ?? .status(0)
    // Until it is reaped its pid names nobody else.
    let report = screen.screened(growing: watch.finish(exit: end))
    _ = child.nextChange(reap: true)
    findings = report.findings
    // Ended by SIGKILL, and not from here: what is known is told even where it is little.
    let killed = end == .signal(SIGKILL) && plan == nil
    return (end, report, timedOut, killed)
  }

  /// Whatever is ready until `timeout`.
  private func serve(timeout: UInt64) {
    let connections = watch.connections
    let waiting = output.waitingDescriptor
    var entries = [intake.descriptor, listener.descriptor].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    entries += connections.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    if let waiting { entries.append(pollfd(fd: waiting, events: Int16(POLLOUT), revents: 0)) }
    let now = monotonicNow()
    let rest = timeout > now ? (timeout - now + 999_999) / 1_000_000 : 0
    guard poll(&entries, nfds_t(entries.count), Int32(min(rest, 1000))) > 0 else { return }
    if entries[0].revents != 0, takeSignals() { look() }
    for (index, connection) in connections.enumerated() where entries[2 + index].revents != 0 {
      handle(watch.readable(connection))
    }
    if entries[1].revents != 0 { acceptAll() }
    if waiting != nil { output.flush() }
  }

  private func acceptAll() {
    // A bound, so that a storm of children cannot keep the signals waiting.
    for _ in 0..<64 {
      guard let (connection, peer) = listener.accept() else { return }
      // /proc/net/unix shows the socket's name to everybody.
      if peer.uid == geteuid() || child.isAncestor(of: peer.pid) {
        watch.accept(connection, peer: peer)
      } else {
        close(connection)
      }
    }
  }

  /// What the agents sent before the end. Others than the program may live on and send for ever.
  private func drain() {
    acceptAll()
    for _ in 0..<64 {
      let connections = watch.connections
      var entries = connections.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      guard poll(&entries, nfds_t(entries.count), 0) > 0 else { return }
      for (index, connection) in connections.enumerated() where entries[index].revents != 0 {
        handle(watch.readable(connection))
      }
    }
  }

  /// The child's changes since the last look.
  func look() {
    while let change = child.nextChange() {
      switch change {
      case .ended(let end):
        self.end = end
        return
      case .stopped(let signal):
        _ = takeSignals()
        childStopped(by: signal)
      case .continued: break
      }
    }
  }

  private func handle(_ events: [RunEvent]) {
    for case .report(let all, let mainThreadIsStuck, let stuckChildren, let endsByItself)
      in events
    {
      let report = screen.screened(growing: all)
      let news = report.findings.dropFirst(findings.count)
      findings = report.findings
      output.tell(report)
      let isDeadlock = (news.isEmpty && mainThreadIsStuck ? findings[...] : news[...]).contains {
        $0.kind == .deadlock && $0.certainty == .certain
      }
      if endsByItself { continue }
      if isDeadlock {
        deadlockReported(
          report, mainThreadIsStuck: mainThreadIsStuck, stuckChildren: stuckChildren)
      } else if mainThreadIsStuck || !stuckChildren.isEmpty {
        deadlockSuppressed(mainThreadIsStuck: mainThreadIsStuck, stuckChildren: stuckChildren)
      }
    }
  }

  private func deadlockReported(
    _ report: HangReport, mainThreadIsStuck: Bool, stuckChildren: [Int32]
  ) {
    guard plan == nil, end == nil else { return }
    let now = monotonicNow()
    switch options.onDeadlock {
    case .continue: return
    case .auto:
      if mainThreadIsStuck {
        plan = .terminate(now: now)
        sayNext("ending the program, whose main thread can never go on")
      } else if !stuckChildren.isEmpty {
        endChildren(stuckChildren, now: now)
      } else {
        sayNext("the program goes on; --on-deadlock terminate would end it, --timeout bounds it")
      }
    case .terminate:
      plan = .terminate(now: now)
      sayNext("ending the program")
    case .core:
      let guilty = Set(report.findings.filter { $0.kind == .deadlock }.flatMap(\.threads))
      let pids = report.threads.filter { guilty.contains($0.id) }.map { $0.pid ?? child.pid }
      deadlocked = pids.isEmpty ? [child.pid] : Array(Set(pids))
      plan = .core(now: now)
    }
  }

  /// What can never end by itself because of a deadlock that does not count: it gets time in which
  /// other deadlocks may be found.
  private var reprieve: (ends: UInt64, program: Bool, children: [Int32])?

  private func deadlockSuppressed(mainThreadIsStuck: Bool, stuckChildren: [Int32]) {
    guard plan == nil, end == nil, options.onDeadlock != .continue else { return }
    let ends = monotonicNow() + options.waitThreshold.nanoseconds
    if reprieve == nil {
      sayNext(
        "a suppressed deadlock keeps a main thread for ever: its process is ended after"
          + " --wait-threshold, --on-deadlock continue leaves it alone")
    }
    reprieve = (
      reprieve?.ends ?? ends, mainThreadIsStuck || reprieve?.program ?? false,
      (reprieve?.children ?? []) + stuckChildren
    )
  }

  private func endReprieved(_ now: UInt64) {
    guard let reprieved = reprieve, now >= reprieved.ends else { return }
    reprieve = nil
    guard plan == nil, end == nil else { return }
    if reprieved.program {
      plan = .terminate(now: now)
      sayNext("ending the program, whose main thread can never go on")
    } else {
      endChildren(reprieved.children, now: now)
    }
  }

  /// What happens after a report, for whoever reads it as it comes.
  private func sayNext(_ words: String) {
    if options.format == .text && !options.quiet { Tool.say(words) }
  }

  /// Children that can never end by themselves, with the time at which patience ends.
  private var doomed: [(pid: Int32, descriptor: Int32, deadline: UInt64)] = []

  private func endChildren(_ pids: [Int32], now: UInt64) {
    for pid in pids {
      let descriptor = hck_pidfd_open(pid)
      guard descriptor >= 0 else { continue }
      sayNext("ending process \(pid), whose main thread can never go on")
      _ = hck_pidfd_kill(descriptor, SIGTERM)
      doomed.append((pid, descriptor, now + 1_000_000_000))
    }
  }

  private func endDoomed(_ now: UInt64) {
    for child in doomed where now >= child.deadline {
      _ = hck_pidfd_kill(child.descriptor, SIGKILL)
      close(child.descriptor)
    }
    doomed.removeAll { now >= $0.deadline }
  }

  private func checkTimeout(_ now: UInt64) {
    guard plan == nil, end == nil, let timeout = options.timeout,
      now - started >= timeout.nanoseconds
    else { return }
    if let event = watch.timeoutReport(now: now) { handle([event]) }
    timedOut = true
    // That report may have begun the end by itself, perhaps with a core: then its steps hold.
    if plan == nil { plan = .timeout(now: monotonicNow()) }
  }

  private func advancePlan(_ now: UInt64) {
    endDoomed(now)
    guard end == nil, plan != nil else { return }
    if plan?.steps.isEmpty == false, child.isDumpingCore {
      plan?.postpone(until: now + 100_000_000)
      return
    }
    for step in plan?.due(now: now) ?? [] {
      if step.toAll {
        family.gather(under: child)
        family.send(step.signal)
      } else {
        for pid in deadlocked { kill(pid, step.signal) }
      }
    }
  }
}
