import HangReport
import Testing

/// Lock orders of drop-ins, in programs of their own.
@Suite(.serialized) struct PredictionTests {
  private static let within = "predict=on"

  @Test func eachCycleIsFoundWhateverAddressesAreUsedAgain() throws {
    let run = try Fixture.run(
      ["predicted: a queue after a value's mutex"], options: Self.within)
    #expect(run.isWhole, "\(run.errors)")
    #expect(run.findings.map(\.kind) == [.potentialDeadlock, .potentialDeadlock], "\(run.errors)")
    #expect(names(run) == [["prices", "stock"], ["shop.journal", "stock"]], "\(run.errors)")
  }

  /// The agent does not see a Mutex that is free: the drop-in tells it.
  @Test(arguments: [
    "a value's mutex", "a value's mutex that somebody has", "names of what is gone",
  ])
  func underTheToolAsWell(scenario: String) throws {
    let alone = try Fixture.run(["predicted: \(scenario)"], options: Self.within)
    let run = try Fixture.run(["predicted: \(scenario)"], under: Self.tool)
    #expect(alone.isWhole && run.output.hasSuffix("DONE\n"), "\(alone.errors)\(run.errors)")
    #expect(run.reports.map(\.mode) == [.run])
    #expect(run.findings.map(\.kind) == [.potentialDeadlock], "\(run.errors)")
    #expect(names(run) == [["prices", "stock"]], "\(run.errors)")
    #expect(names(alone) == names(run), "\(alone.errors)")
    #expect(alone.findings.map(\.fingerprint) == run.findings.map(\.fingerprint))
    let places = run.findings.flatMap { $0.evidence.map(\.stack.place) }
    #expect(alone.findings.flatMap { $0.evidence.map(\.stack.place) } == places)
  }

  @Test func aMutexThatIsGoneHasNoOrders() throws {
    let scenario = ["unpredicted: other mutexes at the same addresses"]
    let alone = try Fixture.run(scenario, options: Self.within)
    #expect(alone.isWhole && alone.findings.isEmpty, "\(alone.errors)")
    let run = try Fixture.run(scenario, under: Self.tool)
    #expect(run.isWhole && run.findings.isEmpty, "\(run.errors)")
  }

  /// Its hold is on record as well, and the kernel refuses the wait as ever.
  @Test func aMutexThatIsTakenAgainUnderTheTool() throws {
    let run = try Fixture.run(["a value's mutex, taken again"], under: Self.tool)
    #expect(run.findings.map(\.kind) == [.deadlock], "\(run.errors)")
    #expect(names(run) == [["prices"]], "\(run.errors)")
  }

  private static let tool = [Fixture.path("hangcheck"), "--timeout", "20s"]

  @Test func whatIsGoneHandsNothingOver() throws {
    let run = try Fixture.run(["predicted: told to what is gone"], options: Self.within)
    #expect(run.isWhole, "\(run.errors)")
    #expect(names(run) == [["first", "second"]], "\(run.errors)")
  }

  @Test func whatComesAfterItAtItsAddressDoes() throws {
    let run = try Fixture.run(
      ["unpredicted: told to another at the same address"], options: Self.within)
    #expect(run.isWhole, "\(run.errors)")
    #expect(run.findings.isEmpty, "\(run.errors)")
  }

  /// Of what each cycle is made of.
  private func names(_ run: RunResult) -> [[String]] {
    run.reports.flatMap { report in
      report.findings.map { finding in
        report.resources.filter { finding.resources.contains($0.id) }.map { $0.name ?? "" }.sorted()
      }
    }.sorted { $0.joined() < $1.joined() }
  }
}
