import Testing
import WaitForGraph

@testable import HangReport

private func rules(_ text: String) throws -> [SuppressionRule] {
  try SuppressionRule.parse(Array(text.utf8))
}

/// Two findings, of which the second is about a queue that has a name.
private let report: HangReport = {
  var made = Fixture.crosswise
  made.resource(3, .queue, name: "com.example.cache")
  made.thread(
    3, "third", holds: [(3, .exclusive, made.stack("Cache.load(_:)", 50))],
    waits: (3, .exclusive, made.stack("closure #1 in Cache.trim", 51)))
  return made.report
}()

/// Which of the two findings a rule suppresses.
private func suppressed(_ text: String, today: String = "2026-06-15") throws -> [Int] {
  var screen = FindingScreen(rules: try rules(text), rulesFile: "x", today: today)
  let rest = screen.screened(report).findings.map(\.fingerprint)
  return report.findings.indices.filter { !rest.contains(report.findings[$0].fingerprint) }
}

@Suite struct SuppressionTests {
  @Test("the report under test has two findings") func premise() {
    #expect(report.findings.count == 2)
    #expect(Set(report.findings.map(\.fingerprint)).count == 2)
  }

  @Test(
    arguments: [
      ("kind:deadlock", [0, 1]), ("kind:dead*", [0, 1]), ("kind:*", [0, 1]), ("kind:hang", []),
      ("symbol:Store.cancel()", [0]), ("symbol:Store.cancel", []), ("symbol:Store.*", [0]),
      ("symbol:\"closure #? in Cache.trim\"", [1]), ("symbol:closure*#1*trim", [1]),
      ("symbol:pthread_mutex_lock", [0, 1]), ("symbol:store.cancel()", []),
      ("symbol:\"closure #1 in main\"", [0, 1]),
      ("file:/src/app/main.swift", [0, 1]), ("file:main.swift", [0, 1]),
      ("file:app/main.swift", [0, 1]),
      ("file:p/main.swift", []), ("file:ain.swift", []), ("file:src/*.swift", [0, 1]),
      ("file:other.swift", []), ("image:libFoundation.so", [0, 1]), ("image:libFoundation", []),
      ("image:.build/app", [0, 1]), ("image:libF*.so*", [0, 1]),
      ("resource:timers", [0]), ("resource:com.example.*", [1]), ("resource:*", [0, 1]),
      ("resource:time", []), ("symbol:Store.* resource:com.*", []),
      ("kind:deadlock symbol:Cache.load(_:) resource:com.example.cache", [1]),
      ("symbol:Cache.load(_:) symbol:Store.cancel()", []),
      ("symbol:Cache.load(_:)\nsymbol:Store.cancel()", [0, 1]),
      ("symbol:\\*", []), ("symbol:Store.cancel\\()", [0]), ("# kind:deadlock", []), ("", []),
      ("\t kind:deadlock \t # why", [0, 1]),
      ("kind:deadlock until:2026-06-15", [0, 1]), ("kind:deadlock until:2026-06-14", []),
      ("kind:deadlock until:2028-02-29 reason:later", [0, 1]),
    ] as [(String, [Int])])
  func matches(_ text: String, _ expected: [Int]) throws {
    #expect(try suppressed(text) == expected)
  }

  @Test("the rule that a report shows suppresses its finding and no other", arguments: [0, 1])
  func shownRule(_ index: Int) throws {
    #expect(try suppressed(SuppressionRule.line(for: report.findings[index])) == [index])
    let text = TextRenderer(options: .init(showsRules: true, sourceLines: false)).render(report)
    let shown = text.split(separator: "\n").filter { $0.hasPrefix("To suppress it: ") }
    #expect(shown.count == 2)
    #expect(try suppressed(String(shown[index].dropFirst(16))) == [index])
  }

