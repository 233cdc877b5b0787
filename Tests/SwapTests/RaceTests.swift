import HangReport
import Testing
import WaitForGraph

/// Values under `RaceChecked`, in programs of their own.
@Suite(.serialized) struct RaceTests {
  /// The function or file in which each side lies is that of the scenario: `write(_:)`, `read(_:)`,
  /// or the closure itself.
  @Test(arguments: [
    "write and write", "write and read", "read and write", "added to", "two mutexes",
    "once without the mutex", "written under a read lock", "read before the group's end",
    "around the once", "signalled before", "condition without its mutex", "two queues",
    "concurrent queue without a barrier", "operations without a dependency",
    "plain threads at once",
  ])
  func racy(scenario: String) throws {
    let run = try Fixture.run(["race: \(scenario)"])
    #expect(run.isWhole, "\(run.errors)")
    let finding = try #require(run.findings.first, "\(run.errors)")
    #expect(run.findings.count == 1)
    #expect(finding.kind == .dataRace)
    #expect(finding.severity == .error)
    #expect(finding.certainty == .certain)
    #expect(finding.message.contains("\"shared\""))
    #expect(finding.evidence.count == 2)
    #expect(finding.evidence.allSatisfy { $0.stack.place?.hasPrefix("Races.swift:") == true })
    #expect(finding.evidence.allSatisfy { $0.stack.place?.hasSuffix(":0") == false })
    #expect(finding.evidence.contains { $0.label.contains("wrote") })
    #expect(finding.threads.count == 2)
  }

  @Test(arguments: [
    "a mutex", "a value's mutex", "recursive, unfair, synchronized", "a read-write lock",
    "a group", "once", "a condition", "a channel", "queues", "work items", "operations",
    "a thread's beginning and end", "said", "tasks", "in a forked child",
  ])
  func ordered(scenario: String) throws {
    let run = try Fixture.run(["ordered: \(scenario)"])
    #expect(run.isWhole, "\(run.output)\(run.errors)")
    #expect(run.findings.isEmpty, "\(run.errors)")
  }

  @Test func bothSidesWithWhatTheyHeld() throws {
    let run = try Fixture.run(["race: two mutexes"])
    let report = try #require(run.reports.first)
    let finding = try #require(report.findings.first)
    #expect(finding.evidence[0].label.hasPrefix("\"second\" wrote value \"shared\""))
    #expect(finding.evidence[0].label.contains("holding mutex \"b\""))
    #expect(finding.evidence[1].label.hasPrefix("\"first\" wrote value \"shared\""))
    #expect(finding.evidence[1].label.contains("holding mutex \"a\""))
    #expect(report.resources.contains { $0.kind == .value && $0.name == "shared" })
    let line = try Fixture.line("shared.value = 1", after: "func write(", in: "Races.swift")
    #expect(finding.evidence.allSatisfy { $0.stack.place == "Races.swift:\(line)" })
  }

  @Test func theLockThatIsHeldElsewhere() throws {
    let run = try Fixture.run(["race: once without the mutex"])
    let message = try #require(run.findings.first).message
    #expect(message.contains("mutex \"guard\" at 0x"))
    #expect(message.contains("was held at 18 of the 18 accesses before"))
    #expect(run.errors.contains("Hold mutex \"guard\""))
  }

  @Test func aWriteOverAnotherIsANote() throws {
    let run = try Fixture.run(["stale write"])
    let finding = try #require(run.findings.first, "\(run.errors)")
    #expect(run.findings.count == 1)
    #expect(finding.severity == .note)
    #expect(finding.certainty == .possible)
    #expect(finding.evidence.map { $0.label.contains("wrote") } == [true, true, false])
    #expect(finding.message.contains("\"guard\""))
  }

  @Test func sampled() throws {
    let run = try Fixture.run(["sampled"])
    #expect(run.isWhole && run.findings.isEmpty)
  }

  @Test(arguments: ["two mutexes", "once without the mutex", "write and read"])
  func underTheToolAsWell(scenario: String) throws {
    let tool = [Fixture.path("hangcheck"), "--timeout", "20s"]
    let run = try Fixture.run(["race: \(scenario)"], under: tool)
    #expect(run.status == 66)
    let report = try #require(run.reports.first)
    let alone = try #require(try Fixture.run(["race: \(scenario)"]).reports.first)
    #expect(report.mode == .run)
    #expect(report.findings.map(\.kind) == [.dataRace])
    #expect(report.findings[0].fingerprint == alone.findings[0].fingerprint)
    let places = report.findings[0].evidence.map(\.stack.place)
    #expect(places == alone.findings[0].evidence.map(\.stack.place))
  }
}
