import Glibc
import HangReport
import ProcessInspector
import Testing

/// `--suppressions` and `--baseline` around a program that does nothing.
@Suite struct SuppressionRunTests {
  private let scratch: Scratch
  private let rules: String
  init() throws {
    scratch = try Scratch()
    rules = scratch.path + "/x.supp"
  }

  @Test(arguments: [
    ("a: b", "x.supp:1: unknown key 'a'"), ("\n\nkind:deadlok", "x.supp:3: 'deadlok' is no kind"),
    ("kind:hang until:2027-02-30", "x.supp:1: '2027-02-30' is no date"),
    ("kind:hang\nkind:", "x.supp:2: kind has no value"), ("\0", "x.supp:1: there is a control"),
  ])
  func badRules(_ text: String, _ says: String) throws {
    try scratch.write("x.supp", text, mode: 0o644)
    for command in [["true"], ["report", "/nowhere"]] {
      try refused(["--suppressions", rules] + command, says)
      let fromEnvironment = try Run.hangcheck(
        command, environment: ["HANGCHECK_OPTIONS": "suppressions=\(rules)"]
      ).wait()
      #expect(fromEnvironment.status == 65 && fromEnvironment.errors.contains(says))
    }
  }

  @Test(arguments: [
    ("/nowhere/x", "/nowhere/x: cannot be read: No such file"),
    ("/", "/: cannot be read: Is a dir"),
    ("/dev/zero", "/dev/zero: it is larger than 16 MB"),
    ("/bin/sh", "/bin/sh:1: this is no text in UTF-8"),
  ])
  func unreadableRules(_ file: String, _ says: String) throws {
    try refused(["--suppressions", file, "true"], says)
  }

  @Test(arguments: [
    ("/nowhere/x", "/nowhere/x: cannot be read"), ("/", "Is a directory"),
    ("/dev/null", "/dev/null: it is empty"), ("/etc/passwd", "/etc/passwd:1: it is no report"),
  ])
  func unreadableBaselines(_ file: String, _ says: String) throws {
    try refused(["--baseline", file, "true"], says)
  }

  /// One line, status 65, and neither the program nor an output was touched.
  private func refused(_ arguments: [String], _ says: String) throws {
    try scratch.write("out", "old", mode: 0o644)
    let result = try Run.hangcheck(["--output", scratch.path + "/out"] + arguments).wait()
    #expect(result.status == 65)
    #expect(result.output == "")
    #expect(result.errors.contains(says), "\(result.errors)")
    #expect(result.errors.hasPrefix("hangcheck: "))
    #expect(result.errors.split(separator: "\n").count == 1)
    #expect(try scratch.text("out") == "old")
  }

  @Test func uselessRulesAreSaid() throws {
    try scratch.write("x.supp", "kind:hang\nkind:hang until:2020-01-01 # gone\n", mode: 0o644)
    let arguments = ["--suppressions", rules, "sh", "-c", "exit 7"]
    let result = try Run.hangcheck(arguments).wait()
    #expect(result.status == 7)
    #expect(
      result.errors == """
        hangcheck: \(rules):1: the suppression has matched nothing: kind:hang
        hangcheck: \(rules):2: the suppression has expired on 2020-01-01, it would have matched \
        nothing: kind:hang until:2020-01-01

        """)
    #expect(try Run.hangcheck(["--quiet"] + arguments).wait().errors == "")
    let json = try Run.hangcheck(["--format", "json"] + arguments).wait().errors
    #expect(try HangReport(json: Array(json.utf8)).findings.isEmpty)
  }

  @Test func reportsAreScreenedAsRunsAre() throws {
    let finding = Finding(
      kind: .deadlock, severity: .error, certainty: .certain, message: "m",
      fingerprint: "0123456789abcdef")
    let report = HangReport(
      tool: .current, mode: .run,
      process: WatchedProcess(pid: 1, executable: "/bin/app", arguments: ["app"]),
      findings: [finding])
    try scratch.write("r.json", bytes: report.json(pretty: true), mode: 0o644)
    let file = scratch.path + "/r.json"
    #expect(try Run.hangcheck(["report", file]).wait().status == 66)
    try scratch.write("x.supp", "fingerprint:0123* reason:known", mode: 0o644)
    let ruled = try Run.hangcheck(["report", "--suppressions", rules, file]).wait()
    #expect(ruled.status == 0 && ruled.errors == "")
    #expect(ruled.output == "hangcheck: 1 finding (deadlock) suppressed by \(rules):1: known\n")
    let based = try Run.hangcheck(["report", "--baseline", file, "--format", "json", file]).wait()
    #expect(based.status == 0)
    let written = try HangReport(json: Array(based.output.utf8))
    #expect(written.findings.isEmpty && written.suppressed?.map(\.source) == [file])
    // A baseline may be the file that is written, and a log is one as well.
    let both = ["--baseline", file, "--format", "json", "--output", file, "true"]
    #expect(try Run.hangcheck(both).wait().status == 0)
    let line = try report.json() + [0x0a]
    try scratch.write("log", bytes: line + line, mode: 0o644)
    #expect(
      try Run.hangcheck(["report", "--baseline", scratch.path + "/log", scratch.path + "/log"])
        .wait().status == 0)
  }
}
