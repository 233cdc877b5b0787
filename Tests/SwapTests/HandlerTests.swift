import Foundation
import HangReport
import Synchronization
import Testing

@testable import Watchdog

/// Handlers that do what they should not, in programs of their own.
@Suite(.serialized) struct BadHandlerTests {
  private static let left =
    "hangcheck: a handler that is a closure has had a report for 5 s and is left behind: "
    + "the other handlers and later reports go on\n"

  @Test func whoDoesNotComeBackHoldsUpNobody() throws {
    let run = try Fixture.run(["left behind"], limit: 60)
    #expect(run.output == "told 1\ntold 2\nDONE\n")
    #expect(run.errors == Self.left)
  }

  /// Its thread then waits like any other, as the report of a long wait says.
  @Test func whoTakesALockThatIsHeld() throws {
    let run = try Fixture.run(["takes a held lock"], limit: 60)
    let lines = run.output.split(separator: "\n")
    #expect(lines.contains("told 1") && lines.contains("told 2") && lines.last == "DONE")
    // The closure alone is the program's code.
    #expect(lines.contains { $0.hasSuffix(" a 1") }, "\(run.output)")
    #expect(run.errors == Self.left)
  }

  @Test func whatALeftHandlerHoldsIsHeldByTheLiving() throws {
    let run = try Fixture.run(["holds a lock"], limit: 60)
    #expect(run.output == "told 1\n1\nDONE\n")
  }

  @Test func aPipeThatNobodyReads() throws {
    let run = try Fixture.run(["blocked stderr"], limit: 60)
    #expect(run.output == "told 1\ntold 2\nDONE\n")
  }

  @Test func aPipeThatNobodyReadsKeepsNoProgram() throws {
    let run = try Fixture.run(["blocked stderr, terminated"], limit: 60)
    #expect(run.signal == SIGTERM)
  }

  @Test func anExitGoesOn() throws {
    let run = try Fixture.run(["blocked at exit"], limit: 60)
    #expect(run.status == 3)
  }

  @Test func aTrapIsToldBefore() throws {
    let log = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: log) }
    let run = try Fixture.run(["blocked before a trap", log.path], limit: 60)
    #expect(run.signal == SIGILL)
    let report = try HangReport(json: [UInt8](Data(contentsOf: log)))
    #expect(report.findings.map(\.kind) == [.deadlock])
  }

  @Test func aHandlerMayStopTheWatch() throws {
    let run = try Fixture.run(["stops itself"], limit: 60)
    #expect(run.output == "stopped\ntold 1\nDONE\n")
  }
}

/// One lane, with its time made short.
@Suite struct HandlerLaneTests {
  private final class Story: Sendable {
    private let words = Mutex<[String]>([])
    func add(_ word: String) { words.withLock { $0.append(word) } }
    var all: [String] { words.withLock { $0 } }
    func wait(for count: Int) {
      let deadline = Date(timeIntervalSinceNow: 30)
      while all.count < count, Date() < deadline { usleep(1000) }
    }
  }

  private func report(_ pid: Int32) -> HangReport {
    HangReport(
      tool: .current, mode: .inProcess,
      process: WatchedProcess(pid: pid, executable: "/bin/x", arguments: []))
  }

  private func deliver(_ pid: Int32, to lane: HandlerLane) {
    lane.deliver(.init(content: .report(report(pid)), color: .never))
  }

  @Test func deliversInOrderAndWaits() {
    let story = Story()
    let lane = HandlerLane(.closure { story.add("\($0.process.pid)") }, say: { story.add($0) })
    for pid in 1...50 {
      deliver(Int32(pid), to: lane)
      #expect(story.all.count == pid)
    }
    #expect(story.all == (1...50).map { "\($0)" })
    lane.close()
  }

  @Test func oneThatComesBackFindsWhatFollowed() {
    let (story, said, gate) = (Story(), Story(), DispatchSemaphore(value: 0))
    let lane = HandlerLane(
      .closure { report in
        if report.process.pid == 1 { gate.wait() }
        story.add("\(report.process.pid)")
      }, patience: 20_000_000, room: 3, say: { said.add($0) })
    for pid in 1...9 { deliver(Int32(pid), to: lane) }
    #expect(story.all.isEmpty)
    #expect(said.all.count == 1)
    #expect(!lane.isBusy)
    gate.signal()
    story.wait(for: 4)
    #expect(story.all == ["1", "2", "3", "4"])
    said.wait(for: 2)
    #expect(said.all.last?.hasSuffix("no room for 5 reports") == true)
    // It is waited for again.
    while lane.isBusy { usleep(1000) }
    deliver(10, to: lane)
    story.wait(for: 5)
    #expect(story.all.last == "10")
    #expect(said.all.count == 2)
    lane.close()
  }

  @Test func whatItThrowsIsSaid() {
    struct Refusal: Error {}
    let said = Story()
    let lane = HandlerLane(.closure { _ in throw Refusal() }, say: { said.add($0) })
    deliver(1, to: lane)
    #expect(said.all == ["a report's handler failed: Refusal()"])
    lane.close()
  }

  @Test func whoIsAwaitedWaitsLess() {
    let gate = DispatchSemaphore(value: 0)
    let lane = HandlerLane(.closure { _ in gate.wait() }, patience: .max, say: { _ in })
    lane.deliver(.init(content: .report(report(1)), color: .never), isAwaited: { true })
    #expect(lane.isBusy)
    gate.signal()
    while lane.isBusy { usleep(1000) }
    lane.close()
  }

  @Test func itsThreadEndsWhenItIsClosed() {
    let story = Story()
    let lane = HandlerLane(.closure { _ in story.add("told") }, say: { _ in })
    #expect(lane.thread == nil)
    deliver(1, to: lane)
    #expect(lane.thread != nil)
    lane.close()
    let deadline = Date(timeIntervalSinceNow: 30)
    while lane.thread != nil, Date() < deadline { usleep(1000) }
    #expect(lane.thread == nil)
    // One that was meant for it while it closed is told all the same.
    deliver(2, to: lane)
    #expect(story.all.count == 2)
  }
}
