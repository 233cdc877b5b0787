import HangReport
import Testing
import WaitForGraph

@Suite(.serialized) struct DeadlockTests {
  @Test(arguments: [
    ("abba", 2), ("three", 3), ("hundred", 100), ("named", 2), ("with", 2), ("blocked", 2),
    ("queues", 2),
  ])
  func cycle(scenario: String, length: Int) throws {
    let run = try Fixture.run([scenario], until: 1)
    #expect(run.reports.count == 1)
    let report = try #require(run.reports.first)
    #expect(report.mode == .inProcess)
    #expect(report.process.exit == nil)
    let finding = try #require(report.findings.first)
    #expect(report.findings.count == 1)
    #expect(finding.kind == .deadlock)
    #expect(finding.severity == .error)
    #expect(finding.certainty == .certain)
    #expect(finding.cycle.count == length)
    #expect(Set(finding.threads).count == length)
    #expect(Set(finding.resources).count == length)
    #expect(run.errors.contains("DEADLOCK in SwapFixture"))
    #expect(!report.threads.contains { $0.name == "hangcheck" })
    #expect(report.limits == nil)
  }

  @Test func sitesOfHoldsAndWaits() throws {
    let run = try Fixture.run(["abba"], until: 1)
    let report = try #require(run.reports.first)
    for name in ["cancel", "submit"] {
      let thread = try #require(report.threads.first { $0.name == name })
      let function = "func \(name)("
      let file = "Scenarios.swift"
      let (first, second) = name == "cancel" ? ("a.lock()", "b.lock()") : ("b.lock()", "a.lock()")
      let hold = try #require(thread.holds.first)
      #expect(thread.holds.count == 1)
      #expect(hold.stack.place == "\(file):\(try Fixture.line(first, after: function, in: file))")
      // The recorded frame is the drop-in's own: none of ours stands before the program's.
      #expect(hold.stack.first?.symbol?.contains("\(name)(") == true)
      let wait = try #require(thread.waitsFor)
      #expect(wait.stack.place == "\(file):\(try Fixture.line(second, after: function, in: file))")
      #expect(wait.stack.contains { $0.symbol == "InstrumentedLock.lock()" && $0.runtime })
      #expect(wait.stack.contains { $0.symbol?.contains("thread(_:_:)") == true })
      #expect(thread.state == .blocked)
    }
    let main = try #require(report.threads.first { $0.tid == report.process.pid })
    #expect(main.stack.contains { $0.symbol?.contains("waitForEver()") == true })
  }

  @Test func sitesOfClosures() throws {
    let report = try #require(try Fixture.run(["with"], until: 1).reports.first)
    let (file, function) = ("Scenarios.swift", "func nested(")
    for name in ["outer", "inner"] {
      let thread = try #require(report.threads.first { $0.name == name })
      #expect(
        thread.holds.first?.stack.place
          == "\(file):\(try Fixture.line("a.withLock", after: function, in: file))")
      #expect(
        thread.waitsFor?.stack.place
          == "\(file):\(try Fixture.line("b.withLock", after: function, in: file))")
    }
  }

  @Test func names() throws {
    let report = try #require(try Fixture.run(["named"], until: 1).reports.first)
    #expect(Set(report.resources.map(\.name)) == ["accounts", "journal"])
    let message = report.findings[0].message
    for name in ["cancel", "submit", "accounts", "journal"] {
      #expect(message.contains("\"\(name)\""))
    }
  }

  @Test func placesStandInForNames() throws {
    let report = try #require(try Fixture.run(["abba"], until: 1).reports.first)
    let line = try Fixture.line("NSLock()", after: "\"abba\"", in: "Scenarios.swift")
    #expect(Set(report.resources.map(\.name)) == ["SwapFixture/Scenarios.swift:\(line)"])
  }

  @Test func oneThreadAlone() throws {
    let run = try Fixture.run(["self"], until: 1)
    let finding = try #require(run.findings.first)
    #expect(run.output == "again\n")
    #expect(finding.cycle.count == 1)
    #expect(finding.cycle.first?.thread == finding.cycle.first?.ownedBy)
  }

  @Test func ownerExited() throws {
    let run = try Fixture.run(["exited"], until: 1)
    let report = try #require(run.reports.first)
    let edge = try #require(report.findings.first?.cycle.first)
    #expect(edge.ownedBy != nil)
    let owner = try #require(report.threads.first { $0.id == edge.ownedBy })
    #expect(owner.name == "leaver")
    let place =
      "Scenarios.swift:\(try Fixture.line("lock.lock()", after: "thread(\"leaver\")", in: "Scenarios.swift"))"
    #expect(owner.holds.first?.stack.place == place)
  }

  @Test func eachOnce() throws {
    let run = try Fixture.run(["two"], until: 2)
    #expect(run.reports.count == 2)
    #expect(run.findings.count == 2)
    #expect(Set(run.reports.map { Set($0.findings[0].threads) }).count == 2)
  }

  @Test(arguments: ["recursive", "timed", "healthy", "short", "parity", "forks"])
  func silent(scenario: String) throws {
    let run = try Fixture.run([scenario])
    #expect(run.isWhole, "\(run.output) \(run.errors)")
    #expect(run.findings.isEmpty)
    #expect(run.errors.isEmpty)
    if scenario == "parity" || scenario == "healthy" { #expect(run.output.hasPrefix("true\n")) }
  }
}
