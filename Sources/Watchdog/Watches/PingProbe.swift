internal import CHangcheck
internal import ProcessInspector
internal import Synchronization

/// Something that has to run what is handed to it: a ping goes there only when the former has come
/// back, and only while libdispatch's memory says that there is work, so that nothing idle is woken.
final class PingProbe: Probe {
  /// What comes back.
  final class Echo: Sendable {
    private let ran = Atomic<UInt64>(0)
    private let ranAt = Atomic<UInt64>(0)

    /// Called where the ping runs.
    func run(_ number: UInt64) {
      ranAt.store(hck_monotonic_ns(), ordering: .relaxed)
      ran.store(number, ordering: .releasing)
    }

    /// The last one that ran, and when.
    var last: (number: UInt64, at: UInt64) {
      let number = ran.load(ordering: .acquiring)
      return (number, ranAt.load(ordering: .relaxed))
    }
  }

  let subject: HangSamples.Subject
  private let ask: @Sendable (OwnProcess) -> OwnProcess.QueueStanding
  private let send: @Sendable (Echo, UInt64) -> Void
  private let echo = Echo()
  private let mustHaveRun: Bool
  private let state = Mutex(State())

  private struct State {
    var sent: UInt64 = 0
    var sentAt: UInt64 = 0
    var lastLong: Range<UInt64>?
    var hasSaidUnknown = false
  }

  /// `mustHaveRun`: perhaps nobody ever runs it, as a main queue that the program does not drain:
  /// only once a first ping has come back is a later one expected to.
  init(
    subject: HangSamples.Subject, mustHaveRun: Bool = false,
    ask: @escaping @Sendable (OwnProcess) -> OwnProcess.QueueStanding,
    send: @escaping @Sendable (Echo, UInt64) -> Void
  ) {
    self.subject = subject
    self.mustHaveRun = mustHaveRun
    self.ask = ask
    self.send = send
  }

  func read(now: UInt64, process: OwnProcess) -> HangTracker.Reading {
    let standing = ask(process)
    return state.withLock { state in
      let last = echo.last
      if state.sent != last.number {
        // What is suspended is meant to stand still, and begins anew when it is resumed.
        let isExcused = standing == .suspended || standing == .working
        if isExcused { state.sentAt = now }
        let counts = !isExcused && !(mustHaveRun && last.number == 0)
        return HangTracker.Reading(
          busySince: counts ? state.sentAt : nil, lastLong: state.lastLong)
      }
      if state.sentAt < last.at { state.lastLong = state.sentAt..<last.at }
      if standing == .unknown, !state.hasSaidUnknown {
        state.hasSaidUnknown = true
        StandardError.say(
          "\(subject.name) is not watched: what this libdispatch keeps in memory is not known")
      }
      guard standing == .busy else {
        return HangTracker.Reading(busySince: nil, lastLong: state.lastLong)
      }
      state.sent += 1
      state.sentAt = now
      send(echo, state.sent)
      return HangTracker.Reading(busySince: now, lastLong: state.lastLong)
    }
  }
}
