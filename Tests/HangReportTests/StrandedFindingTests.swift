import HangReport
import Testing
import WaitForGraph

/// Timers and blocks of run loops that nobody runs.
@Suite struct StrandedFindingTests {
  private func message(isTimer: Bool, mode: String?) -> String {
    let thread = Thread(id: ThreadID(1), tid: 7, name: "idler", state: .blocked)
    let facts = StrandedFacts(
      thread: ThreadID(1), seconds: 3.04, isTimer: isTimer, mode: mode, function: [])
    let finding = StrandedFinding(threads: [thread], resources: []).finding(for: facts)
    #expect(finding.kind == .hang && finding.severity == .warning)
    #expect(finding.threads == [ThreadID(1)])
    return finding.message
  }

  @Test func words() {
    #expect(
      message(isTimer: true, mode: nil)
        == "a timer of the run loop of \"idler\" has been due for 3.0 s, but nobody runs that loop:"
        + " run the loop there (RunLoop.current.run()), or use DispatchSource.makeTimerSource or"
        + " Task.sleep")
    #expect(
      message(isTimer: true, mode: "modal").contains(
        "but that loop runs in mode modal, which does not have it: add it to that mode"))
    #expect(message(isTimer: true, mode: "").contains("runs in a mode that does not have it"))
    #expect(
      message(isTimer: false, mode: nil).hasPrefix(
        "a block of RunLoop.perform of the run loop of \"idler\" has waited for 3.0 s"))
  }
}
