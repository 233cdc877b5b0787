import HangReport
import Testing
import WaitForGraph

@Suite struct FindingTests {
  @Test("a deadlock's finding has all that a reader needs")
  func crosswise() throws {
    let finding = try #require(Fixture.crosswise.findings.first)
    #expect(finding.kind == .deadlock)
    #expect(finding.severity == .error)
    #expect(finding.certainty == .certain)
    #expect(finding.threads == [ThreadID(1), ThreadID(2)])
    #expect(finding.resources == [ResourceID(2), ResourceID(1)])
    #expect(finding.cycle.map(\.ownedBy) == [ThreadID(2), ThreadID(1)])
    #expect(
      finding.message == """
        "cancel" waits for mutex 0x55d0c0de1080, which "schedule" holds; \
        "schedule" waits for mutex "timers" at 0x55d0c0de1040, which "cancel" holds
        """)
    #expect(
      finding.evidence.map(\.label) == [
        "\"schedule\" took mutex 0x55d0c0de1080 here",
        "\"cancel\" waits for mutex 0x55d0c0de1080 here",
        "\"cancel\" took mutex \"timers\" at 0x55d0c0de1040 here",
        "\"schedule\" waits for mutex \"timers\" at 0x55d0c0de1040 here",
      ])
    #expect(finding.evidence.map(\.thread?.rawValue) == [2, 1, 1, 2])
    #expect(finding.evidence.allSatisfy { !$0.stack.isEmpty })
  }

  @Test("the message builder says the same as the finding")
  func builder() {
    let made = Fixture.ring(3)
    let deadlock = WaitForGraph(made.snapshot).deadlocks()[0]
    let builder = MessageBuilder(
      threads: made.threads, resources: made.resources, process: made.process)
    #expect(builder.message(for: deadlock) == made.findings[0].message)
    #expect(made.findings[0].message.contains("philosopher 2"))
  }

  @Test("threads that share a name are told apart; inherited and missing names are numbers")
  func names() {
    var made = Fixture()
    made.resource(1)
    made.resource(2)
    made.thread(1, "same", holds: [(1, .exclusive, [])], waits: (2, .exclusive, []))
    made.thread(2, "same", holds: [(2, .exclusive, [])], waits: (1, .exclusive, []))
    made.thread(3, "app", waits: (1, .exclusive, []))
    #expect(
      made.findings[0].message == """
        "same" (tid 4712) waits for mutex 0x55d0c0de1080, which "same" (tid 4713) holds; \
        "same" (tid 4713) waits for mutex 0x55d0c0de1040, which "same" (tid 4712) holds; \
        thread 4714 waits behind them
        """)
    #expect(made.text().contains("  thread 4714 for A at an unknown place"))
    #expect(made.findings[0].evidence.isEmpty)
  }

  @Test("names cannot play with the terminal")
  func hostileNames() {
    var made = Fixture.selfDeadlock
    made.threads[0].name = "a\u{1b}[2Jb\nc\u{202e}d"
    #expect(made.text().contains(#""a\u{1b}[2Jb\u{a}c\u{202e}d" waits for a mutex"#))
  }
}
