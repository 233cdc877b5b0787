import Glibc
import HangReport
import ProcessInspector

/// `hangcheck report FILE`: renders a report, or each line of a log of reports.
struct ReportCommand {
  let file: String
  let options: Options

  func run() -> Int32 {
    var reports: [HangReport]
    var screen: FindingScreen
    do {
      screen = try FindingScreen(
        suppressions: options.suppressions, baseline: options.baseline
      ) { (error) throws(InputError) in throw error }
      reports = try SavedReports.read(file)
    } catch {
      Tool.say(error.message)
      return 65
    }
    for index in reports.indices { reports[index] = screen.screened(reports[index]) }
    let target: Sink
    if let output = options.output {
      do { target = try Sink(path: output, appends: false) } catch {
        Tool.say("--output \(output): cannot be written: \(error)")
        return 64
      }
    } else {
      target = Sink(shared: 1, name: "standard output")
    }
    let colors = RunOutput.usesColor(options.color, isTerminal: target.isTerminal)
    let parts = reports.compactMap { report in
      options.format == .json
        ? try? Rendering.json(report, pretty: true) : Rendering.text(report, options, color: colors)
    }
    if target.kind == .regularFile {
      target.replace(with: parts.joined(separator: "\n"))
    } else {
      target.append(parts.joined(separator: "\n"))
      while target.isWaiting {
        var entry = pollfd(fd: target.descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&entry, 1, -1)
        target.flush()
      }
    }
    if target.failure != nil { return 64 }
    if !options.quiet { screen.remarks.forEach(Tool.say) }
    let fails = reports.flatMap(\.findings).contains {
      ExitStatus.fails($0.severity, options.failOn)
    }
    return fails ? ExitStatus.finding : 0
  }
}
