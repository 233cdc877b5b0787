import Foundation
import Glibc
import HangReport
import Testing

/// `--output`, `--log` and `hangcheck report`.
@Suite struct ReportFileTests {
  private func decode(_ text: String) throws -> HangReport {
    try JSONDecoder().decode(HangReport.self, from: Data(text.utf8))
  }

  @Test func jsonIsWrittenWithoutFindingsToo() throws {
    let scratch = try Scratch()
    let file = scratch.path + "/r.json"
    try scratch.write("r.json", String(repeating: "old ", count: 10_000), mode: 0o644)
    let result = try Run.hangcheck(["--format", "json", "--output", file, "sh", "-c", "exit 3"])
      .wait()
    #expect(result.status == 3)
    #expect(result.errors == "")
    let report = try decode(try scratch.text("r.json"))
    #expect(report.findings.isEmpty)
    #expect(report.process.exit == .init(status: 3))
    #expect(report.process.arguments == ["sh", "-c", "exit 3"])
    let rendered = try Run.hangcheck(["report", "--format", "json", file]).wait()
    #expect(try decode(rendered.output) == report)
    #expect(rendered.status == 0)
  }

  @Test func streamsAreAppendedTo() throws {
    let scratch = try Scratch()
    let script = """
      echo before >&2
      \(Fixture.hangcheck) --format json --output /dev/stderr true
      echo after >&2
      """
    try scratch.write("s", script, mode: 0o755)
    let result = try Run(
      "/bin/sh", ["-c", ". \(scratch.path)/s 2>\(scratch.path)/log"],
      environment: ["HANGCHECK_AGENT": try Fixture.agent()]
    ).wait()
    #expect(result.status == 0)
    let text = try scratch.text("log")
    #expect(text.hasPrefix("before\n{") && text.hasSuffix("}\nafter\n"))
  }

  @Test func fifoGetsTheReportOnce() throws {
    let scratch = try Scratch()
    let fifo = scratch.path + "/fifo"
    #expect(mkfifo(fifo, 0o600) == 0)
    let reader = try Run("/bin/cat", [fifo])
    let result = try Run.hangcheck(["--format", "json", "--output", fifo, "true"]).wait()
    #expect(result.status == 0)
    #expect(try decode(reader.wait().output).process.executable.hasSuffix("/true"))
  }

  @Test func logsAndDamagedReportsAreTold() throws {
    let scratch = try Scratch()
    let file = scratch.path + "/r.json"
    _ = try Run.hangcheck(["--format", "json", "--output", file, "true"]).wait()
    let line = try scratch.text("r.json").filter { $0 != "\n" }
    try scratch.write("log", line + "\n\n" + line + "\n", mode: 0o644)
    let good = try Run.hangcheck(["report", scratch.path + "/log"]).wait()
    #expect(good.status == 0 && good.output.split(separator: "\n").count >= 2)
    try scratch.write("log", line + "\n" + line.dropLast(5) + "}\n", mode: 0o644)
    let bad = try Run.hangcheck(["report", scratch.path + "/log"]).wait()
    #expect(bad.status == 65)
    #expect(bad.errors.contains("/log:2: it is no report"), "\(bad.errors)")
    let other = line.replacingOccurrences(of: "hangcheck/1", with: "hangcheck/9")
    try scratch.write("log", other, mode: 0o644)
    #expect(
      try Run.hangcheck(["report", scratch.path + "/log"]).wait().errors.contains(
        "hangcheck/1, not \"hangcheck/9\""))
    try scratch.write("log", line.replacingOccurrences(of: "\"pid\"", with: "\"pad\""), mode: 0o644)
    #expect(
      try Run.hangcheck(["report", scratch.path + "/log"]).wait().errors.contains(
        "process: \"pid\" is missing"))
  }

  @Test func helpAndVersionGoToStandardOutput() throws {
    let help = try Run.hangcheck(["--help"]).wait()
    #expect(help.status == 0 && help.errors == "" && help.output.hasPrefix("usage: hangcheck"))
    let version = try Run.hangcheck(["--version"]).wait()
    #expect(version.status == 0 && version.output.hasPrefix("hangcheck 0."))
    #expect(try Run.hangcheck(["explain", "deadlock"]).wait().output.contains("How to fix it"))
  }

  @Test func verboseSaysWhatWasWatched() throws {
    let result = try Run.hangcheck(["--verbose", "sh", "-c", "exit 2"]).wait()
    #expect(result.errors.contains("ended with status 2; 0 findings"))
    #expect(result.errors.split(separator: "\n").count == 1)
  }
}
