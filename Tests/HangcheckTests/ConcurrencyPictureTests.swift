import Testing

@testable import ProcessInspector

@Suite("what has to happen before a task goes on")
struct ConcurrencyPictureTests {
  private static let thread = KernelThreadID(7)
  private static let other = KernelThreadID(8)

  private static func task(
    _ address: UInt64, _ wait: TaskWait = .none, isRunning: Bool = false,
    isSleeping: Bool = false, isUnstarted: Bool = false, group: UInt64? = nil,
    waitsForAll: Bool = false
  ) -> SwiftTask {
    SwiftTask(
      address: address, id: address, name: nil, priority: 0x15,
      kind: group == nil ? .task : .groupChild, isRunning: isRunning, isEnqueued: false,
      isCancelled: false, isUnstarted: isUnstarted, isSleeping: isSleeping, isHelper: false,
      parent: nil, group: group, waitsForAllChildren: waitsForAll, wait: wait, resume: 0, status: 0,
      context: 0)
  }

  private static func picture(
    _ tasks: [SwiftTask], running: [KernelThreadID: RunningTask] = [:],
    actor state: SwiftActor.State? = nil, pending: Int? = nil, pool: SwiftPool? = nil
  ) -> ConcurrencyPicture {
    let actor = state.map { SwiftActor(address: 0xa0, state: $0, queued: [], isCut: false) }
    let group = pending.map { SwiftTaskGroup(address: 0x90, pending: $0, waiting: nil) }
    return ConcurrencyPicture(
      tasks: tasks, isCut: false, running: running, actors: actor.map { [0xa0: $0] } ?? [:],
      groups: group.map { [0x90: $0] } ?? [:], pools: pool.map { [$0] })
  }

  private static func pool(
    busy: Int, pending: [SwiftPool.Job]
  ) -> SwiftPool {
    SwiftPool(
      priority: 0x15, queue: 0x50, label: "", width: 2, busy: busy, pending: pending, isCut: false)
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var picture: ConcurrencyPicture
    var need: ConcurrencyPicture.Need
    init(
      _ name: String, _ picture: ConcurrencyPicture, _ need: ConcurrencyPicture.Need
    ) {
      testDescription = name
      self.picture = picture
      self.need = need
    }
  }

  private static let full = [
    thread: RunningTask(task: 0x20, place: .pool), other: RunningTask(task: 0x30, place: .pool),
  ]
  private static let hogs = [task(0x20, isRunning: true), task(0x30, isRunning: true)]

  // The first task of each picture is asked for.
  static let cases = [
    Case(
      "it runs", picture(hogs, running: full), .thread(thread)),
    Case("it runs on a thread that is not known", picture(hogs), .unknown),
    Case("not started", picture([task(0x10, isUnstarted: true)]), .unknown),
    Case("about to run", picture([task(0x10)]), .nothing),
    Case("another task", picture([task(0x10, .task(0x20))] + hogs), .end(of: [0x20], all: true)),
    Case("a task that is not there", picture([task(0x10, .task(0x20))]), .unknown),
    Case(
      "a continuation", picture([task(0x10, .continuation(0x60, isResumed: false))]),
      .resumption(0x60)),
    Case(
      "a resumed one", picture([task(0x10, .continuation(0x60, isResumed: true))]), .nothing),
    Case(
      "sleep",
      picture([task(0x10, .continuation(0x60, isResumed: false), isSleeping: true)]), .time),
    Case(
      "the next child",
      picture([task(0x10, .taskGroup(0x90)), task(0x20, group: 0x90)], pending: 1),
      .end(of: [0x20], all: false)),
    Case(
      "all children",
      picture(
        [task(0x10, .taskGroup(0x90), waitsForAll: true), task(0x20, group: 0x90)], pending: 1),
      .end(of: [0x20], all: true)),
    Case(
      "a child is missing",
      picture([task(0x10, .taskGroup(0x90)), task(0x20, group: 0x90)], pending: 2), .unknown),
    Case("a group that cannot be read", picture([task(0x10, .taskGroup(0x90))]), .unknown),
    Case(
      "an occupied actor",
      picture(
        [task(0x10, .executor(.actor(0xa0)))],
        running: [thread: RunningTask(task: 0x20, place: .actor(0xa0))], actor: .running),
      .turn(.init(place: .actor(0xa0), occupants: [thread], isTaken: true))),
    Case(
      "an actor that runs, nobody knows where",
      picture([task(0x10, .executor(.actor(0xa0)))], actor: .running), .unknown),
    Case("an idle actor", picture([task(0x10, .executor(.actor(0xa0)))], actor: .idle), .nothing),
    Case(
      "an actor whose own job waits for the pool",
      picture(
        [task(0x10, .executor(.actor(0xa0)))] + hogs, running: full, actor: .scheduled,
        pool: pool(busy: 2, pending: [.actor(0xa0)])),
      .turn(.init(place: .pool, occupants: [thread, other], isTaken: true))),
    Case(
      "a full pool",
      picture(
        [task(0x10, .executor(.pool))] + hogs, running: full,
        pool: pool(busy: 2, pending: [.task(0x10)])),
      .turn(.init(place: .pool, occupants: [thread, other], isTaken: true))),
    Case(
      "a pool with room",
      picture(
        [task(0x10, .executor(.pool))], pool: pool(busy: 1, pending: [.task(0x10)])),
      .turn(.init(place: .pool, occupants: [], isTaken: false))),
    Case(
      "left the pool's queue",
      picture([task(0x10, .executor(.pool))], pool: pool(busy: 2, pending: [])),
      .turn(.init(place: .pool, occupants: [], isTaken: nil))),
    Case(
      "a pool that cannot be read", picture([task(0x10, .executor(.pool))]),
      .turn(.init(place: .pool, occupants: [], isTaken: nil))),
    Case(
      "the main actor, occupied",
      picture(
        [task(0x10, .executor(.main))],
        running: [thread: RunningTask(task: 0x20, place: .main)]),
      .turn(.init(place: .main, occupants: [thread], isTaken: true))),
    Case(
      "the main actor, which nobody drains", picture([task(0x10, .executor(.main))]),
      .turn(.init(place: .main, occupants: [], isTaken: nil))),
  ]

  @Test("by what it waits for", arguments: cases)
  func need(_ given: Case) throws {
    #expect(given.picture.need(of: try #require(given.picture.tasks.first)) == given.need)
  }
}
