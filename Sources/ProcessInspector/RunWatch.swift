package import HangReport

/// Who connected to the socket, as the kernel says.
package struct Peer: Sendable, Hashable {
  package var pid: Int32
  package var uid: UInt32
  package init(pid: Int32, uid: UInt32) {
    self.pid = pid
    self.uid = uid
  }
}

/// What a watch tells the supervisor.
package enum RunEvent: Sendable {
  /// The whole report so far. Findings are only ever added at its end, or said anew: those that it
  /// has not seen yet are new. `mainThreadIsStuck`: the main thread of the program is in a certain
  /// deadlock or stuck behind one, so that the program can never end by itself.
  /// `stuckChildren`: followed processes of which the same is true. `endsByItself`: what is new was
  /// told just before it traps, so that nobody need end the program for it.
  case report(
    HangReport, mainThreadIsStuck: Bool, stuckChildren: [Int32] = [], endsByItself: Bool = false)
}

/// How the program ended.
package enum RunEnd: Sendable, Hashable {
  case status(Int32)
  case signal(Int32)
}

/// What a watch is made from, once the program runs.
package struct RunSetup: Sendable {
  package var tool: HangReport.Tool
  package var pid: Int32
  /// The path that was executed.
  package var executable: String
  package var arguments: [String]
  package var hangThreshold: Duration
  package var waitThreshold: Duration
  package var inversionThreshold: Duration
  package var predicts: Bool
  package var predictsSemaphores: Bool
  package var followsChildren: Bool
  /// One sentence for each thing that is known not to be visible in this program.
  package var limits: [String]
  package init(
    tool: HangReport.Tool, pid: Int32, executable: String, arguments: [String],
    hangThreshold: Duration, waitThreshold: Duration, inversionThreshold: Duration, predicts: Bool,
    predictsSemaphores: Bool, followsChildren: Bool, limits: [String]
  ) {
    self.tool = tool
    self.pid = pid
    self.executable = executable
    self.arguments = arguments
    self.hangThreshold = hangThreshold
    self.waitThreshold = waitThreshold
    self.inversionThreshold = inversionThreshold
    self.predicts = predicts
    self.predictsSemaphores = predictsSemaphores
    self.followsChildren = followsChildren
    self.limits = limits
  }
}

/// The eyes of `hangcheck run`: everything that looks into the watched processes.
///
/// The supervisor calls all of it from one thread. No call may block for long (signals wait
/// meanwhile), end the process, or leave a ptrace stop of the program unwaited for.
package protocol RunWatch: AnyObject {
  /// The agent of one process has connected. The watch owns the descriptor (close-on-exec, not
  /// blocking) from here on.
  func accept(_ connection: Int32, peer: Peer)
  /// The descriptors that the supervisor polls for the watch; one that reached its end is left out.
  var connections: [Int32] { get }
  /// There is something to read, or the other side has gone.
  func readable(_ connection: Int32) -> [RunEvent]
  /// Every 10 ms while the program runs. `now`: CLOCK_MONOTONIC in nanoseconds.
  func tick(now: UInt64) -> [RunEvent]
  /// `--timeout` is about to end the program: what hangs now, as an event even where no finding is
  /// new, or nil where there is nothing to tell.
  func timeoutReport(now: UInt64) -> RunEvent?
  /// The program has ended (its pid is not yet given to another) and everything that its agent sent
  /// has been read: all findings, those of earlier events first.
  func finish(exit: RunEnd) -> HangReport
  /// Of the findings so far, those that a steered run might make happen.
  var predictions: [Prediction] { get }
}

extension RunWatch {
  package var predictions: [Prediction] { [] }
}

extension Duration {
  /// At most what 64 bits hold.
  package var nanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, seconds < 18_000_000_000 else { return seconds < 0 ? 0 : .max }
    return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
  }
}
