import HangReport
import Testing

/// Queues, groups and operations by their drop-ins.
@Suite(.serialized) struct QueueTests {
  /// What traps is in the log before it does.
  @Test(arguments: [
    ("sync self", "deadlock"), ("sync self through target", "deadlock"), ("sync main", "deadlock"),
    ("left too often", "unbalancedGroup"),
    ("resumed too often", "queueMisuse"), ("released suspended", "queueMisuse"),
    ("released inactive", "queueMisuse"),
  ])
  func toldBeforeTheTrap(scenario: String, kind: String) throws {
    let run = try Fixture.run([scenario])
    #expect(run.findings.map(\.kind.rawValue) == [kind])
    #expect(run.signal == 4)
    #expect(!run.output.contains("unreachable"))
  }

  @Test(arguments: [("abandoned group", "unbalancedGroup"), ("barrier on global", "queueMisuse")])
  func mistakesThatGoOn(scenario: String, kind: String) throws {
    let run = try Fixture.run([scenario])
    #expect(Set(run.findings.map(\.kind.rawValue)) == [kind])
    #expect(run.isWhole)
  }

  @Test(arguments: [
    ("operation circle", "deadlock"), ("operation circle, queued before", "deadlock"),
    // Nobody waits for it yet: what comes of it is a trap.
    ("target circle", "queueMisuse"),
  ])
  func circles(scenario: String, kind: String) throws {
    let run = try Fixture.run([scenario], until: 1)
    #expect(run.findings.map(\.kind.rawValue) == [kind])
  }

  @Test(arguments: [
    "queues in order", "groups that end early", "queues that come and go", "operations in order",
  ])
  func nothingIsWrong(scenario: String) throws {
    let run = try Fixture.run([scenario])
    #expect(run.findings.isEmpty)
    #expect(run.isWhole)
  }

  @Test(arguments: ["parity of dispatch", "parity of operations"])
  func likeTheOriginals(scenario: String) throws {
    let run = try Fixture.run([scenario])
    #expect(run.output.replacing("[] ", with: "") == "[]\nDONE\n")
    #expect(run.findings.isEmpty)
  }
}
