import HangReport
import Testing
import WaitForGraph

@Suite("Folded stacks") struct StackFoldTests {
  let fixture = Fixture()

  /// The innermost function first; `~` marks what is not the program's own.
  private func stack(_ names: String) -> [Frame] {
    names.split(separator: " ").map { name in
      name.hasPrefix("~")
        ? fixture.runtime(String(name.dropFirst())) : fixture.frame(String(name), 4)
    }
  }

  @Test func theFunctionThatMostSamplesAreIn() {
    let fold = StackFold(
      [
        "~sin parse run main", "scan parse run main", "~sin parse run main",
        "~memcpy parse run main", "load run main", "~read load run main",
      ].map(stack))
    #expect(fold.total == 6)
    #expect(fold.groups.map(\.function) == ["parse", "load"])
    #expect(fold.groups.map(\.count) == [4, 2])
    // What the function itself calls in a library is part of its stack.
    #expect(fold.heaviest?.stack.first?.symbol == "sin")
  }

  @Test func whatIsDeeperThanThePlaceIsCutOff() {
    let fold = StackFold(["a f main", "b f main", "c f main", "d f main", "g main"].map(stack))
    #expect(fold.heaviest?.function == "f")
    #expect(fold.heaviest?.stack.map(\.symbol) == ["f", "main"])
  }

  @Test func ofOneStack() {
    let fold = StackFold([stack("~read load main")])
    #expect(fold.groups.count == 1)
    #expect(fold.heaviest?.function == "load")
    #expect(fold.heaviest?.stack.count == 3)
  }

  @Test func recursionIsFollowed() {
    let fold = StackFold(["f f f main", "f f main", "f f f f main"].map(stack))
    #expect(fold.heaviest?.function == "f" && fold.heaviest?.count == 3)
  }

  @Test func withoutFramesOfTheProgramsOwn() {
    let fold = StackFold([stack("~poll ~run"), stack("~poll ~run"), []])
    #expect(fold.total == 2)
    #expect(fold.heaviest?.function == nil && fold.heaviest?.stack.count == 2)
    #expect(StackFold([]).heaviest == nil)
  }
}

@Suite("Hangs in words") struct HangFindingTests {
  private let began = "2026-01-31T23:59:59.123Z"

  private func finding(
    _ fixture: Fixture, _ activity: HangActivity, seconds: Double = 2.1, hasEnded: Bool = false,
    samples: [[Frame]]? = nil, thread: Int? = 1
  ) -> Finding {
    var report = fixture.report
    for index in report.resources.indices {
      report.resources[index].owners = report.threads.filter { thread in
        thread.holds.contains { $0.resource == report.resources[index].id }
      }.map(\.id)
    }
    return HangFinding(
      threads: report.threads, resources: report.resources, process: report.process
    ).finding(
      of: .init(name: "the main run loop", thread: thread.map { ThreadID($0) }),
      seconds: seconds, began: began, hasEnded: hasEnded, activity: activity,
      samples: StackFold(samples ?? [fixture.stack("parse(_:)", 12)]))
  }

  private var alone: Fixture {
    var fixture = Fixture()
    fixture.thread(1, "app", tid: fixture.pid, state: .running)
    return fixture
  }

