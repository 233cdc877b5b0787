import Foundation
import HangReport
import Testing

/// What `hangcheck attach` does to a process, and what it says where it can do nothing.
@Suite("Attach") struct AttachTests {
  private static func fixture(_ name: String) throws -> Fixture {
    try #require(Fixture.table.first { $0.name == name })
  }

  @Test("killed in the midst of a look, it leaves the process as it was")
  func killed() async throws {
    let fixture = try Self.fixture("mutex-abba")
    let program = try await Builder.shared.program(fixture)
    let problems = try await Gate.shared.pass {
      let target = try Target(Watched.command(fixture, program))
      defer { target.end() }
      usleep(500_000)
      let stops: Set<Character> = ["t", "T"]
      var problems: [String] = []
      for round in 0..<20 {
        let tool = try Target([Watched.tool, "attach", "\(target.pid)"])
        usleep(UInt32.random(in: 0..<150_000))
        tool.end()
        var states = target.states
        for _ in 0..<50 where !states.isDisjoint(with: stops) || target.tracer != "0" {
          usleep(10_000)
          states = target.states
        }
        if !states.isDisjoint(with: stops) || target.tracer != "0" {
          problems.append("round \(round): \(states), traced by \(target.tracer)")
        }
      }
      let result = try Attached.run(["\(target.pid)"])
      if !result.loud.contains(where: { $0.kind == .deadlock }) { problems.append("no deadlock") }
      return problems
    }
    #expect(problems.isEmpty)
  }

  @Test("a process that is stopped stays so, and no thread is left stopped in another one")
  func stopped() async throws {
    let fixture = try Self.fixture("mutex-abba")
    let program = try await Builder.shared.program(fixture)
    try await Gate.shared.pass {
      let target = try Target(Watched.command(fixture, program))
      defer { target.end() }
      usleep(300_000)
      kill(target.pid, SIGSTOP)
      usleep(100_000)
      #expect(target.states == ["T"])
      let result = try Attached.run(["\(target.pid)"])
      #expect(result.report != nil)
      usleep(50_000)
      #expect(target.states == ["T"])
      kill(target.pid, SIGCONT)
      usleep(100_000)
      #expect(target.states.isDisjoint(with: ["T", "t"]))
    }
  }

  @Test("what the record adds is there where the program was started under hangcheck")
  func underHangcheck() async throws {
    let fixture = try Self.fixture("rwlock-upgrade")
    let program = try await Builder.shared.program(fixture)
    try await Gate.shared.pass {
      let tool = try Target(
        [Watched.tool, "run", "--on-deadlock", "continue", "--output", "/dev/null", "--"]
          + Watched.command(fixture, program))
      defer { tool.end() }
      usleep(2_500_000)
      let children = try String(
        contentsOfFile: "/proc/\(tool.pid)/task/\(tool.pid)/children", encoding: .utf8)
      let pid = try #require(Int32(children.split(separator: " ").first ?? ""))
      let result = try Attached.run(["\(pid)"])
      let found = try #require(result.loud.first { $0.kind == .deadlock })
      #expect(found.evidence.contains { $0.label.contains("took") && !$0.stack.isEmpty })
      #expect(result.report?.limits?.contains { $0.contains("where locks were taken") } != true)
    }
  }

  @Test("without a stop the deadlock is told as well")
  func noStop() async throws {
    let fixture = try Self.fixture("mutex-abba")
    let program = try await Builder.shared.program(fixture)
    let result = try await Gate.shared.pass {
      let target = try Target(Watched.command(fixture, program))
      defer { target.end() }
      usleep(500_000)
      return try Attached.run(["--no-stop", "\(target.pid)"])
    }
    #expect(result.outcome.status == .exited(66))
    let found = try #require(result.loud.first { $0.kind == .deadlock })
    #expect(result.report?.names(ofCycle: found) == ["alice", "bob"])
  }

  @Test("--watch looks until something is wrong")
  func watch() async throws {
    let fixture = try Self.fixture("mutex-abba")
    let program = try await Builder.shared.program(fixture)
    let (late, well) = try await Gate.shared.pass {
      let target = try Target(
        ["/bin/sh", "-c", "sleep 1.5; exec \"$0\" \"$@\""] + Watched.command(fixture, program))
      defer { target.end() }
      usleep(100_000)
      let well = try Attached.run(["--watch", "500ms", "\(target.pid)"])
      // Looks in the moment of the exec are refused, and another one is made.
      var late = try Attached.run(["--watch", "20", "\(target.pid)"])
      if late.report == nil { late = try Attached.run(["--watch", "20", "\(target.pid)"]) }
      return (late, well)
    }
    #expect(well.outcome.status == .exited(0))
    #expect(late.outcome.status == .exited(66))
    #expect(late.outcome.seconds < 10)
  }

  @Test("what cannot be looked at is said in one line, at status 69")
  func refusals() async throws {
    try await Gate.shared.pass {
      func refused(_ pid: Int32, _ words: String) throws {
        let outcome = try Child.run([Watched.tool, "attach", "\(pid)"], limit: 10)
        #expect(outcome.status == .exited(69), "\(words)")
        #expect(outcome.errorText.contains(words), "\(outcome.errorText)")
        #expect(outcome.errorText.split(separator: "\n").count == 1)
        #expect(outcome.output.isEmpty)
      }
      let target = try Target(["/bin/sleep", "30"])
      kill(target.pid, SIGKILL)
      usleep(100_000)
      try refused(target.pid, "waits to be reaped")
      target.end()
      try refused(target.pid, "no process \(target.pid)")
      try refused(Int32.max, "no process")
      let status = (try? String(contentsOfFile: "/proc/2/comm", encoding: .utf8)) ?? ""
      if status == "kthreadd\n" { try refused(2, "a thread of the kernel") }
      // hangcheck takes the place of the shell whose id it is given.
      let own = try Child.run(["/bin/sh", "-c", "exec \"$0\" attach $$", Watched.tool], limit: 10)
      #expect(own.status == .exited(69))
      #expect(own.errorText.contains("hangcheck itself"))
    }
  }

  @Test("a process with threads is named for a thread's id")
  func threadID() async throws {
    let fixture = try Self.fixture("mutex-abba")
    let program = try await Builder.shared.program(fixture)
    try await Gate.shared.pass {
      let target = try Target(Watched.command(fixture, program))
      defer { target.end() }
      usleep(500_000)
      let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(target.pid)/task")
      let other = try #require(names.compactMap { Int32($0) }.first { $0 != target.pid })
      let outcome = try Child.run([Watched.tool, "attach", "\(other)"], limit: 10)
      #expect(outcome.status == .exited(69))
      #expect(outcome.errorText.contains("a thread of process \(target.pid)"))
    }
  }
}
