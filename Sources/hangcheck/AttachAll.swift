import Glibc
import HangReport
import ProcessInspector

/// `hangcheck attach --all`: every process of this user, one after the other.
struct AttachAll {
  let options: Options
  let output: AttachOutput

  func run() -> Int32 {
    let begun = monotonicNow()
    while true {
      let (status, summary, hanging) = lookOnce()
      let time = options.watch?.nanoseconds ?? 0
      let isOver = monotonicNow() - begun >= time
      if hanging || isOver {
        if !options.quiet { Tool.say(summary) }
        output.close()
        return status
      }
      AttachCommand.rest(1_000_000_000)
    }
  }

  private func lookOnce() -> (status: Int32, summary: String, hangs: Bool) {
    var status: Int32 = 0
    var hanging: [String] = []
    var looked = 0
    var refused = 0
    for pid in Self.candidates() {
      let found: AttachCommand.Looked
      do throws(LaunchError) { found = try AttachCommand.look(at: pid, options) } catch {
        // Most of these have just ended.
        if kill(pid, 0) == 0 { refused += 1 }
        continue
      }
      looked += 1
      guard !output.judged(found).isEmpty else { continue }
      status = max(status, output.write(found.report, onLine: true))
      let path = found.report.process.executable
      hanging.append("\(pid) \(path.split(separator: "/").last ?? "")")
    }
    var words = "looked at \(looked) processes: "
    words += hanging.isEmpty ? "nothing hangs" : "these hang: " + hanging.joined(separator: ", ")
    if refused > 0 { words += "; \(refused) could not be looked at" }
    return (status, words, !hanging.isEmpty)
  }

  /// Processes that run a program as this user, but for this one and those that it was started by.
  private static func candidates() -> [Int32] {
    guard let directory = opendir("/proc") else { return [] }
    defer { closedir(directory) }
    var result: [Int32] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { raw in
        String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard let pid = Int32(name), pid != getpid(),
        case let facts = AttachFacts.of(pid, stops: false), facts.uid == facts.ownUID,
        facts.group == pid, !facts.isKernelThread, !facts.isZombie
      else { continue }
      result.append(pid)
    }
    return result.sorted()
  }
}
