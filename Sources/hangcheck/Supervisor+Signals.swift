import Glibc
import ProcessInspector

extension Supervisor {
  /// Reads every signal that has arrived; tells whether the child is to be looked at.
  ///
  /// SIGCHLD is read before the stop signal that caused it, because its number is lower: what a
  /// stop means is only decided when all that is there has been read.
  func takeSignals() -> Bool {
    var mustLook = false
    while let arrival = intake.next() {
      let isFromProcess = !arrival.isFromKernel && arrival.number != SIGCHLD
      let context = SignalPolicy.Context(
        childSharesGroup: child.sharesGroup,
        isSessionLeader: getsid(0) == getpid(),
        senderIsWatched: isFromProcess && arrival.sender > 0 && child.isAncestor(of: arrival.sender)
      )
      let verdict = SignalPolicy.verdict(arrival, context)
      if verdict.stops { stopRequested = monotonicNow() }
      switch verdict.action {
      case .look: mustLook = true
      case .resume: if child.isStopped { child.send(SIGCONT) }
      case .pass: child.send(arrival.number)
      case .leave: break
      }
    }
    return mustLook
  }

  /// The child has stopped: so does hangcheck, where a shell waits for it to.
  func childStopped(by signal: Int32) {
    let now = monotonicNow()
    let requested = stopRequested.map { now - $0 < 2_000_000_000 } ?? false
    stopRequested = nil
    guard
      SignalPolicy.followsStop(by: signal, requested: requested, foreground: Self.hasTerminal),
      child.isStopped
    else { return }
    // Back here when a shell sends SIGCONT, which is then read like any other signal.
    kill(getpid(), SIGSTOP)
  }

  /// Whether this process's group is the terminal's foreground group.
  private static var hasTerminal: Bool {
    guard let terminal = try? OwnedDescriptor(opening: "/dev/tty", flags: O_RDONLY | O_NONBLOCK)
    else { return false }
    return tcgetpgrp(terminal.rawValue) == getpgrp()
  }
}
