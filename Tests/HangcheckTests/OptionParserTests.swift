import HangReport
import ProcessInspector
import Testing

@testable import hangcheck

@Suite struct OptionParserTests {
  struct Line: Sendable, CustomTestStringConvertible {
    var words: String
    var command: Command
    var change: @Sendable (inout Options) -> Void = { _ in }
    var testDescription: String { words }
  }

  @Test(arguments: [
    Line(words: "./a --port 80", command: .run(programAt: 0)),
    Line(words: "run ./a", command: .run(programAt: 1)),
    Line(words: "run report", command: .run(programAt: 1)),
    Line(words: "-- run", command: .run(programAt: 1)),
    Line(words: "run -- --odd", command: .run(programAt: 2)),
    Line(words: "a --help", command: .run(programAt: 0)),
    Line(words: "a -- --quiet", command: .run(programAt: 0)),
    Line(words: "--quiet run a", command: .run(programAt: 2)) { $0.quiet = true },
    Line(words: "--format json a", command: .run(programAt: 2)) { $0.format = .json },
    Line(words: "--format=svg a", command: .run(programAt: 1)) { $0.format = .svg },
    Line(words: "--output --x a", command: .run(programAt: 2)) { $0.output = "--x" },
    Line(words: "--log=/l=x a", command: .run(programAt: 1)) { $0.log = "/l=x" },
    Line(words: "--hang-threshold 50ms a", command: .run(programAt: 2)) {
      $0.hangThreshold = .milliseconds(50)
    },
    Line(words: "--wait-threshold=1.5s a", command: .run(programAt: 1)) {
      $0.waitThreshold = .milliseconds(1500)
    },
    Line(words: "--inversion-threshold 1m a", command: .run(programAt: 2)) {
      $0.inversionThreshold = .seconds(60)
    },
    Line(words: "--on-deadlock core a", command: .run(programAt: 2)) { $0.onDeadlock = .core },
    Line(words: "--timeout 2s --timeout 3s a", command: .run(programAt: 4)) {
      $0.timeout = .seconds(3)
    },
    Line(words: "--fail-on never a", command: .run(programAt: 2)) { $0.failOn = .never },
    Line(words: "--predict off --predict-semaphores --confirm a", command: .run(programAt: 4)) {
      $0.predict = false
      $0.predictSemaphores = true
      $0.confirm = true
    },
    Line(words: "--steer 500@+1f:lib.so+2/+3 a", command: .run(programAt: 2)) {
      $0.steer = SteeringPlan(
        milliseconds: 500,
        steps: [
          .init(
            asks: [.init(image: "", offset: 0x1f), .init(image: "lib.so", offset: 2)],
            took: [.init(image: "", offset: 3)])
        ])
    },
    Line(words: "--stacks site --no-follow --verbose a", command: .run(programAt: 4)) {
      $0.stacks = .site
      $0.follow = false
      $0.verbose = true
    },
    Line(words: "--suppressions s --baseline b --color always a", command: .run(programAt: 6)) {
      $0.suppressions = "s"
      $0.baseline = "b"
      $0.color = .always
    },
    Line(words: "--no-stop attach 12", command: .attach(pid: 12)) { $0.stop = false },
    Line(words: "--watch 5 attach --all", command: .attach(pid: nil)) {
      $0.watch = .seconds(5)
      $0.all = true
    },
    Line(words: "./a --all --no-stop", command: .run(programAt: 0)),
    Line(words: "attach 12 --format json", command: .attach(pid: 12)) { $0.format = .json },
    Line(words: "core c", command: .core("c", executable: nil)),
    Line(words: "core c --quiet e", command: .core("c", executable: "e")) { $0.quiet = true },
    Line(words: "report f", command: .report("f")),
    Line(words: "report -- --f", command: .report("--f")),
    Line(words: "report -", command: .report("-")),
    Line(words: "explain lockMisuse", command: .explain(.lockMisuse)),
    Line(words: "run --help", command: .help),
    Line(words: "-h", command: .help),
    Line(words: "--quiet --version a", command: .version) { $0.quiet = true },
  ])
  func understood(_ line: Line) throws {
    let invocation = try Invocation.parse(line.words.split(separator: " ").map(String.init))
    var options = Options()
    line.change(&options)
    #expect(invocation.command == line.command)
    #expect(invocation.options == options)
  }

