internal import CHangcheck
internal import Glibc
internal import HangReport
internal import ProcessInspector
internal import Synchronization

/// The watchdog's thread, from `start` to `stop`.
final class WatchLoop: Sendable {
  private struct Current {
    var configuration: Watchdog.Configuration
    var screen: FindingScreen
  }
  private let current: Mutex<Current>
  private let lanes: HandlerLanes
  private let isStopped = Atomic<Bool>(false)
  /// How much threads had said of themselves before the last whole round began.
  private let heard = Atomic<UInt32>(0)
  private let tid = Atomic<UInt32>(0)

  /// What the next report is handed to.
  private var configuration: Watchdog.Configuration { current.withLock { $0.configuration } }

  private let watches: WatchList

  init(
    _ configuration: Watchdog.Configuration, _ screen: FindingScreen, _ watches: WatchList
  ) {
    self.watches = watches
    current = Mutex(Current(configuration: configuration, screen: screen))
    lanes = HandlerLanes(configuration.handlers)
  }

  /// From the next report on.
  func take(_ configuration: Watchdog.Configuration, _ screen: FindingScreen) {
    current.withLock { $0 = Current(configuration: configuration, screen: screen) }
    lanes.replace(configuration.handlers)
  }

  /// A line on each suppression that was of no use.
  var remarks: [String] { current.withLock { $0.screen.remarks } }

  /// 0 or an errno.
  func start() -> Int32 {
    // The fork handlers are there before the thread is.
    Self.apartFromForks {}
    // The thread owns a reference, which it takes over at its begin.
    let retained = Unmanaged.passRetained(self)
    let error = hck_thread_start(
      "hangcheck",
      { argument in
        if let argument { Unmanaged<WatchLoop>.fromOpaque(argument).takeRetainedValue().run() }
        return nil
      }, retained.toOpaque())
    if error != 0 { retained.release() }
    return error
  }

  func stop() { isStopped.store(true, ordering: .releasing) }

  /// The calling thread is this loop's own, or a handler's.
  var isOwnThread: Bool {
    tid.load(ordering: .relaxed) == hck_gettid() || lanes.areOnOwnThread
  }

  private static let patience: UInt64 = 2_000_000_000

  /// Waits until what threads have said so far has been told, but not for ever.
  func waitUntilHeard() {
    let raised = OwnProcess.alarmsRaised
    wait { Int32(bitPattern: raised &- heard.load(ordering: .acquiring)) > 0 }
  }

  /// Until what is pending is told by all handlers that come back.
  private func wait(while isPending: () -> Bool) {
    guard isPending() else { return }
    let begun = OwnProcess.now
    lanes.whileAwaited {
      while isPending() || lanes.areBusy, !isStopped.load(ordering: .relaxed),
        OwnProcess.now &- begun < Self.patience
      {
        usleep(2000)
      }
    }
  }

  private let rounds = Atomic<UInt32>(0)
  private let seesHang = Atomic<Bool>(false)

  /// Lets a hang that is told be told to be over, where it is: the process ends.
  func waitForHangs() {
    let (begun, round) = (OwnProcess.now, rounds.load(ordering: .acquiring))
    // The round that goes on may have looked already.
    while seesHang.load(ordering: .acquiring),
      Int32(bitPattern: rounds.load(ordering: .acquiring) &- round) < 2,
      !isStopped.load(ordering: .relaxed), OwnProcess.now &- begun < Self.patience
    {
      usleep(2000)
    }
  }

  /// What can only be told at the end: 0 nothing, 1 asked for, 2 told.
  private let ending = Atomic<Int>(0)

  /// Whether something is watched whose end is to be told.
  var owesReport: Bool { owes.load(ordering: .acquiring) }
  private let owes = Atomic<Bool>(false)

  /// Tells what is left to tell of lock orders and inversions, for the process ends.
  func tellLast() {
    ending.store(1, ordering: .releasing)
    wait { ending.load(ordering: .acquiring) == 1 }
  }

  // Microseconds between two looks.
  private static let idle: UInt32 = 100_000
  private static let awake: UInt32 = 10_000