  @Test func computing() {
    let finding = finding(alone, .init(.computing, processorShare: 0.984))
    #expect(finding.kind == .hang && finding.severity == .warning)
    #expect(
      finding.message
        == "the main run loop has made no progress for 2.1 s (since 23:59:59.123 UTC): "
        + "main thread computing (98 % of a processor), 1 of 1 sample in parse(_:)")
  }

  @Test(arguments: [
    (
      HangActivity(.starved, delayShare: 0.7),
      "main thread ready to run, and without a processor for 70 % of the time, "
    ),
    (
      HangActivity(.call("read", "descriptor 5, a pipe")),
      "main thread in read (descriptor 5, a pipe), "
    ),
    (HangActivity(.call("futex", nil)), "main thread in futex, "),
    (HangActivity(.stopped), "main thread stopped, "),
    (HangActivity(.faulting), "main thread reading pages from a disk, "),
    (HangActivity(.unknown), ""),
  ]) func otherActivities(activity: HangActivity, words: String) {
    let finding = finding(alone, activity)
    #expect(finding.message.hasSuffix(" UTC): \(words)1 of 1 sample in parse(_:)"))
  }

  @Test func nobodyRunsIt() {
    let finding = finding(alone, .init(.nobody("it waits for a thread")), samples: [], thread: nil)
    #expect(finding.message.hasSuffix(" UTC): no thread runs it: it waits for a thread"))
    #expect(finding.threads.isEmpty && finding.evidence.isEmpty)
  }

  @Test func theChainLeadsToWhoIsAtFault() {
    var fixture = Fixture()
    fixture.resource(1, name: "cache")
    fixture.resource(2)
    fixture.thread(
      1, "app", waits: (1, .exclusive, fixture.stack("draw()", 3)), tid: fixture.pid)
    fixture.thread(
      2, "writer", holds: [(1, .exclusive, fixture.stack("save()", 7))],
      waits: (2, .exclusive, fixture.stack("save()", 9)))
    fixture.thread(
      3, "sender", holds: [(2, .exclusive, fixture.stack("send()", 20))], state: .sleeping,
      stack: [fixture.runtime("clock_nanosleep")] + fixture.stack("send()", 21))
    let finding = finding(fixture, .init(.waiting), samples: [fixture.stack("draw()", 3)])
    let message = finding.message
    #expect(message.contains(": main thread waiting for mutex \"cache\" at 0x"))
    #expect(message.contains(", held by \"writer\", which waits for mutex 0x"))
    #expect(message.contains(", held by \"sender\", which sleeps in clock_nanosleep, 1 of 1 "))
    #expect(finding.threads.map(\.rawValue) == [1, 2, 3])
    #expect(finding.resources.map(\.rawValue) == [1, 2])
    let labels = finding.evidence.map(\.label)
    #expect(labels[0] == "main thread was in draw() in 1 of 1 sample")
    #expect(labels.contains { $0.hasPrefix("\"writer\" took mutex \"cache\"") })
    #expect(labels.contains("\"sender\" stands here"))
  }

  @Test func aCircleEnds() {
    var fixture = Fixture()
    for id in 1...2 { fixture.resource(id) }
    for (id, other) in [(1, 2), (2, 1)] {
      fixture.thread(
        id, "t\(id)", holds: [(id, .exclusive, fixture.stack("f()", id))],
        waits: (other, .exclusive, fixture.stack("g()", id)))
    }
    let finding = finding(fixture, .init(.waiting))
    #expect(finding.message.contains("which waits itself"))
    #expect(finding.threads.count == 2)
  }

  @Test func allOfOneHangBearOneFingerprint() {
    let opened = finding(alone, .init(.computing))
    let report = alone.report
    let maker = HangFinding(
      threads: report.threads, resources: report.resources, process: report.process)
    let closed = maker.finding(
      of: .init(name: "the main run loop", thread: nil), seconds: 3.4, began: began,
      hasEnded: true, activity: .init(.unknown), samples: StackFold([]),
      fingerprint: opened.fingerprint)
    #expect(closed.fingerprint == opened.fingerprint)
    #expect(
      closed.message == "the main run loop made no progress for 3.4 s and goes on again "
        + "(it began at 23:59:59.123 UTC)")
    // Another place is another hang.
    let other = finding(alone, .init(.computing), samples: [alone.stack("load()", 3)])
    #expect(other.fingerprint != opened.fingerprint)
    // The same one, later and elsewhere in memory, is not.
    var moved = alone
    moved.base += 4096
    #expect(finding(moved, .init(.starved), seconds: 9).fingerprint == opened.fingerprint)
  }

  @Test(arguments: [(0.25, "0.3 s"), (59.9, "59.9 s"), (125, "2 min 5 s")])
  func durations(seconds: Double, words: String) {
    #expect(finding(alone, .init(.computing), seconds: seconds).message.contains("for \(words) "))
  }

  @Test func asText() {
    var report = alone.report
    report.findings = [finding(alone, .init(.computing, processorShare: 1))]
    let text = TextRenderer(options: .init(sources: SourcesInMemory(files: [:]))).render(report)
    #expect(text.hasPrefix("hangcheck: HANG in app (pid 4711): the main run loop has made no"))
    #expect(text.contains("main thread was in parse(_:) in 1 of 1 sample\n  at "))
  }
}
