import Foundation
import Glibc
import ProcessInspector
import Testing

/// Signals from processes and from a terminal, whoever they hit.
@Suite struct SignalTests {
  private static let counter = """
    import os, signal, sys, time
    for name in sys.argv[1].split():
      signal.signal(getattr(signal, name), lambda n, f: os.write(1, b"got %s\\n" % signal.Signals(n).name.encode()))
    print("ready", os.getpid(), flush=True)
    while True: time.sleep(10)
    """

  private func counting(_ names: String) throws -> (run: Run, program: Int32) {
    let run = try Run.hangcheck(["python3", "-c", Self.counter, names])
    try run.wait(for: "ready ")
    try run.wait(for: "\n")
    let line = run.output.split(separator: "\n").first { $0.hasPrefix("ready") }
    return (run, Int32(line?.split(separator: " ").last ?? "") ?? 0)
  }

  @Test(arguments: [
    ("SIGINT", SIGINT), ("SIGHUP", SIGHUP), ("SIGQUIT", SIGQUIT), ("SIGUSR1", SIGUSR1),
    ("SIGUSR2", SIGUSR2), ("SIGWINCH", SIGWINCH), ("SIGALRM", SIGALRM), ("SIGABRT", SIGABRT),
  ])
  func killIsPassedOnOnce(_ name: String, _ number: Int32) throws {
    let (run, _) = try counting(name)
    kill(run.pid, number)
    try run.wait(for: "got \(name)")
    kill(run.pid, SIGTERM)
    let result = run.wait()
    #expect(result.status == 143)
    #expect(result.output.components(separatedBy: "got").count == 2)
  }

  @Test func groupSignalOfTheProgramItselfIsNotRepeated() throws {
    let script = """
      import os, signal, time
      count = 0
      def got(n, f):
        global count
        count += 1
      signal.signal(signal.SIGUSR1, got)
      os.kill(0, signal.SIGUSR1)
      time.sleep(0.3)
      print(count)
      """
    let result = try Run.hangcheck(["python3", "-c", script]).wait()
    #expect(result.output == "1\n")
    #expect(result.status == 0)
  }

  @Test func killOfHangcheckLeavesTheProgramRunning() throws {
    let (run, program) = try counting("SIGUSR1")
    kill(run.pid, SIGKILL)
    // The result is hangcheck's own; the program still answers and writes to the same pipe.
    var raw: Int32 = 0
    waitpid(run.pid, &raw, WNOWAIT)
    usleep(100_000)
    kill(program, SIGUSR1)
    try run.wait(for: "got SIGUSR1")
    #expect(!isStopped(program))
    kill(program, SIGKILL)
    #expect(run.wait().status == -SIGKILL)
    #expect(isGone(program))
  }

  @Test func killOfTheProgramEndsHangcheck() throws {
    let (run, program) = try counting("SIGUSR1")
    kill(program, SIGKILL)
    let result = run.wait()
    #expect(result.status == 137)
    #expect(result.errors.contains("no finding"))
  }

  @Test func stopAndContinueOfTheProgramLeavesHangcheckAlone() throws {
    let (run, program) = try counting("SIGUSR1")
    kill(program, SIGSTOP)
    eventually { isStopped(program) }
    usleep(100_000)
    #expect(!isStopped(run.pid))
    kill(program, SIGCONT)
    kill(run.pid, SIGUSR1)
    try run.wait(for: "got SIGUSR1")
    kill(run.pid, SIGTERM)
    #expect(run.wait().status == 143)
  }

  @Test func stopSignalToHangcheckStopsBothAndContinueWakesBoth() throws {
    let (run, program) = try counting("SIGUSR1")
    kill(run.pid, SIGTSTP)
    eventually { isStopped(program) && isStopped(run.pid) }
    kill(run.pid, SIGCONT)
    eventually { !isStopped(program) && !isStopped(run.pid) }
    kill(run.pid, SIGUSR1)
    try run.wait(for: "got SIGUSR1")
    kill(run.pid, SIGTERM)
    #expect(run.wait().status == 143)
  }

  @Test func interruptFromTheTerminalArrivesOnce() throws {
    let terminal = try Terminal()
    terminal.run("$hangcheck python3 -c '\(Self.counter)' SIGINT; echo status $?")
    try terminal.wait(for: "ready ")
    terminal.type("\u{3}")
    try terminal.wait(for: "got SIGINT")
    terminal.type("\u{1c}")
    let rest = try terminal.wait(for: "status 131")
    #expect(!rest.contains("got"))
  }

