internal import CHangcheck
internal import Glibc
internal import HangReport
internal import ProcessInspector
internal import Recorder
internal import Synchronization

/// Finds deadlocks while the program runs, hangs of what is put under `watch`, and misuse of the drop-in types of `InstrumentedLocks`,
/// and tells its handlers who holds what, who waits for what, and from which lines.
///
/// Costs a thread that looks at the recorder's memory 30 times a second, 100 times while a wait is
/// young: about 0.3 % of one processor, below 1 % with fifty threads that wait, and nothing in the
/// program's own threads; from a handler's first report on another one that rests. Only for a report are those interrupted, by a signal that nobody handles,
/// to copy their stacks; threads in a sleep, poll or timed wait, which a signal would cut short, are
/// not.
///
/// Cannot see where what is no drop-in was taken, nor always who has it. `hangcheck` sees that; a
/// program that runs under it is left to it, and `start` does nothing there. A child that was forked and does not execute another program is not watched until it
/// calls `start` itself.
public final class Watchdog: Sendable {
  /// The one of this process.
  public static let shared = Watchdog()

  private struct State {
    var loop: WatchLoop?
    /// The process that the loop runs in: threads do not live on in a fork's child.
    var pid: pid_t = 0
  }
  private let state = Mutex(State())
  let watches = WatchList()

  private init() {}

  /// Begins to watch as the environment variable HANGCHECK_OPTIONS says (`log=/var/log/hangs.jsonl
  /// on-deadlock=core`), with reports on standard error and in the log, if one is named. What
  /// cannot be understood there is said on standard error and left out.
  public func start() {
    let text = getenv("HANGCHECK_OPTIONS").map { String(cString: $0) }
    let (configuration, problems) = Configuration.parse(environment: text ?? "")
    for problem in problems { StandardError.say("HANGCHECK_OPTIONS: \(problem)") }
    start(configuration)
  }

  /// Begins to watch; a watch that is on goes on with this configuration.
  public func start(_ configuration: Configuration) {
    if InProcess.isLeftToAgent { return }
    // Threads that record meanwhile keep one or the other.
    hck_sanitizer_ignore_begin()
    switch configuration.stacks {
    case .full: hck_keep_windows(UInt32(HCK_WINDOW_WORDS) * 8)
    case .site: hck_keep_windows(16)
    case .none: hck_keep_windows(0)
    }
    hck_sanitizer_ignore_end()
    // A file that cannot be read is no reason to watch less.
    let screen = FindingScreen(
      suppressions: configuration.suppressions, baseline: configuration.baseline
    ) { StandardError.say("\($0); it is left out") }
    let error = state.withLock { state -> Int32 in
      QuitSignal.watch(configuration.dumpsOnQuit)
      if let loop = state.loop, state.pid == getpid() {
        loop.take(configuration, screen)
        return 0
      }
      // The loop looks for the arena once.
      InProcess.begin()
      let loop = WatchLoop(configuration, screen, watches)
      let error = loop.start()
      if error == 0 {
        state = State(loop: loop, pid: getpid())
        InProcess.setWatched(true)
        if configuration.predictsDeadlocks { InProcess.learnOrders() }
        _ = Self.endIsSeen
      }
      return error
    }
    if error != 0 {
      StandardError.say("the watchdog has no thread: " + String(cString: strerror(error)))
    }
  }

  /// Ends the watch. Misuse that has been seen is still told, within seconds; a handler that runs
  /// just now is not waited for otherwise, and finishes. A later `start` reports what still hangs anew.
  public func stop() {
    if let loop = currentLoop, !loop.isOwnThread {
      loop.waitUntilHeard()
      loop.remarks.forEach(StandardError.say)
    }
    state.withLock { state in
      state.loop?.stop()
      state.loop = nil
      QuitSignal.watch(false)
      InProcess.setWatched(false)
    }
  }

  private var currentLoop: WatchLoop? {
    // Not for long: a thread that forks or ends while it holds this must not hold up an exit.
    state.withLockIfAvailable { $0.pid == getpid() ? $0.loop : nil } ?? nil
  }

  private static let endIsSeen: Void = { atexit { Watchdog.shared.end(hck_frame()) } }()

  /// The program exits: what it leaves behind can only be seen now, and what it has done wrong just
  /// before is to be told.
  private func end(_ frame: UnsafeRawPointer) {
    guard let loop = currentLoop, !loop.isOwnThread, let arena = hck_arena_get() else { return }
    tellEnd(arena, frame)
    loop.waitUntilHeard()
    loop.waitForHangs()
    if hck_load64(&arena.pointee.orders) != 0 || loop.owesReport { loop.tellLast() }
    loop.remarks.forEach(StandardError.say)
  }
}
