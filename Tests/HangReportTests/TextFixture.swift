import HangReport
import WaitForGraph

/// Source text that tests bring along.
struct SourcesInMemory: SourceReader {
  var files: [String: String]
  func source(of path: String) -> String? { files[path] }
}

/// Makes a report from a situation, the way a detector would.
struct Fixture {
  var pid: Int32 = 4711
  var threads: [Thread] = []
  var resources: [Resource] = []
  var snapshot = Snapshot(threads: [], resources: [])
  var limits: [String]?
  var base: UInt64 = 0x55d0_c0de_1000

  func frame(
    _ symbol: String?, _ line: Int? = nil, column: Int? = nil, file: String = "/src/app/main.swift"
  ) -> Frame {
    Frame(
      address: Address(base + UInt64(line ?? 7)), image: "/src/app/.build/app", symbol: symbol,
      file: line == nil ? nil : file, line: line, column: column)
  }

  func runtime(_ symbol: String, image: String = "/lib/libc.so.6") -> Frame {
    Frame(address: Address(base + 0x7777), image: image, symbol: symbol, runtime: true)
  }

  /// What the thread's stack looks like when it calls a lock function from `symbol`.
  func stack(_ symbol: String, _ line: Int, column: Int? = nil) -> [Frame] {
    [
      runtime("pthread_mutex_lock"), runtime("NSLock.lock()", image: "/lib/libFoundation.so"),
      frame(symbol, line, column: column), frame("closure #1 in main", 30),
      runtime("start_thread"), runtime("clone"),
    ]
  }

  @discardableResult
  mutating func resource(
    _ id: Int, _ kind: ResourceKind = .mutex, name: String? = nil, thread: Int? = nil,
    reentrant: Bool = false
  ) -> ResourceID {
    let made = ResourceID(id)
    resources.append(
      Resource(
        id: made, kind: kind, name: name, address: Address(base + UInt64(id) * 64),
        owners: thread.map { [ThreadID($0)] } ?? []))
    snapshot.resources.append(
      .init(id: made, kind: kind, isReentrant: reentrant, thread: thread.map { ThreadID($0) }))
    return made
  }

  mutating func thread(
    _ id: Int, _ name: String, holds: [(Int, Mode, [Frame])] = [],
    waits: (Int, Mode, [Frame])? = nil, tid: Int32? = nil, isAlive: Bool = true,
    state: Thread.State = .blocked, stack: [Frame]? = nil, seconds: Double? = 2
  ) {
    threads.append(
      Thread(
        id: ThreadID(id), tid: tid ?? pid + Int32(id), name: name, state: state,
        waitsFor: waits.map {
          .init(resource: ResourceID($0.0), mode: $0.1, seconds: seconds, stack: $0.2)
        },
        holds: holds.map {
          .init(resource: ResourceID($0.0), mode: $0.1, seconds: seconds, stack: $0.2)
        },
        stack: stack ?? waits?.2 ?? []))
    snapshot.threads.append(
      .init(
        id: ThreadID(id), isAlive: isAlive,
        wait: waits.map { .init(resource: ResourceID($0.0), mode: $0.1) },
        holds: holds.map { .init(resource: ResourceID($0.0), mode: $0.1) }))
  }

  var process: WatchedProcess {
    WatchedProcess(pid: pid, executable: "/src/app/.build/app", arguments: ["app"])
  }

  var findings: [Finding] {
    let builder = DeadlockFinding(threads: threads, resources: resources, process: process)
    return WaitForGraph(snapshot).deadlocks().map {
      builder.finding(for: $0, time: "2026-01-02T03:04:05.678Z")
    }
  }

  var report: HangReport {
    HangReport(
      tool: .init(version: "1"), mode: .run, process: process, findings: findings,
      threads: threads, resources: resources, limits: limits)
  }

  static let source = """
    import Foundation
    struct Store {
      func cancel() {
        timers.lock()
    \tjobs.lock()
      }
    }
    """

  func text(
    verbose: Bool = false, color: Bool = false, sources: Bool = true, width: Int = 100
  ) -> String {
    TextRenderer(
      options: .init(
        color: color, verbose: verbose, width: width, sourceLines: sources, folder: "/src/app",
        sources: SourcesInMemory(files: ["/src/app/main.swift": Self.source]))
    ).render(report)
  }
}

extension Fixture {
  /// `"cancel"` takes 1 then 2, `"schedule"` 2 then 1.
  static var crosswise: Fixture {
    var made = Fixture()
    made.resource(1, name: "timers")
    made.resource(2)
    made.thread(0, "app", stack: [made.runtime("pthread_join"), made.frame("main", 40)])
    made.thread(
      1, "cancel", holds: [(1, .exclusive, made.stack("Store.cancel()", 4, column: 12))],
      waits: (2, .exclusive, made.stack("Store.cancel()", 5, column: 7)))
    made.thread(
      2, "schedule", holds: [(2, .exclusive, made.stack("Store.schedule()", 24))],
      waits: (1, .exclusive, made.stack("Store.schedule()", 25)))
    return made
  }

  static var selfDeadlock: Fixture {
    var made = Fixture()
    made.resource(1)
    made.thread(
      1, "", holds: [(1, .exclusive, made.stack("Store.cancel()", 4))],
      waits: (1, .exclusive, made.stack("Store.cancel()", 5)))
    return made
  }

  static func ring(_ count: Int, others: Int = 0) -> Fixture {
    var made = Fixture()
    for id in 0..<count { made.resource(id) }
    for id in 0..<count {
      made.thread(
        id + 1, "philosopher \(id)", holds: [(id, .exclusive, made.stack("eat(_:)", 4))],
        waits: ((id + 1) % count, .exclusive, made.stack("eat(_:)", 5)))
    }
    for id in 0..<others {
      made.thread(
        count + 1 + id, "worker \(id)", state: .idle,
        stack: [made.runtime("pthread_cond_wait"), made.frame("Pool.run()", 33)])
    }
    return made
  }
}