  @Test(arguments: [
    ("", "program to run is missing"),
    ("run", "program to run is missing"),
    ("--quiet --", "program to run is missing"),
    ("--formt json a", "did you mean --format?"),
    ("--hang-treshold 5s a", "did you mean --hang-threshold?"),
    ("--xyzzy a", "unknown option --xyzzy; see hangcheck --help"),
    ("-x a", "two dashes"),
    ("--format jsn a", "did you mean json?"),
    ("--format", "--format needs a value: --format text|json|"),
    ("--output= a", "--output: '' is empty; name a file"),
    ("--timeout 5 a", "--timeout: '5' has no unit"),
    ("--timeout 5x a", "no known unit"),
    ("--timeout -5s a", "is no duration"),
    ("--timeout 1..5s a", "is no duration"),
    ("--timeout 0s a", "is no time at all"),
    ("--timeout 99999999999999999999h a", "more than a year"),
    ("--timeout ٣s a", "is no duration"),
    ("--quiet=1 a", "--quiet takes no value"),
    ("--predict yes a", "none of on, off"),
    ("--steer 5 a", "--steer: '5' is no plan; paste the one that --confirm has shown"),
    ("--watch 5s ./a", "--watch belongs to hangcheck attach and means nothing to run"),
    ("run --all ./a", "--all belongs to hangcheck attach and means nothing to run"),
    ("--no-stop", "--no-stop belongs to hangcheck attach and means nothing to run"),
    ("--all core c", "--all belongs to hangcheck attach and means nothing to core"),
    ("report --no-stop r", "--no-stop belongs to hangcheck attach and means nothing to report"),
    ("explain --watch 1 deadlock", "--watch belongs to hangcheck attach"),
    ("attach", "attach: the process's id (PID) is missing"),
    ("attach x", "no process id"),
    ("attach 0", "no process id"),
    ("attach 99999999999", "no process id"),
    ("attach 1 2", "'2' is one argument too many"),
    ("core", "CORE"),
    ("core a b c", "'c' is one argument too many"),
    ("report", "FILE"),
    ("explain deadlok", "did you mean deadlock?"),
    ("explain xxxxxxxxx", "it is one of deadlock, "),
  ])
  func refused(_ words: String, _ reason: String) {
    let error = #expect(throws: UsageError.self) {
      try Invocation.parse(words.split(separator: " ").map(String.init))
    }
    #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    #expect(error?.message.contains("\n") == false)
  }

  @Test(
    arguments: [
      ("--confirm a", nil), ("--steer 1@+1 a", nil),
      ("--confirm --predict off a", "--predict off"), ("--confirm --steer 1@+1 a", "--steer"),
    ] as [(String, String?)])
  func together(_ words: String, _ reason: String?) throws {
    let options = try Invocation.parse(words.split(separator: " ").map(String.init)).options
    #expect(options.unavailable?.contains(reason ?? "\n") == (reason == nil ? nil : true))
  }

  @Test func environmentAppliesBelowTheCommandLine() throws {
    let environment = " hang-threshold=50ms\tlog=/x no-follow quiet=on verbose=off timeout=1s\n"
    let options = try Invocation.parse(["--timeout", "9s", "a"], environment: environment).options
    var expected = Options()
    expected.hangThreshold = .milliseconds(50)
    expected.log = "/x"
    expected.follow = false
    expected.quiet = true
    expected.timeout = .seconds(9)
    #expect(options == expected)
  }

  @Test(arguments: [
    ("hang=1s", "unknown key 'hang'"),
    ("--quiet", "did you mean quiet?"),
    ("timeout", "timeout needs a value: timeout=DURATION"),
    ("timeout=x", "timeout: 'x' is no duration"),
    ("quiet=yes", "quiet is a switch"),
  ])
  func environmentRefused(_ text: String, _ reason: String) {
    let error = #expect(throws: UsageError.self) {
      try Invocation.parse(["a"], environment: text)
    }
    #expect(error?.message.hasPrefix("HANGCHECK_OPTIONS: ") == true)
    #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
  }

  @Test func everyOptionIsInTheHelp() {
    for entry in OptionEntry.all { #expect(Help.full.contains("--" + entry.name)) }
    let lines = Help.full.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count <= 60)
    #expect(lines.allSatisfy { $0.count <= 100 })
  }

  @Test(arguments: Finding.Kind.allCases) func everyKindIsExplained(_ kind: Finding.Kind) {
    let page = Explanations.page(for: kind)
    #expect(page.hasPrefix(kind.rawValue + "\n"))
    #expect(page.contains("How to fix it"))
    #expect(page.split(separator: "\n").allSatisfy { $0.count <= 80 })
  }

  @Test(arguments: [
    ("output", "output"), ("otuput", "output"), ("stack", "stacks"),
    ("infersion-threshold", "inversion-threshold"),
  ])
  func nearestSpelling(_ word: String, _ expected: String) {
    #expect(nearest(to: word, in: OptionEntry.all.map(\.name)) == expected)
    #expect(nearest(to: String(repeating: "x", count: 100_000), in: ["a"]) == nil)
  }
}
