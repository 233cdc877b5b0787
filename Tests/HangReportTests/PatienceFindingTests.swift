import HangReport
import Testing
import WaitForGraph

@Suite struct PatienceFindingTests {
  static func frame(_ symbol: String, _ line: Int) -> Frame {
    Frame(
      address: Address(UInt64(line)), image: "/bin/rover", offset: nil, symbol: symbol,
      file: "rover.swift", line: line, column: nil, inlined: false, runtime: false)
  }
  static func thread(
    _ id: Int, _ name: String, waitsFor resource: Int? = nil, holds: Int? = nil
  ) -> Thread {
    let stack = [frame(name, id)]
    return Thread(
      id: ThreadID(id), tid: Int32(100 + id), name: name,
      state: resource == nil ? .running : .blocked,
      waitsFor: resource.map {
        .init(resource: ResourceID($0), mode: .exclusive, seconds: 0.4, stack: stack)
      },
      holds: holds.map {
        [
          .init(
            resource: ResourceID($0), mode: .exclusive, seconds: 0.5,
            stack: [frame("took", 10 * id)])
        ]
      } ?? [],
      stack: stack)
  }
  static let threads = [
    thread(1, "weather", holds: 1), thread(2, "bus", waitsFor: 1), thread(3, "communication"),
  ]

  static func inversion(
    ready: Double?, ran: Double?, kind: ResourceKind = .mutex, goesOn: Bool = false
  ) -> Finding? {
    let resource = Resource(
      id: ResourceID(1), kind: kind, name: nil, address: Address(0x1000), owners: [ThreadID(1)],
      waiters: [ThreadID(2)])
    return InversionFinding(threads: threads, resources: [resource]).finding(
      for: InversionFacts(
        waiter: ThreadID(2), owner: ThreadID(1), resource: ResourceID(1),
        waiterPriority: "SCHED_FIFO 30", ownerPriority: "SCHED_FIFO 10", waited: 0.45,
        measured: 0.4, ready: ready, ran: ran,
        others: [.init(thread: ThreadID(3), seconds: 0.35)]), goesOn: goesOn)
  }

