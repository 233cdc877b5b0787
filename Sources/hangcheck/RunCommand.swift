import Glibc
import HangReport
import ProcessInspector

/// `hangcheck run`: everything between the options and the program's end.
struct RunCommand {
  let options: Options
  /// Index of the program in the process's own argument vector.
  let firstWord: Int
  /// What looks into the program; a test puts its own here.
  var makeWatch: (RunSetup) -> any RunWatch = { RunSession($0) }
  /// In place of the process's own arguments, in tests.
  var replacedWords: [String]?

  func run() -> Int32 {
    do { return try watch() } catch {
      Tool.say(error.message)
      return error.status
    }
  }

  private func watch() throws(LaunchError) -> Int32 {
    let words = replacedWords ?? Array(CommandLine.arguments.dropFirst(firstWord))
    let screen = try screen()
    var environment = LaunchEnvironment()
    let program = try find(words[0], environment.bytes(of: "PATH"))
    let agent = try AgentLibrary(named: environment.value(of: "HANGCHECK_AGENT"))
    let output = try RunOutput(options: options)
    let image = ProgramImage(path: program.path)
    let listener = try Self.listener()
    let intake = try Self.intake()
    if image.toleratesPreload {
      let link = AgentLink(
        socketName: listener.name, followsChildren: options.follow,
        stacks: options.stacks.rawValue, learnsOrders: options.predict,
        learnsSemaphores: options.predict && options.predictSemaphores, plan: options.steer)
      environment.add(agent: agent.path, link: link.description)
    }
    let started = monotonicNow()
    let pid = try program.start(
      arguments: arguments, environment: environment.array, mask: intake.inheritedMask,
      ignoresChildSignal: intake.ignoredChildSignal, image: image)
    // The program runs; everything from here on is beside it.
    Self.allowManyFiles()
    if let reason = image.blindness, !options.quiet {
      Tool.say("\(program.path) cannot be watched: \(reason)")
    }
    let limits = image.blindness.map { ["the program could not be watched: \($0)"] } ?? []
    let watch = makeWatch(
      RunSetup(
        tool: Tool.identity, pid: pid, executable: program.path, arguments: words,
        hangThreshold: options.hangThreshold, waitThreshold: options.waitThreshold,
        inversionThreshold: options.inversionThreshold, predicts: options.predict,
        predictsSemaphores: options.predictSemaphores, followsChildren: options.follow,
        limits: limits))
    let supervisor = Supervisor(
      child: ChildProcess(pid: pid), options: options, intake: intake, listener: listener,
      watch: watch, output: output, screen: screen, started: started)
    var result = supervisor.run()
    let lasted = monotonicNow() - started
    let confirmed =
      options.confirm
      ? Confirmation(
        program: program, agent: agent, image: image, words: words, options: options,
        supervisor: supervisor, lasted: lasted
      ).complete(&result.report, watch.predictions, arguments: arguments) : []
    output.finish(result.report, always: result.killed, again: confirmed)
    finishWriting(output, supervisor)
    // Words behind a JSON report would spoil it.
    let isApart = options.format == .text || options.output != nil
    if !options.quiet && isApart { supervisor.screen.remarks.forEach(Tool.say) }
    if options.verbose { sayWhatWasWatched(result.report, agent, lasted: lasted) }
    return ExitStatus.of(
      result.end, findings: result.report.findings, failOn: options.failOn,
      timedOut: result.timedOut)
  }

  /// Each child of the program takes a descriptor or two here: the program keeps the limit that it
  /// was given, and hangcheck takes what it may.
  private static func allowManyFiles() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0,
      limit.rlim_cur < limit.rlim_max
    else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }

  /// Before anything is opened: a baseline may be the very file that the report goes to.
  private func screen() throws(LaunchError) -> FindingScreen {
    try FindingScreen(suppressions: options.suppressions, baseline: options.baseline) {
      (error) throws(LaunchError) in throw LaunchError(status: 65, message: error.message)
    }
  }

  private static func listener() throws(LaunchError) -> ListeningSocket {
    do { return try ListeningSocket() } catch {
      throw LaunchError(status: 69, message: "cannot listen for the agent: \(error)")
    }
  }

  private static func intake() throws(LaunchError) -> SignalIntake {
    do { return try SignalIntake() } catch {
      throw LaunchError(status: 69, message: "cannot take over the signals: \(error)")
    }
  }

  /// The program's words, as the bytes they are.
  private var arguments: CStringArray {
    if let replacedWords { return CStringArray(replacedWords.compactMap { strdup($0) }) }
    let vector = CommandLine.unsafeArgv
    return CStringArray((firstWord..<Int(CommandLine.argc)).compactMap { vector[$0] })
  }

  private func find(_ word: String, _ path: [UInt8]?) throws(LaunchError) -> Program {
    do { return try Program(bytes: firstWordBytes ?? Array(word.utf8), searchPath: path) } catch {
      guard error.status == 127, !word.contains("/"),
        let near = nearest(to: word, in: ["run", "attach", "core", "report", "explain"])
      else { throw error }
      throw LaunchError(
        status: 127, message: error.message + ", and no subcommand; did you mean \(near)?")
    }
  }

  private var firstWordBytes: [UInt8]? {
    guard replacedWords == nil, let word = CommandLine.unsafeArgv[firstWord] else { return nil }
    return UnsafeBufferPointer(start: word, count: strlen(word)).map { UInt8(bitPattern: $0) }
  }

  /// A report that waits for a slow reader. The program has ended, so a signal now is for
  /// hangcheck.
  private func finishWriting(_ output: RunOutput, _ supervisor: Supervisor) {
    let deadly: Set<Int32> = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
    while let descriptor = output.waitingDescriptor {
      var entries = [
        pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0),
        pollfd(fd: supervisor.intake.descriptor, events: Int16(POLLIN), revents: 0),
      ]
      _ = poll(&entries, 2, -1)
      while let arrival = supervisor.intake.next() {
        if deadly.contains(arrival.number) { return }
      }
      output.flush()
    }
  }

  private func sayWhatWasWatched(_ report: HangReport, _ agent: AgentLibrary, lasted: UInt64) {
    let tenths = lasted / 100_000_000
    let how: String
    switch (report.process.exit?.status, report.process.exit?.signal) {
    case (let status?, _): how = "ended with status \(status)"
    case (_, let signal?): how = "was ended by signal \(signal)"
    default: how = "ended"
    }
    Tool.say(
      "watched \(report.process.executable) (pid \(report.process.pid)) for"
        + " \(tenths / 10).\(tenths % 10) s with \(agent.path); it \(how);"
        + " \(report.findings.count) finding\(report.findings.count == 1 ? "" : "s")")
  }
}