  private func run() {
    var process: OwnProcess?
    let hangs = HangWatch(watches) { self.seesHang.store(true, ordering: .releasing) }
    var attention = Attention()
    tid.store(hck_gettid(), ordering: .relaxed)
    Self.apartFromForks { OwnProcess.prepare() }
    while !isStopped.load(ordering: .acquiring) {
      var report: HangReport?
      var orders: HangReport?
      var inversions: HangReport?
      var pools: HangReport?
      var blocking: HangReport?
      var stranded: HangReport?
      var livelocks: HangReport?
      var picture: HangReport?
      var hanging: [HangReport] = []
      let isLast = ending.load(ordering: .acquiring) == 1
      var pause = Self.idle
      let raised = OwnProcess.alarmsRaised
      Self.apartFromForks {
        if process == nil { process = OwnProcess() }
        process?.waitThreshold = configuration.waitThreshold
        process?.inversionThreshold = configuration.inversionThreshold
        process?.leaveOut(lanes.threads)
        let now = OwnProcess.now
        blocking = process?.blockingReport(now: now)
        report = process?.tick(now: now)
        if process?.seesYoungWaits(now: now) == true { pause = Self.awake }
        inversions = process?.inversionReport(now: now, isLast: isLast) {
          owes.store(true, ordering: .releasing)
        }
        pools = process?.poolReport(now: now)
        stranded = process?.strandedReport(now: now, hang: configuration.hangThreshold)
        livelocks = process?.livelockReport(now: now)
        orders = process?.orderReport(now: now, isLast: isLast)
        if QuitSignal.hasCome() { picture = process?.picture(now: now) }
        hangs.unseen(attention.lapse())
        if let process {
          let threshold = configuration.hangThreshold.nanoseconds
          hanging = hangs.look(now: OwnProcess.now, threshold: threshold, process: process)
          let most = hangs.pause(now: OwnProcess.now) / 1000
          pause = UInt32(clamping: min(UInt64(pause), max(1000, most)))
        }
      }
      if let report {
        if process?.isAwaited == true { tellWaiting(report) } else { tell(report) }
      }
      if let inversions { tell(inversions) }
      owes.store(process?.hasOpenInversions ?? false, ordering: .releasing)
      if let pools { tell(pools) }
      if let blocking { tell(blocking) }
      if let stranded { tell(stranded) }
      if let livelocks { tell(livelocks) }
      if let orders { tell(orders) }
      if let picture { lanes.show(picture, color: configuration.color) }
      hanging.forEach(tell)
      if isLast { ending.store(2, ordering: .releasing) }
      heard.store(raised, ordering: .releasing)
      seesHang.store(hangs.isAny, ordering: .releasing)
      rounds.add(1, ordering: .releasing)
      hangs.unseen(attention.lapse())
      usleep(pause)
      hangs.overslept(attention.oversleep(microseconds: pause))
    }
    lanes.close()
  }

  /// No fork falls into `work`: its child would inherit locks of the loader and the Swift runtime
  /// that nobody releases.
  private static func apartFromForks(_ work: () -> Void) {
    hck_gate_enter()
    work()
    hck_gate_leave()
  }

  /// A thread stands still until its alarm is told, five seconds at most, and may trap then: no
  /// handler keeps it from the next ones, and all of them get what time there is.
  private func tellWaiting(_ report: HangReport) {
    let begun = OwnProcess.now
    lanes.whileAwaited {
      tell(report)
      while lanes.areBusy, OwnProcess.now &- begun < 4_000_000_000 { usleep(2000) }
    }
  }

  private func tell(_ whole: HangReport) {
    let (report, configuration) = current.withLock {
      ($0.screen.screened(whole), $0.configuration)
    }
    if report.findings.isEmpty { return }
    lanes.tell(report, color: configuration.color)
    // A misuse alone is no reason to end a program.
    let isDeadlock = report.findings.contains { $0.kind == .deadlock && $0.certainty == .certain }
    if isDeadlock { Ending.carryOut(configuration.onDeadlock) }
  }
}

/// How a process ends itself once its deadlock is told.
enum Ending {
  static func carryOut(_ choice: Watchdog.OnDeadlock) {
    switch choice {
    case .continue: return
    case .terminate:
      kill(getpid(), SIGTERM)
      sleep(1)
    case .core:
      // Swift's own crash reporter swallows the first one.
      for _ in 0..<2 {
        kill(getpid(), SIGABRT)
        sleep(1)
      }
    }
    kill(getpid(), SIGKILL)
  }
}