  @Test("who kept the holder from its processor is named, with the time lost")
  func unbounded() throws {
    let finding = try #require(Self.inversion(ready: 0.38, ran: 0.01))
    #expect(finding.kind == .priorityInversion && finding.severity == .warning)
    #expect(
      finding.message
        == "\"bus\" (SCHED_FIFO 30) waited 450 ms for mutex 0x1000 which \"weather\" (SCHED_FIFO 10)"
        + " had: an unbounded priority inversion (of 400 ms \"weather\" was ready to run and"
        + " without a processor for 380 ms, while \"communication\" ran for 350 ms)")
    #expect(finding.threads == [2, 1, 3].map { ThreadID($0) })
    #expect(finding.evidence.map(\.stack.first?.line) == [2, 10, 1, 3])
  }

  @Test("a holder that sleeps is a bounded one, of which others are innocent")
  func bounded() throws {
    let finding = try #require(Self.inversion(ready: 0.001, ran: 0.1, kind: .semaphore))
    #expect(finding.message.contains("a bounded priority inversion"))
    #expect(finding.message.contains("it ran for 100 ms and slept or waited for 299 ms"))
    #expect(finding.message.contains("a semaphore has no owner"))
    #expect(finding.threads == [2, 1].map { ThreadID($0) })
  }

  @Test("what goes on is told in the present") func goesOn() throws {
    let finding = try #require(Self.inversion(ready: nil, ran: nil, goesOn: true))
    #expect(finding.message.hasPrefix("\"bus\" (SCHED_FIFO 30) has waited 450 ms"))
    let over = try #require(Self.inversion(ready: nil, ran: nil))
    #expect(finding.fingerprint == over.fingerprint)
  }

  static func pool(_ workers: [Int], isCooperative: Bool, isSmall: Bool) -> Finding {
    let resource = Resource(
      id: ResourceID(1), kind: .pool, name: "QoS default", address: Address(0x1000), owners: [],
      waiters: [])
    return PoolFinding(threads: threads, resources: [resource]).finding(
      for: PoolFacts(
        workers: workers.map { ThreadID($0) }, queued: [], queuedCount: 5,
        resource: isCooperative ? nil : ResourceID(1), isCooperative: isCooperative,
        isSmall: isSmall, seconds: 3.06))
  }

  @Test("a pool is told with its size, and what is queued")
  func pools() {
    let cooperative = Self.pool([1, 2], isCooperative: true, isSmall: false)
    #expect(cooperative.severity == .error)
    #expect(
      cooperative.message
        == "all 2 threads of the cooperative pool are blocked and have been for 3.0 s, with 5 jobs"
        + " queued behind them; it never gets more")
    let global = Self.pool([2], isCooperative: false, isSmall: true)
    #expect(global.severity == .note)
    #expect(
      global.message.hasPrefix(
        "the only thread of the global queue (QoS default) is blocked and has been for 3.0 s"))
  }

  static func wait(_ facts: LongWaitFacts) -> Finding? {
    let resource = Resource(
      id: ResourceID(1), kind: .mutex, name: nil, address: Address(0x1000), owners: [ThreadID(1)],
      waiters: [ThreadID(2)])
    return LongWaitFinding(threads: threads, resources: [resource]).finding(for: threads[1], facts)
  }

  @Test("what the holder does belongs to a long wait")
  func holder() throws {
    let call = HangActivity(.call("recvfrom", "descriptor 7, a socket"))
    let finding = try #require(Self.wait(LongWaitFacts(activities: [ThreadID(1): call])))
    #expect(finding.kind == .longWait && finding.severity == .note)
    #expect(
      finding.message
        == "\"bus\" has waited 0.4 s for mutex 0x1000; held for 0.5 s by \"weather\", which is in"
        + " recvfrom (descriptor 7, a socket)")
    #expect(finding.threads == [2, 1].map { ThreadID($0) })
    #expect(finding.evidence.map(\.stack.first?.line) == [2, 10, 1])
    let sleeps = HangActivity(.call("clock_nanosleep", nil))
    let other = try #require(Self.wait(LongWaitFacts(activities: [ThreadID(1): sleeps])))
    #expect(other.message.hasSuffix("by \"weather\", which sleeps"))
    #expect(other.fingerprint == finding.fingerprint)
  }

  @Test("who took it again and again is told where nobody held it for long", arguments: [4, 5])
  func passedOver(_ count: Int) throws {
    let facts = LongWaitFacts(
      taken: count, seconds: 0.3,
      takers: [.init(thread: ThreadID(3), count: count, stack: [Self.frame("took", 30)])])
    let finding = try #require(Self.wait(facts))
    let words = "was passed over at least 5 times in 0.3 s, when others took it (\"communication\""
    #expect(finding.message.contains(words) == (count == 5))
    #expect(finding.threads.contains(ThreadID(3)) == (count == 5))
  }

  @Test("a livelock names who tries for what, and what each holds")
  func livelock() throws {
    let resources = [1, 2].map {
      Resource(
        id: ResourceID($0), kind: .mutex, name: nil, address: Address(UInt64($0) * 0x1000),
        owners: [], waiters: [])
    }
    let facts = LivelockFacts(
      members: [
        .init(
          thread: ThreadID(1), failures: 12, wanted: ResourceID(2), tried: [Self.frame("a", 1)],
          taken: [Self.frame("b", 2)]),
        .init(
          thread: ThreadID(3), failures: 1, wanted: ResourceID(1), tried: [Self.frame("c", 3)],
          taken: [Self.frame("d", 4)]),
      ], seconds: 2)
    let maker = LivelockFinding(threads: Self.threads, resources: resources)
    let finding = try #require(maker.finding(for: facts))
    #expect(
      finding.message
        == "threads \"weather\" and \"communication\" keep failing to take what the other one holds,"
        + " and none has got on for 2.0 s: \"weather\" tried for mutex 0x2000 in vain 12 times while"
        + " it held mutex 0x1000; \"communication\" tried for mutex 0x1000 in vain once while it held"
        + " mutex 0x2000")
    #expect(finding.cycle.map(\.ownedBy) == [3, 1].map { ThreadID($0) })
    // Where each takes what the other wants, and where it tries.
    #expect(finding.evidence.map(\.stack.first?.line) == [4, 1, 2, 3])
    #expect(maker.finding(for: LivelockFacts(members: [], seconds: 2)) == nil)
  }
}
