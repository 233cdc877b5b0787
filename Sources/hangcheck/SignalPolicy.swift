import Glibc
import ProcessInspector

/// Decides what a signal that reached hangcheck means for the program.
///
/// | signal | from | meaning |
/// | --- | --- | --- |
/// | SIGCHLD | anyone | look at the child |
/// | SIGCONT | anyone | let the child go on if it is stopped |
/// | INT QUIT TSTP TTIN TTOU WINCH HUP | the terminal | the child has it already, being in the
/// group |
/// | any | the program itself (`kill(0, …)`) | the same |
/// | all others | a process, a timer | pass it on |
///
/// What cannot be told: whether a process signalled hangcheck or its whole group. In the second
/// case the program receives the signal twice; those that are still pending count once.
enum SignalPolicy {
  enum Action: Sendable, Hashable { case look, resume, pass, leave }

  struct Verdict: Sendable, Hashable {
    var action: Action
    /// The program is being stopped by job control: when it does stop, so must hangcheck, for the
    /// shell to take over.
    var stops = false
  }

  struct Context: Sendable, Hashable {
    var childSharesGroup: Bool
    var isSessionLeader: Bool
    /// The sender is the program or a descendant of it.
    var senderIsWatched: Bool
  }

  private static let jobStops: Set<Int32> = [SIGTSTP, SIGTTIN, SIGTTOU]
  private static let terminal: Set<Int32> = [
    SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGHUP,
  ]

  static func verdict(_ arrival: SignalIntake.Arrival, _ context: Context) -> Verdict {
    let stops = jobStops.contains(arrival.number)
    switch arrival.number {
    case SIGCHLD: return Verdict(action: .look)
    case SIGCONT: return Verdict(action: .resume)
    // At a hangup the kernel tells the session's leader alone.
    case SIGHUP where arrival.isFromKernel && context.isSessionLeader:
      return Verdict(action: .pass)
    case let number where arrival.isFromKernel && terminal.contains(number):
      return Verdict(action: context.childSharesGroup ? .leave : .pass, stops: stops)
    case _ where !arrival.isFromKernel && context.senderIsWatched:
      return Verdict(action: .leave, stops: stops)
    default:
      return Verdict(action: .pass, stops: stops)
    }
  }

  /// Whether hangcheck stops along with its child.
  ///
  /// - requested: a stop signal reached hangcheck a moment ago.
  /// - foreground: hangcheck's group has the terminal, and a shell waits for it.
  static func followsStop(by signal: Int32, requested: Bool, foreground: Bool) -> Bool {
    // A plain SIGSTOP concerns the program alone: whoever sent it will send it SIGCONT.
    requested || (jobStops.contains(signal) && foreground)
  }
}
