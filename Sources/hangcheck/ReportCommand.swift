import FoundationEssentials
import Glibc
import HangReport
import ProcessInspector

/// `hangcheck report FILE`: renders a report, or each line of a log of reports.
struct ReportCommand {
  let file: String
  let options: Options

  /// What is wrong with the input, as one line that begins with its name.
  private struct Unreadable: Error { var message: String }

  func run() -> Int32 {
    let reports: [HangReport]
    do { reports = try read() } catch {
      Tool.say((error as? Unreadable)?.message ?? "\(file): \(error)")
      return 65
    }
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
        ? try? Rendering.json(report, pretty: true) : Rendering.text(report, color: colors)
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
    let fails = reports.flatMap(\.findings).contains {
      ExitStatus.fails($0.severity, options.failOn)
    }
    return fails ? ExitStatus.finding : 0
  }

  private func read() throws -> [HangReport] {
    let bytes = try content()
    guard bytes.contains(where: { $0 > 0x20 }) else {
      throw Unreadable(message: "\(file): it is empty")
    }
    let lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false)
    let used = lines.enumerated().filter { $0.element.contains { $0 > 0x20 } }
    // A log holds one whole object in each line; a single report may be spread over many.
    guard used.count > 1, used[0].element.last == UInt8(ascii: "}") else {
      return [try decode(bytes, line: nil)]
    }
    return try used.map { try decode(Array($0.element), line: $0.offset + 1) }
  }

  private func openInput() throws(Unreadable) -> OwnedDescriptor {
    do {
      // The name opens a second descriptor of standard input where that is open.
      return try OwnedDescriptor(opening: file == "-" ? "/dev/stdin" : file, flags: O_RDONLY)
    } catch { throw Unreadable(message: "\(file): cannot be read: \(error)") }
  }

  private func content() throws -> [UInt8] {
    let fd = try openInput()
    var result: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let size = buffer.withUnsafeMutableBytes { Glibc.read(fd.rawValue, $0.baseAddress, $0.count) }
      if size < 0 && errno == EINTR { continue }
      guard size >= 0 else {
        throw Unreadable(message: "\(file): cannot be read: \(SystemError(errno))")
      }
      if size == 0 { return result }
      result += buffer[..<size]
    }
  }

  private func decode(_ bytes: [UInt8], line: Int?) throws -> HangReport {
    do { return try HangReport(json: bytes) } catch {
      let place = (line ?? error.line).map { "\(file):\($0)" } ?? file
      let key = error.path.isEmpty ? "" : "\(error.path): "
      throw Unreadable(message: "\(place): it is no report: \(key)\(error.reason)")
    }
  }
}
