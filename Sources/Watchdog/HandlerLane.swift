internal import CHangcheck
internal import Glibc
internal import HangReport
internal import Synchronization

/// One handler with a thread of its own, which is made for its first report and rests between two.
/// A handler that does not come back keeps that thread, and holds up nobody else.
///
/// | state | it has a report | queued | who waits for it |
/// | --- | --- | --- | --- |
/// | idle | no | none | |
/// | busy | for less than `patience` | some | the watchdog |
/// | left behind | for longer | up to `room` | nobody |
///
/// Reports reach the handler in their order. Any thread may call it.
final class HandlerLane: Sendable {
  /// What is handed over.
  struct Delivery: Sendable {
    var content: Watchdog.Handler.Content
    var color: Watchdog.Color
  }
  private struct State {
    var queue: [Delivery] = []
    /// Since when the handler has had a report, in monotonic nanoseconds.
    var begun: UInt64?
    var isLeftBehind = false
    /// Reports for which there was no room.
    var lost = 0
    /// It has been said that the handler does not come back.
    var isNamed = false
    var hasThread = false
    var isClosed = false
  }

  let handler: Watchdog.Handler
  private let patience: UInt64
  private let room: Int
  private let say: @Sendable (String) -> Void
  private let state = Mutex(State())
  private let tid = Atomic<UInt32>(0)
  /// What the thread rests on. Glibc's, whose address may not change.
  private let wake: WakeUp

  /// `patience` in nanoseconds.
  init(
    _ handler: Watchdog.Handler, patience: UInt64 = 5_000_000_000, room: Int = 16,
    say: @escaping @Sendable (String) -> Void = StandardError.say
  ) {
    self.handler = handler
    self.patience = patience
    self.room = room
    self.say = say
    wake = WakeUp()
  }

  /// Hands a report over and waits until the handler has come back, `patience` at most, and half a
  /// second where somebody waits for the caller (`isAwaited`). One that was left behind finds the
  /// report when it comes back.
  func deliver(_ delivery: Delivery, isAwaited: () -> Bool = { false }) {
    let (starts, waits) = state.withLock { state in
      guard state.queue.count < room else {
        state.lost += 1
        return (false, false)
      }
      state.queue.append(delivery)
      defer { state.hasThread = true }
      return (!state.hasThread, !state.isLeftBehind)
    }
    if starts, startThread() != 0 {
      // Better on the watchdog's own thread than not at all.
      state.withLock { state in
        state.hasThread = false
        state.queue = []
      }
      return hand(delivery)
    }
    wake.post()
    if waits { waitUntilIdle(isAwaited) }
  }

  private func waitUntilIdle(_ isAwaited: () -> Bool) {
    let entered = hck_monotonic_ns()
    while isBusy {
      let now = hck_monotonic_ns()
      if isAwaited(), now &- entered >= 500_000_000 { return }
      let isNews = state.withLock { state -> Bool in
        guard let begun = state.begun, now > begun, now - begun >= patience else { return false }
        state.isLeftBehind = true
        defer { state.isNamed = true }
        return !state.isNamed
      }
      if isNews {
        say(
          "\(handler.name) has had a report for \(patience / 1_000_000_000) s and is left behind: "
            + "the other handlers and later reports go on")
      }
      usleep(1000)
    }
  }

  /// Whether it is worth to wait for the handler.
  var isBusy: Bool {
    state.withLock { !$0.isLeftBehind && ($0.begun != nil || !$0.queue.isEmpty) }
  }

  /// The thread ends once all that was handed over is told.
  func close() {
    state.withLock { $0.isClosed = true }
    wake.post()
  }

  /// Its thread, while there is one.
  var thread: UInt32? {
    let tid = tid.load(ordering: .acquiring)
    return tid != 0 && state.withLock({ $0.hasThread }) ? tid : nil
  }

  /// Whether the thread runs the program's code: it may then hold locks and wait like any other.
  var runsProgram: Bool {
    handler.isProgram && state.withLock { $0.begun != nil }
  }

  // MARK: - On its own thread

  /// 0 or an errno.
  private func startThread() -> Int32 {
    // The thread owns a reference, which it takes over at its begin.
    let retained = Unmanaged.passRetained(self)
    let error = hck_thread_start(
      "hangcheck-log",
      { argument in
        if let argument { Unmanaged<HandlerLane>.fromOpaque(argument).takeRetainedValue().run() }
        return nil
      }, retained.toOpaque())
    if error != 0 { retained.release() }
    return error
  }

  private func run() {
    tid.store(hck_gettid(), ordering: .releasing)
    while let next = next() {
      hand(next)
      let lost = state.withLock { state -> Int in
        state.begun = nil
        state.isLeftBehind = false
        defer { state.lost = 0 }
        return state.lost
      }
      if lost > 0 {
        say("\(handler.name) has come back; meanwhile there was no room for \(lost) reports")
      }
    }
  }

  private func next() -> Delivery? {
    while true {
      let (next, isOver) = state.withLock { state -> (Delivery?, Bool) in
        guard state.queue.isEmpty else {
          state.begun = hck_monotonic_ns()
          return (state.queue.removeFirst(), false)
        }
        if state.isClosed { state.hasThread = false }
        return (nil, state.isClosed)
      }
      if next != nil || isOver { return next }
      wake.wait()
    }
  }

  private func hand(_ delivery: Delivery) {
    do { try handler.take(delivery.content, color: delivery.color) } catch {
      say("a report's handler failed: \(error)")
    }
  }
}

/// A semaphore of libc's, which nobody records.
private final class WakeUp: @unchecked Sendable {
  // Safe to share: sem_t is made for it, and stays where it is until nobody is left.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
  init() { sem_init(semaphore, 0, 0) }
  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }
  func post() { sem_post(semaphore) }
  func wait() { sem_wait(semaphore) }
}
