import Foundation
import HangReport
import Testing

@Suite(.serialized) struct QuitTests {
  @Test func showsWhoWaitsAndWhoHolds() throws {
    let run = try Fixture.run(["quit"], limit: 60)
    #expect(run.isWhole)
    let lines = run.errors.components(separatedBy: "\n")
    #expect(
      lines[0].wholeMatch(of: /hangcheck: SwapFixture \(pid \d+\): 3 threads, nothing hangs/) != nil
    )
    let waiter = try #require(lines.first { $0.contains("\"waiter\" (tid ") })
    #expect(waiter.contains("waiting for mutex \"accounts\" at 0x"))
    #expect(waiter.contains(", which \"holder\" has, for "))
    let holder = try #require(lines.first { $0.contains("\"holder\" (tid ") })
    #expect(holder.contains("waiting for mutex \"gate\" at 0x"))
    #expect(holder.contains(", which main thread has, for "))
    let taken = try Fixture.line("lock.lock()", after: "thread(\"holder\")", in: "Quitting.swift")
    #expect(holder.contains("; holds mutex \"accounts\""))
    #expect(holder.contains("SwapFixture/Quitting.swift:\(taken) in "))
    #expect(lines.contains { $0.contains("main thread") && $0.contains("holds mutex \"gate\"") })
    // Whole stacks, and nothing of ours.
    #expect(lines.contains { $0.hasPrefix("    #0 ") })
    #expect(!run.errors.contains("hangcheck-log"))
  }

  @Test func aDeadlockThatWasToldIsNamed() throws {
    let run = try Fixture.run(["quit in a deadlock"], limit: 60)
    #expect(run.isWhole)
    #expect(run.errors.contains("): 3 threads, 1 deadlock\n"))
    #expect(!run.errors.contains("nothing hangs"))
  }

  @Test(arguments: ["quit twice", "quit without text", "quit caught as a crash", "quit ignored"])
  func dumps(scenario: String) throws {
    let run = try Fixture.run([scenario], limit: 60)
    #expect(run.output == "DONE\n")
    #expect(run.status == 0)
    #expect(
      run.errors.components(separatedBy: "hangcheck: ").count == (scenario == "quit twice" ? 3 : 2))
  }

  @Test func theProgramsOwnHandlerStays() throws {
    let run = try Fixture.run(["quit handled"], limit: 60)
    #expect(run.output == "mine\nDONE\n")
    #expect(
      run.errors == "hangcheck: dump-on-quit: the program handles SIGQUIT itself, and keeps it\n")
  }

  @Test func isGivenBack() throws {
    let stopped = try Fixture.run(["quit given back"], limit: 60)
    #expect(stopped.signal == SIGQUIT)
    let child = try Fixture.run(["quit in a child"], limit: 60)
    #expect(child.output == "child \(SIGQUIT)\nDONE\n")
    #expect(child.errors.isEmpty)
  }

  /// Its handler could set nothing in motion.
  @Test func aStandstillIsStillSeen() throws {
    let run = try Fixture.run(["semaphores"], until: 1, limit: 60, options: "dump-on-quit")
    #expect(run.findings.map(\.kind) == [.deadlock])
  }
}
