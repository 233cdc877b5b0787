import HangReport
import Testing
import WaitForGraph

@Suite struct MisuseFindingTests {
  private static var picture: Fixture {
    var made = Fixture()
    made.resource(1)
    made.resource(2, .group, name: "downloads")
    made.thread(1, "search")
    made.thread(2, "user", holds: [(1, .exclusive, made.stack("hold()", 12))])
    return made
  }

  private static func finding(_ misuse: Misuse, in made: Fixture = picture) -> Finding {
    MisuseFinding(threads: made.threads, resources: made.resources, process: made.process)
      .finding(for: misuse, time: "2026-01-02T03:04:05.678Z")
  }

  private static func text(_ finding: Finding, in made: Fixture = picture) -> String {
    let report = HangReport(
      tool: .init(version: "1"), mode: .run, process: made.process, findings: [finding],
      threads: made.threads, resources: made.resources)
    return TextRenderer(options: .init(color: false, folder: "/src/app")).render(report)
  }

  private static func misuse(_ rule: Misuse.Rule, resource: Int = 1) -> Misuse {
    Misuse(
      rule: rule, thread: ThreadID(1), resource: ResourceID(resource), owner: ThreadID(2),
      mutex: ResourceID(1), site: picture.stack("release()", 20),
      otherSite: picture.stack("hold()", 12))
  }

  @Test("a foreign unlock names both threads and both places")
  func foreignUnlock() {
    let finding = Self.finding(Self.misuse(.foreignUnlock))
    #expect(finding.kind == .lockMisuse)
    #expect(finding.severity == .error)
    #expect(finding.certainty == .certain)
    #expect(finding.cycle.isEmpty)
    #expect(finding.threads == [ThreadID(1), ThreadID(2)])
    #expect(
      finding.message == """
        "search" unlocks mutex 0x55d0c0de1040, which "user" locked: only the thread that locked it \
        may unlock it
        """)
    #expect(
      finding.evidence.map(\.label) == [
        "\"search\" unlocked mutex 0x55d0c0de1040 here",
        "\"user\" took mutex 0x55d0c0de1040 here",
      ])
    let text = Self.text(finding)
    #expect(text.hasPrefix("hangcheck: LOCK MISUSE in app (pid 4711): \"search\" unlocks mutex"))
    #expect(text.contains("  at main.swift:20 in release()"))
    #expect(text.contains("  Unlock it in the thread that locked it, behind main.swift:12."))
  }

  @Test("each rule has a sentence, a label and advice of its own", arguments: Misuse.Rule.allCases)
  func rule(_ rule: Misuse.Rule) {
    let finding = Self.finding(Self.misuse(rule))
    #expect(!finding.message.isEmpty && !finding.message.contains("an unknown"))
    #expect(finding.fingerprint.count == 16)
    let isWarning =
      finding.kind == .queueMisuse || finding.kind == .conditionMisuse
      || finding.certainty == .possible
    #expect(finding.severity == (isWarning ? .warning : .error))
    let text = Self.text(finding)
    #expect(text.contains("What to change\n  "), "\(text)")
    let others = Misuse.Rule.allCases.filter { $0 != rule }.map { Self.finding(Self.misuse($0)) }
    #expect(!others.contains { $0.message == finding.message })
    #expect(!others.contains { $0.evidence[0].label == finding.evidence[0].label })
    #expect(!others.contains { $0.fingerprint == finding.fingerprint })
  }

  @Test("what else was done to a group is evidence, in words")
  func uses() {
    var misuse = Misuse(
      rule: .groupOverleft, thread: ThreadID(1), resource: ResourceID(2),
      site: Self.picture.stack("finish()", 20))
    misuse.uses = [
      .init(
        operation: .entered, thread: ThreadID(2), count: 3, stack: Self.picture.stack("add()", 5)),
      .init(operation: .made, thread: nil, count: 0, stack: []),
    ]
    let finding = Self.finding(misuse)
    #expect(finding.kind == .unbalancedGroup)
    #expect(
      finding.evidence.map(\.label) == [
        "\"search\" left group \"downloads\" at 0x55d0c0de1080 once too often here",
        "\"user\" entered group \"downloads\" at 0x55d0c0de1080 here, 3 times",
      ])
  }

  @Test(
    "the runtime's words on a continuation are understood",
    arguments: [
      (
        Misuse.Rule.continuationLeaked,
        "SWIFT TASK CONTINUATION MISUSE: load(from:) leaked its continuation without resuming it.",
        "the continuation of load(from:) is gone without having been resumed, so its task waits for"
          + " ever"
      ),
      (
        .continuationResumedTwice,
        "SWIFT TASK CONTINUATION MISUSE: load() tried to resume its continuation more than once,",
        "the continuation of load() is resumed a second time by \"search\""
      ),
      (
        .continuationLeaked, "something else",
        "a continuation is gone without having been resumed, so its task waits for ever"
      ),
    ])
  func continuation(_ rule: Misuse.Rule, _ text: String, _ message: String) {
    let misuse = Misuse(
      rule: rule, thread: ThreadID(1), resource: nil, site: Self.picture.stack("resume()", 3),
      text: text)
    let finding = Self.finding(misuse)
    #expect(finding.kind == .continuationMisuse)
    #expect(finding.message == message)
  }

  @Test("a misuse's fingerprint knows neither threads nor addresses")
  func fingerprint() {
    var moved = Self.picture
    moved.base = 0x1234_5000
    moved.threads[0].name = "other"
    let one = Self.finding(Self.misuse(.destroyHeld))
    let other = Self.finding(Self.misuse(.destroyHeld), in: moved)
    #expect(one.fingerprint == other.fingerprint)
    #expect(one.message != other.message)
  }
}
