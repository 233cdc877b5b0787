import Glibc
import HangReport
import ProcessInspector
import WaitForGraph

/// `hangcheck attach`: explains processes that hang already, and leaves them as they were.
struct AttachCommand {
  let options: Options
  /// Nil for every process that one may look at.
  let pid: Int32?

  func run() -> Int32 {
    do throws(LaunchError) {
      let output = try AttachOutput(options: options)
      guard let pid else { return AttachAll(options: options, output: output).run() }
      return try look(at: pid, output)
    } catch {
      Tool.say(error.message)
      return error.status
    }
  }

  private func look(at pid: Int32, _ output: AttachOutput) throws(LaunchError) -> Int32 {
    let begun = monotonicNow()
    var report = try Self.look(at: pid, options)
    if let time = options.watch {
      // A process that is well costs little: a look takes a twentieth of the time at most.
      while output.judged(report).isEmpty, monotonicNow() - begun < time.nanoseconds {
        let cost = report.cost.nanoseconds
        let left = time.nanoseconds - min(time.nanoseconds, monotonicNow() - begun)
        Self.rest(min(max(500_000_000, 20 * cost), left, 10_000_000_000))
        do throws(LaunchError) { report = try Self.look(at: pid, options) } catch {
          guard kill(pid, 0) != 0 else { throw error }
          if !options.quiet { Tool.say("process \(pid) ended; nothing hung in it before") }
          return 0
        }
      }
    }
    let status = output.write(report.report)
    if options.verbose { sayWhatItTook(report) }
    output.close()
    return status
  }

  /// Sleeps for some nanoseconds; threads that the last look could not stop in time are let go when they
  /// do stop.
  static func rest(_ nanoseconds: UInt64) {
    let end = monotonicNow() + nanoseconds
    while monotonicNow() < end {
      AttachSession.letGo()
      usleep(UInt32(min(end - min(end, monotonicNow()), 50_000_000) / 1000))
    }
  }

  /// A report, and what it took.
  struct Looked {
    var report: HangReport
    var cost: Duration
    var stopped: Duration
  }

  static func look(at pid: Int32, _ options: Options) throws(LaunchError) -> Looked {
    let begun = monotonicNow()
    do throws(AttachRefusal) {
      let session = try AttachSession(
        pid: pid,
        setup: AttachSetup(
          tool: Tool.identity, waitThreshold: options.waitThreshold, stops: options.stop,
          follows: options.follow))
      let report = try session.look()
      return Looked(
        report: options.stacks.kept(of: report),
        cost: .nanoseconds(Int64(monotonicNow() - begun)),
        stopped: .nanoseconds(Int64(session.stoppedFor)))
    } catch {
      throw LaunchError(status: ExitStatus.nothingToInspect, message: error.message)
    }
  }

  private func sayWhatItTook(_ looked: Looked) {
    func milliseconds(_ duration: Duration) -> String {
      let tenths = duration.nanoseconds / 100_000
      return "\(tenths / 10).\(tenths % 10) ms"
    }
    let threads = looked.report.threads.count { $0.kind ?? .thread == .thread }
    Tool.say(
      "looked at process \(looked.report.process.pid), \(threads) threads, in"
        + " \(milliseconds(looked.cost)); it was stopped for \(milliseconds(looked.stopped))")
  }
}

extension Options.Stacks {
  /// A report with as much of its stacks as is asked for.
  func kept(of report: HangReport) -> HangReport {
    guard self != .full else { return report }
    func kept(_ stack: [Frame]) -> [Frame] {
      guard self == .site else { return [] }
      return stack.first { !$0.runtime }.map { [$0] } ?? Array(stack.prefix(1))
    }
    var result = report
    for index in result.threads.indices {
      result.threads[index].stack = kept(result.threads[index].stack)
      if let wait = result.threads[index].waitsFor {
        result.threads[index].waitsFor?.stack = kept(wait.stack)
      }
      for hold in result.threads[index].holds.indices {
        let stack = result.threads[index].holds[hold].stack
        result.threads[index].holds[hold].stack = kept(stack)
      }
    }
    for finding in result.findings.indices {
      for evidence in result.findings[finding].evidence.indices {
        let stack = result.findings[finding].evidence[evidence].stack
        result.findings[finding].evidence[evidence].stack = kept(stack)
      }
    }
    return result
  }
}

/// Where reports of processes that were attached to go.
final class AttachOutput {
  private let options: Options
  private let target: Sink
  private let log: Sink?
  private let colors: Bool
  private var screen: FindingScreen
  private var pages = 0
  private var whole = ""

  init(options: Options) throws(LaunchError) {
    self.options = options
    screen = try FindingScreen(suppressions: options.suppressions, baseline: options.baseline) {
      (error) throws(LaunchError) in throw LaunchError(status: 65, message: error.message)
    }
    target =
      if let output = options.output {
        try Self.open(output, "output", appends: false)
      } else {
        Sink(shared: 1, name: "standard output")
      }
    log = if let file = options.log { try Self.open(file, "log", appends: true) } else { nil }
    colors = RunOutput.usesColor(options.color, isTerminal: target.isTerminal)
  }

  private static func open(
    _ path: String, _ option: String, appends: Bool
  ) throws(LaunchError) -> Sink {
    do { return try Sink(path: path, appends: appends) } catch {
      throw LaunchError(status: 64, message: "--\(option) \(path): cannot be written: \(error)")
    }
  }

  /// The findings that would make the exit status 66.
  func judged(_ looked: AttachCommand.Looked) -> [Finding] {
    screen.screened(looked.report).findings.filter { $0.severity != .note }
  }

  /// Writes a report; the exit status that it makes, 64 where it could not be written. `onLine`: as one line where it is JSON.
  func write(_ report: HangReport, onLine: Bool = false) -> Int32 {
    let report = screen.screened(report)
    if let log, !report.findings.isEmpty, let line = try? Rendering.json(report, pretty: false) {
      log.appendLine(line)
    }
    if options.format == .json {
      append((try? Rendering.json(report, pretty: !onLine)) ?? "")
    } else if !report.findings.isEmpty || !options.quiet {
      append((pages > 0 ? "\n" : "") + Rendering.text(report, options, color: colors))
    }
    pages += 1
    if hasFailed { return 64 }
    let fails = report.findings.contains { ExitStatus.fails($0.severity, options.failOn) }
    return fails ? ExitStatus.finding : 0
  }

  func append(_ text: String) {
    if target.kind == .regularFile {
      whole += text
      target.replace(with: whole)
      return
    }
    target.append(text)
    while target.isWaiting {
      var entry = pollfd(fd: target.descriptor, events: Int16(POLLOUT), revents: 0)
      _ = poll(&entry, 1, -1)
      target.flush()
    }
  }

  /// Says which rules matched nothing.
  func close() {
    if !options.quiet, options.format == .text || options.output != nil {
      screen.remarks.forEach(Tool.say)
    }
  }

  var hasFailed: Bool { target.failure != nil }
}
