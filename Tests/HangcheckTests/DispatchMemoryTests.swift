import Foundation
import Testing

@testable import ProcessInspector

@Suite(.serialized) struct DispatchMemoryTests {
  @Test(arguments: DispatchState.Build.allCases)
  func dump(_ build: DispatchState.Build) throws {
    let state = try DispatchState(build, "timers")
    let reader = state.reader
    print(state.files.threads().count, reader.pthreads())
    for name in ["outer", "inner", "readers", "written", "parent", "child", "sibling", "suspended", "inactive"] {
      print(name, reader.queue(try state["queue." + name]) as Any)
      print("  ", reader.items(of: try state["queue." + name]) as Any)
    }
    for (tid, pthread) in reader.pthreads() {
      print(tid, state.files.name(tid), state.files.state(tid), reader.threadFrames(pthread: pthread), reader.queuesOfThread(pthread: pthread).map { reader.queue($0)?.label ?? "?" })
      if case .call(202, let a) = state.files.state(tid) {
        print("   ", reader.syncWait(futex: a, tid: tid) as Any, reader.waitedObject(futex: a) as Any, reader.applyWait(futex: a) as Any, reader.isIdleWorker(futex: a), reader.isManager(tid), reader.swiftOnceOwner(a &- 4) as Any)
      }
    }
    print(reader.items(of: reader.layout.mainQueue) as Any, reader.queue(reader.layout.mainQueue) as Any)
    print(reader.group(try state["group"]) as Any, reader.semaphore(try state["semaphore.never"]) as Any)
    for r in reader.roots() { print(r, reader.items(of: r.address) as Any) }
    let t = reader.timers() ?? []
    print(t.count, t.filter { $0.isOwn }, t.prefix(3), t.filter { $0.clock == .wall })
    print(reader.pendingQueues(pthreads: reader.pthreads().values).map { reader.queue($0)?.label ?? "?" })
    for i in reader.items(of: try state["queue.outer"]) ?? [] {
      print(reader.references(from: i.block ?? 0, to: [try state["semaphore.captured"], try state["group"]]))
    }
  }
}