  @Test(arguments: [
    ("knd:deadlock", 1, "did you mean kind?"), ("\nkind:deadlok", 2, "did you mean deadlock?"),
    ("kind:", 1, "kind has no value"), ("kind: deadlock", 1, "kind has no value"),
    ("symbol:\"\"", 1, "symbol has no value"), ("kind", 1, "kind needs a colon"),
    ("deadlock", 1, "'deadlock' is no condition"), ("kind:*lox*", 1, "is no kind of finding"),
    ("kind:hang#1", 1, "is no kind of finding"),
    ("reason:x", 1, "needs a condition"), ("until:2027-01-01", 1, "needs a condition"),
    ("kind:hang until:tomorrow", 1, "is no date"), ("kind:hang until:2027-1-1", 1, "is no date"),
    ("kind:hang until:2027-02-29", 1, "is no date"),
    ("kind:hang until:2027-13-01", 1, "is no date"),
    ("kind:hang until:2027-00-01", 1, "is no date"),
    ("kind:hang until:2027-01-00", 1, "is no date"),
    ("kind:hang until:2100-02-29", 1, "is no date"), ("kind:hang until:20270-1-1", 1, "is no date"),
    ("kind:hang until:2027-01-01 until:2028-01-01", 1, "two dates"),
    ("kind:hang reason:a reason:b", 1, "two reasons"),
    ("symbol:\"abc", 1, "does not end"), ("symbol:\"a\"b", 1, "put a space between"),
    ("symbol:a\\", 1, "ends in a backslash"), ("fingerprint:12", 1, "is no fingerprint"),
    ("fingerprint:C5CAF35E2A40745C", 1, "is no fingerprint"),
    ("fingerprint:g*", 1, "is no fingerprint"),
    ("kind:hang\nkind:hang\n\n#\nx:y\nkind", 5, "unknown key 'x'"),
    ("kind:hang \u{1}", 1, "control character"), ("kind:h\u{7f}", 1, "control character"),
    (String(repeating: "x", count: 5000), 1, "is no condition"),
  ])
  func refused(_ text: String, line: Int, says: String) {
    let error = #expect(throws: SuppressionError.self) { try rules(text) }
    #expect(error?.line == line)
    #expect(error?.reason.contains(says) == true, "\(error?.reason ?? "")")
    #expect((error?.reason.count ?? 0) < 300 && error?.reason.contains("\n") == false)
  }

  @Test(
    "what is no text",
    arguments: [
      [0x6b, 0xff, 0x0a], [0x00], [0x7f, 0x45, 0x4c, 0x46, 0x02], [0xfe, 0xff, 0x00, 0x6b],
      [0xef, 0xbb],
    ] as [[UInt8]])
  func binary(_ bytes: [UInt8]) {
    #expect(throws: SuppressionError.self) { try SuppressionRule.parse(bytes) }
  }

  @Test("marks and line ends of other systems")
  func lineEnds() throws {
    let text = "\u{feff}# one\r\nkind:hang\r\n\r\nsymbol:\"a b\" # two\r\n"
    #expect(try rules(text).map(\.line) == [2, 4])
    #expect(try rules(text).map(\.text) == ["kind:hang", "symbol:\"a b\""])
    #expect(try rules("").isEmpty && rules("\n\n \t\n# only words").isEmpty)
  }
}