  @Test func jobControlWorksAsWithoutHangcheck() throws {
    let terminal = try Terminal()
    terminal.run("$hangcheck cat; echo first $?")
    usleep(300_000)
    terminal.run("one")
    try terminal.wait(for: "one\r\none\r\n")
    terminal.type("\u{1a}")
    try terminal.wait(for: "Stopped")
    try terminal.wait(for: "prompt> ")
    // In the background it reads the terminal, and both are stopped for it.
    terminal.run("bg")
    usleep(300_000)
    terminal.run("jobs")
    try terminal.wait(for: "Stopped")
    terminal.run("fg")
    usleep(300_000)
    terminal.run("two")
    try terminal.wait(for: "two\r\ntwo\r\n")
    terminal.type("\u{4}")
    try terminal.wait(for: "prompt> ")
    terminal.run("echo last $?")
    try terminal.wait(for: "last 0")
  }

  @Test func programThatStopsItselfGivesTheShellControl() throws {
    let terminal = try Terminal()
    terminal.run("$hangcheck sh -c 'echo be; kill -TSTP $$; echo resumed'; echo status $?")
    try terminal.wait(for: "Stopped")
    try terminal.wait(for: "prompt> ")
    terminal.run("fg")
    try terminal.wait(for: "resumed\r\n")
  }

  @Test func shellInsideHasItsOwnJobs() throws {
    let terminal = try Terminal()
    terminal.run("$hangcheck bash --norc --noprofile --noediting -i; echo status $?")
    try terminal.wait(for: "prompt> ")
    terminal.run("sleep 100")
    usleep(300_000)
    terminal.type("\u{3}")
    try terminal.wait(for: "prompt> ")
    terminal.run("exit 7")
    try terminal.wait(for: "status 7")
  }

  @Test func hangupEndsTheProgram() throws {
    var pid: Int32 = 0
    do {
      let terminal = try Terminal()
      terminal.run("$hangcheck sh -c 'echo pid=$$=; sleep 100'")
      try terminal.wait(for: "pid=")
      let text = try terminal.wait(for: "=\r\n")
      pid = Int32(text.split(separator: "=").last { Int32($0) != nil } ?? "") ?? 0
    }
    #expect(pid > 1)
    #expect(isGone(pid))
  }

  /// A run is started and hangcheck killed after that many half milliseconds: the program has either
  /// not begun, or comes to its end.
  @Test(arguments: 0..<24) func killOfHangcheckAtAnyMoment(_ delay: UInt32) throws {
    let run = try Run.hangcheck(["sh", "-c", "echo begun; sleep 0.2; echo ended"])
    usleep(delay * 500)
    kill(run.pid, SIGKILL)
    _ = run.wait()
    for _ in 0..<40 where !run.output.hasSuffix("ended\n") { run.read(milliseconds: 25) }
    #expect(run.output == "" || run.output == "begun\nended\n")
  }

  @Test func nohupHolds() throws {
    let run = try Run(
      "/bin/sh",
      [
        "-c", "trap '' HUP; exec \"$0\" sh -c 'echo ready; sleep 0.4; echo over'",
        Fixture.hangcheck,
      ],
      environment: ["HANGCHECK_AGENT": try Fixture.agent()])
    try run.wait(for: "ready")
    kill(-run.pid, SIGHUP)
    let result = run.wait()
    #expect(result.output == "ready\nover\n")
    #expect(result.status == 0)
  }

  @Test func terminatedWhileItsReportWaitsForAReader() throws {
    // The FIFO is open and nobody reads: the report, larger than the pipe, is left over.
    let scratch = try Scratch()
    let fifo = scratch.path + "/fifo"
    #expect(mkfifo(fifo, 0o600) == 0)
    let reader = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    defer { close(reader) }
    let long = String(repeating: "x", count: 100_000)
    let run = try Run.hangcheck(
      ["--format", "json", "--output", fifo, "sh", "-c", "echo ready; sleep 0.1", long])
    try run.wait(for: "ready")
    usleep(500_000)
    kill(run.pid, SIGTERM)
    let result = run.wait(seconds: 5)
    #expect(!result.isTimedOut)
    #expect(result.status == 0)
  }

  private func isStopped(_ pid: Int32) -> Bool {
    ProcessTable.state(of: pid) == UInt8(ascii: "T")
  }

  private func eventually(_ condition: () -> Bool) {
    for _ in 0..<500 where !condition() { usleep(10_000) }
    #expect(condition())
  }
}
