import Foundation
import HangReport
import Testing

/// What becomes of the program when hangcheck is killed, and of hangcheck when the program is.
@Suite("Survival") struct SurvivalTests {
  private func fixture(_ name: String) throws -> Fixture {
    try #require(Fixture.table.first { $0.name == name })
  }
  /// Runs a bash script with the tool as $1 and the program, with its arguments, from $2 on.
  private func bash(_ script: String, _ name: String) async throws -> Child.Outcome {
    let fixture = try fixture(name)
    let program = try await Builder.shared.program(fixture)
    return try await Gate.shared.pass {
      try Child.run(
        ["/bin/bash", "-c", script, "bash", Watched.tool, program.path] + fixture.arguments,
        limit: 45)
    }
  }

  @Test(
    "kill -9 of hangcheck leaves the program running and right",
    arguments: ["near-contention", "near-fork-storm", "near-stopped"],
    ["0.3", "0.6", "1.1"])
  func killedTool(_ name: String, _ moment: String) async throws {
    // Only that the program says DONE matters: its status goes to nobody.
    let script = """
      tool=$1; shift
      out=$(mktemp); report=$(mktemp)
      "$tool" run --output "$report" -- "$@" >"$out" 2>&1 &
      sleep \(moment); kill -9 $!; wait $! 2>/dev/null
      for ((i = 0; i < 150; i++)); do grep -q DONE "$out" && break; sleep 0.1; done
      cat "$out"; rm -f "$out" "$report"
      """
    let outcome = try await bash(script, name)
    #expect(outcome.outputText.hasSuffix("DONE\n"), "\(outcome.outputText)")
    #expect(!outcome.leftOvers)
  }

  @Test("kill -9 of the program ends hangcheck with 137 and a report")
  func killedProgram() async throws {
    let script = """
      tool=$1; shift
      report=$(mktemp)
      "$tool" run --format json --output "$report" -- "$@" &
      watcher=$!; sleep 0.8
      for child in $(cat /proc/$watcher/task/*/children); do kill -9 $child; done
      wait $watcher; echo "status $?"; cat "$report"; rm -f "$report"
      """
    let outcome = try await bash(script, "near-long-hold")
    let text = outcome.outputText
    #expect(text.hasPrefix("status 137\n"), "\(text)\(outcome.errorText)")
    let json = Data(text.drop { $0 != "\n" }.utf8)
    let report = try JSONDecoder().decode(HangReport.self, from: json)
    #expect(report.process.exit?.signal == SIGKILL)
    #expect(!report.findings.contains { $0.severity != .note })
  }

  @Test("signals are passed on", arguments: ["TERM", "HUP", "INT", "QUIT", "USR1", "WINCH"])
  func signals(_ signal: String) async throws {
    // What bash starts in the background ignores some signals: env undoes that.
    let script = """
      tool=$1
      env --default-signal "$tool" run -- /bin/bash -c 'trap "echo got \(signal); exit 5" \(signal); echo ready; while :; do sleep 0.02; done' &
      sleep 1; kill -\(signal) $!; wait $!; echo "status $?"
      """
    let outcome = try await bash(script, "near-long-hold")
    #expect(outcome.outputText == "ready\ngot \(signal)\nstatus 5\n", "\(outcome.errorText)")
    #expect(!outcome.leftOvers)
  }

  @Test("a fingerprint is the same in the next run, and in an optimised build's next run")
  func fingerprints() async throws {
    for name in ["mutex-abba", "mutex-abba-release", "swift-closures"] {
      let fixture = try fixture(name)
      let program = try await Builder.shared.program(fixture)
      var seen: Set<String> = []
      for _ in 0..<3 {
        let result = try await Gate.shared.pass { try Watched.run(fixture, program) }
        seen.formUnion(result.loud.map(\.fingerprint))
      }
      #expect(seen.count == 1, "\(name): \(seen)")
    }
  }

  @Test("a log gets one line of JSON for each report, and keeps those that it had")
  func log() async throws {
    let script = """
      tool=$1; shift
      log=$(mktemp)
      for i in 1 2; do "$tool" run --log "$log" --quiet --on-deadlock terminate --timeout 20s -- "$@" 2>/dev/null; done
      cat "$log"; rm -f "$log"
      """
    let outcome = try await bash(script, "mutex-abba")
    let lines = outcome.outputText.split(separator: "\n")
    #expect(lines.count == 2)
    for line in lines {
      let report = try JSONDecoder().decode(HangReport.self, from: Data(line.utf8))
      #expect(report.findings.map(\.kind) == [.deadlock])
    }
  }

  @Test("without --output the report goes to standard error, and to nothing else")
  func streams() async throws {
    let outcome = try await bash(
      "tool=$1; shift; \"$tool\" --on-deadlock auto --timeout 20s \"$@\"", "mutex-goes-on")
    #expect(outcome.status == .exited(66))
    #expect(outcome.outputText == "DONE\n")
    #expect(outcome.errorText.contains("alice") && outcome.errorText.contains("bob"))
  }
}