@Suite struct FindingScreenTests {
  @Test("what was suppressed is kept, by whose word")
  func kept() throws {
    var screen = FindingScreen(
      rules: try rules("\nresource:timers reason:\"see 12\" until:2030-01-01\nkind:deadlock"),
      rulesFile: "a.supp", today: "2026-01-01T00:00:00.000Z")
    let result = screen.screened(report)
    #expect(result.findings.isEmpty && result.threads.isEmpty && result.resources.isEmpty)
    let kept = try #require(result.suppressed)
    #expect(kept.map(\.fingerprint) == report.findings.map(\.fingerprint))
    #expect(kept.map(\.source) == ["a.supp:2", "a.supp:3"])
    #expect(kept[0].reason == "see 12" && kept[1].reason == nil)
    #expect(screen.remarks == [])
    #expect(try HangReport(json: result.json()) == result)
    #expect(
      TextRenderer().render(result) == """
        hangcheck: 1 finding (deadlock) suppressed by a.supp:2: see 12
        hangcheck: 1 finding (deadlock) suppressed by a.supp:3: kind:deadlock

        """)
  }

  @Test("a report that nothing is suppressed in stays as it is")
  func untouched() throws {
    var screen = FindingScreen(rules: try rules("kind:hang"), rulesFile: "a")
    #expect(screen.screened(report) == report)
    #expect(screen.remarks == ["a:1: the suppression has matched nothing: kind:hang"])
    #expect(try !String(decoding: report.json(), as: UTF8.self).contains("suppressed"))
  }

  @Test("expired rules are told")
  func expired() throws {
    var screen = FindingScreen(
      rules: try rules("kind:hang until:2025-12-31\nkind:deadlock until:2025-12-31"),
      rulesFile: "a", today: "2026-01-01")
    #expect(screen.screened(report) == report)
    #expect(screen.remarks.count == 2)
    #expect(screen.remarks[0].contains("expired on 2025-12-31, it would have matched nothing:"))
    #expect(screen.remarks[1].contains("expired on 2025-12-31, it would have matched:"))
  }

  @Test("a growing report: each finding is judged once, by what was known when it came")
  func growing() throws {
    var screen = FindingScreen(rules: try rules("resource:timers"), rulesFile: "a")
    var early = report
    early.findings.removeLast()
    #expect(screen.screened(growing: early).findings.isEmpty)
    var late = report
    late.resources.removeAll { $0.name == "timers" }
    #expect(screen.screened(growing: late).findings == [report.findings[1]])
    #expect(screen.screened(growing: late).suppressed?.count == 1)
  }

  @Test("what stands in a baseline is no news")
  func baseline() throws {
    var old = report
    old.findings.removeLast()
    var screen = FindingScreen(baseline: [old], baselineFile: "old.json")
    let result = screen.screened(report)
    #expect(result.findings == [report.findings[1]])
    #expect(result.suppressed?.map(\.source) == ["old.json"])
    #expect(result.threads == report.threads)
    #expect(TextRenderer().renderSuppressed(result).contains("by the baseline old.json"))
  }

  @Test("a baseline hands on what an earlier one knew, not what a rule suppressed")
  func chained() throws {
    var first = report
    first.findings.removeLast()
    var screen = FindingScreen(
      rules: try rules("resource:com.*"), rulesFile: "a", baseline: [first], baselineFile: "1.json")
    let second = screen.screened(report)
    #expect(second.findings.isEmpty && second.suppressed?.count == 2)
    var next = FindingScreen(baseline: [second], baselineFile: "2.json")
    #expect(next.screened(report).findings == [report.findings[1]])
    // Nor does what was suppressed before get lost.
    #expect(next.screened(second).suppressed == second.suppressed)
  }
}

@Suite struct WildcardTests {
  /// By recursion, as the definition has it.
  private func naive(_ pattern: ArraySlice<Wildcard.Token>, _ text: Substring) -> Bool {
    guard let first = pattern.first else { return text.isEmpty }
    let rest = pattern.dropFirst()
    switch first {
    case .any: return naive(rest, text) || !text.isEmpty && naive(pattern, text.dropFirst())
    case .one: return !text.isEmpty && naive(rest, text.dropFirst())
    case .scalar(let scalar):
      return text.unicodeScalars.first == scalar && naive(rest, text.dropFirst())
    }
  }

  @Test("agrees with the definition on every short pattern and text")
  func exhaustive() {
    let tokens: [Wildcard.Token] = [.any, .one, .scalar("a"), .scalar("b")]
    var patterns: [[Wildcard.Token]] = [[]]
    for _ in 0..<5 { patterns += patterns.flatMap { p in tokens.map { p + [$0] } } }
    var texts = [""]
    for _ in 0..<4 { texts += texts.flatMap { [$0 + "a", $0 + "b"] } }
    for pattern in Set(patterns) {
      for text in Set(texts)
      where
        Wildcard(tokens: pattern).matches(text) != naive(pattern[...], text[...])
      {
        Issue.record("\(Wildcard(tokens: pattern).text) and \(text)")
      }
    }
  }

  @Test("a hostile pattern takes no for ever")
  func hostile() {
    let tokens: [Wildcard.Token] = (0..<200).flatMap { _ in [.any, .scalar("a")] } + [.scalar("b")]
    #expect(!Wildcard(tokens: tokens).matches(String(repeating: "a", count: 20_000)))
  }
}
