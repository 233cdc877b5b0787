import Foundation
import HangReport
import Testing

/// `--confirm`, on programs that never deadlock by themselves.
@Suite("Confirm", .serialized) struct ConfirmTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var scenario: String
    /// Absent: nothing is predicted.
    var certainty: Finding.Certainty?
    var testDescription: String { scenario }
  }

  private func program(_ variant: String) async throws -> URL {
    try await Builder.shared.program(
      Fixture.folder.appending(path: "predicted.swift"), variant: variant,
      companions: ["support.swift"])
  }

  @Test(
    "what can happen is made to, and nothing else is told",
    arguments: [
      Case(scenario: "philosophers", certainty: .confirmed),
      Case(scenario: "queue", certainty: .confirmed),
      Case(scenario: "three", certainty: .confirmed),
      Case(scenario: "writer", certainty: .confirmed),
      Case(scenario: "queues", certainty: .confirmed),
      Case(scenario: "barrier", certainty: .confirmed),
      Case(scenario: "in-the-way", certainty: .confirmed),
      Case(scenario: "unreachable", certainty: .possible),
      Case(scenario: "gate"), Case(scenario: "hand-over-hand"), Case(scenario: "joined"),
    ], ["debug", "release"])
  func confirms(_ subject: Case, _ variant: String) async throws {
    let program = try await program(variant)
    let result = try await Gate.shared.pass {
      try Watched.run(["--confirm"], [program.path, subject.scenario])
    }
    #expect(result.outcome.status == .exited(subject.certainty == .confirmed ? 66 : 0))
    // The user's run alone is heard.
    #expect(result.outcome.outputText == "DONE\n")
    #expect(result.outcome.errorText == "")
    #expect(result.unreadable == nil)
    #expect(result.loud.allSatisfy { $0.kind == .potentialDeadlock })
    #expect(Set(result.loud.map(\.certainty)) == Set([subject.certainty].compactMap { $0 }))
    #expect(!isRunning(program.path, subject.scenario))
    for finding in result.loud {
      #expect(finding.severity == (subject.certainty == .confirmed ? .error : .warning))
      let command = finding.evidence.last?.label.contains("hangcheck --steer ") ?? false
      #expect(command == (subject.certainty == .confirmed))
    }
  }

  @Test("the command that is shown makes it happen again, on the program's own streams")
  func repeats() async throws {
    let program = try await program("debug")
    let result = try await Gate.shared.pass {
      try Watched.run(["--confirm"], [program.path, "three"])
    }
    let label = try #require(result.loud.first?.evidence.last?.label)
    let words = label.split(separator: " ").map(String.init)
    let plan = try #require(words.firstIndex(of: "--steer").map { words[$0 + 1] })
    #expect(label.hasSuffix(" -- \(program.path) three"))
    let again = try await Gate.shared.pass {
      try Watched.run(
        ["--steer", plan, "--on-deadlock", "terminate"], [program.path, "three"])
    }
    #expect(again.outcome.status == .exited(66))
    #expect(again.report?.findings.contains { $0.kind == .deadlock } == true)
  }

  @Test("an interrupt ends the attempts, with all that they started")
  func interrupt() async throws {
    let program = try await program("debug")
    let script = """
      errors=$(mktemp)
      env --default-signal "$1" --confirm -- "$2" unreachable 2>"$errors" &
      for ((i = 0; i < 200; i++)); do grep -q steering "$errors" && break; sleep 0.05; done
      kill -INT $!; wait $!; echo "status $?"; cat "$errors"; rm -f "$errors"
      """
    let outcome = try await Gate.shared.pass {
      try Child.run(["/bin/bash", "-c", script, "bash", Watched.tool, program.path], limit: 45)
    }
    #expect(outcome.outputText.hasPrefix("DONE\nstatus 0\n"), "\(outcome.outputText)")
    #expect(outcome.outputText.contains("that was interrupted"))
    #expect(outcome.outputText.contains("POTENTIAL DEADLOCK"))
    #expect(!outcome.leftOvers)
  }

  /// Attempts have sessions of their own, so their processes are looked for by what they run.
  private func isRunning(_ program: String, _ scenario: String) -> Bool {
    let wanted = Data("\(program)\0\(scenario)\0".utf8)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return names.contains { name in
      Int32(name) != nil
        && (try? Data(contentsOf: URL(filePath: "/proc/\(name)/cmdline"))) == wanted
    }
  }
}
