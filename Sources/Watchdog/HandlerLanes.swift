internal import CHangcheck
internal import HangReport
internal import Synchronization

/// The lanes of a watch's handlers, one after the other. Any thread may call it.
final class HandlerLanes: Sendable {
  private struct State {
    var lanes: [HandlerLane]
    /// For what is asked for on standard error where no handler writes there.
    var text: HandlerLane?
    /// Of configurations before, which still run a handler.
    var former: [HandlerLane] = []

    var all: [HandlerLane] { lanes + (text.map { [$0] } ?? []) + former }
  }
  private let state: Mutex<State>
  private let awaiting = Atomic<Int>(0)

  init(_ handlers: [Watchdog.Handler]) {
    state = Mutex(State(lanes: handlers.map { HandlerLane($0) }))
  }

  /// From the next report on.
  func replace(_ handlers: [Watchdog.Handler]) {
    let lanes = handlers.map { HandlerLane($0) }
    let former = state.withLock { state -> [HandlerLane] in
      defer {
        state.former = state.all.filter { $0.thread != nil }
        state.lanes = lanes
        state.text = nil
      }
      return state.all
    }
    for lane in former { lane.close() }
  }

  /// Their threads end once they have told what they were handed.
  func close() { replace([]) }

  /// Tells all of them, in turn, and waits for those that come back.
  func tell(_ report: HangReport, color: Watchdog.Color) {
    for lane in state.withLock({ $0.lanes }) {
      lane.deliver(.init(content: .report(report), color: color), isAwaited: isAwaited)
    }
  }

  /// Writes a picture of all threads to standard error, behind what is told there already.
  func show(_ picture: HangReport, color: Watchdog.Color) {
    let lane = state.withLock { state -> HandlerLane in
      if let lane = state.lanes.first(where: \.handler.writesText) ?? state.text { return lane }
      let lane = HandlerLane(.standardError)
      state.text = lane
      return lane
    }
    lane.deliver(.init(content: .picture(picture), color: color), isAwaited: isAwaited)
  }

  private func isAwaited() -> Bool { awaiting.load(ordering: .relaxed) > 0 }

  /// While `body` runs somebody waits for the reports: no handler gets long.
  func whileAwaited(_ body: () -> Void) {
    awaiting.add(1, ordering: .relaxed)
    body()
    awaiting.subtract(1, ordering: .relaxed)
  }

  /// Whether a handler has a report and may yet come back.
  var areBusy: Bool { state.withLock { $0.lanes }.contains(where: \.isBusy) }

  /// Whether the calling thread is that of a handler.
  var areOnOwnThread: Bool {
    let tid = hck_gettid()
    return state.withLock { $0.all }.contains { $0.thread == tid }
  }

  /// Threads that no report is about: those that do not run the program's code just now.
  var threads: [UInt32] {
    state.withLock { $0.all }.filter { !$0.runsProgram }.compactMap(\.thread)
  }
}
