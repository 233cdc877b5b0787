import CHangcheck
import Glibc
import HangReport
import ProcessInspector

/// One steered run of the program that nobody sees: in a session of its own, its streams on /dev/null,
/// and with all its processes ended when it is over.
struct Attempt {
  enum Outcome {
    case deadlocked(HangReport)
    case nothing
    case interrupted
    case failed(String)
  }

  let program: Program
  let agent: AgentLibrary
  let image: ProgramImage
  let words: [String]
  let options: Options
  let plan: SteeringPlan
  /// Nanoseconds.
  let limit: UInt64

  func run(_ arguments: borrowing CStringArray, _ supervisor: Supervisor) -> Outcome {
    let listener: ListeningSocket
    do { listener = try ListeningSocket() } catch { return .failed("\(error)") }
    let child: ChildProcess
    let others = Set(ProcessTable.descendants(of: getpid()))
    do {
      child = ChildProcess(pid: try start(arguments, listener.name, supervisor))
    } catch { return .failed(error.message) }
    defer { Self.end(child, sparing: others) }
    let watch = RunSession(
      RunSetup(
        tool: Tool.identity, pid: child.pid, executable: program.path, arguments: words,
        hangThreshold: options.hangThreshold, waitThreshold: .seconds(86_400),
        inversionThreshold: options.inversionThreshold, predicts: false, predictsSemaphores: false,
        followsChildren: options.follow, limits: []))
    let deadline = monotonicNow() + limit
    while monotonicNow() < deadline {
      if Self.isInterrupted(supervisor) { return .interrupted }
      if case .ended? = child.nextChange() { return .nothing }
      let before = watch.connections
      var entries = [pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0)]
      entries += before.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      _ = poll(&entries, nfds_t(entries.count), 10)
      if entries[0].revents != 0, let (connection, peer) = listener.accept() {
        watch.accept(connection, peer: peer)
      }
      for (index, connection) in before.enumerated() where entries[1 + index].revents != 0 {
        _ = watch.readable(connection)
      }
      for case .report(let report, _, _, _) in watch.tick(now: monotonicNow())
      where report.findings.contains(where: { $0.kind == .deadlock && $0.certainty == .certain }) {
        return .deadlocked(report)
      }
    }
    return .nothing
  }

  private func start(
    _ arguments: borrowing CStringArray, _ socket: String, _ supervisor: Supervisor
  ) throws(LaunchError) -> Int32 {
    let null: OwnedDescriptor
    do { null = try OwnedDescriptor(opening: "/dev/null", flags: O_RDWR) } catch {
      throw LaunchError(status: 69, message: "/dev/null: \(error)")
    }
    var environment = LaunchEnvironment()
    let link = AgentLink(
      socketName: socket, followsChildren: options.follow, stacks: options.stacks.rawValue,
      learnsOrders: true, learnsSemaphores: options.predictSemaphores, plan: plan)
    environment.add(agent: agent.path, link: link.description)
    return try program.start(
      arguments: arguments, environment: environment.array,
      mask: supervisor.intake.inheritedMask,
      ignoresChildSignal: supervisor.intake.ignoredChildSignal, image: image, apart: null.rawValue)
  }

  /// The program has none of hangcheck's signals here: those that end it end the attempts.
  private static func isInterrupted(_ supervisor: Supervisor) -> Bool {
    while let arrival = supervisor.intake.next() {
      switch arrival.number {
      case SIGINT, SIGTERM, SIGHUP, SIGQUIT: return true
      case SIGTSTP, SIGTTIN, SIGTTOU: kill(getpid(), SIGSTOP)
      default: break
      }
    }
    return false
  }

  /// Half a second to clean up, then nothing is left of it: those whose parents have gone are this
  /// process's children. `others` were there before.
  private static func end(_ child: ChildProcess, sparing others: Set<Int32>) {
    func processes() -> [Int32] {
      ProcessTable.descendants(of: getpid()).filter { !others.contains($0) }
    }
    func wait(_ nanoseconds: UInt64) -> Bool {
      let deadline = monotonicNow() + nanoseconds
      while true {
        let left = processes()
        for pid in left { waitpid(pid, nil, WNOHANG) }
        if left.isEmpty { return true }
        if monotonicNow() >= deadline { return false }
        poll(nil, 0, 5)
      }
    }
    for pid in processes() { kill(pid, SIGTERM) }
    if wait(500_000_000) { return }
    // Each round reaches those that were born during the one before.
    for _ in 0..<20 {
      for pid in processes() { kill(pid, SIGKILL) }
      if wait(100_000_000) { return }
    }
  }
}
