import Foundation
import HangReport
import Testing

@testable import ProcessInspector

@Suite(.serialized) struct DispatchMemoryTests {
  @Test(arguments: DispatchState.Build.allCases)
  func readsWhatAProgramKnows(_ build: DispatchState.Build) throws {
    let state = try DispatchState(build, "timers")
    try checkThreads(state)
    try checkQueues(state)
    try checkItems(state)
    try checkWaits(state)
    try checkPools(state)
    try checkTimers(state)
    #expect(state.files.isAlive(KernelThreadID(state.run.pid)))
  }

  private func checkThreads(_ state: DispatchState) throws {
    let pthreads = state.reader.pthreads()
    #expect(Set(pthreads.keys) == Set(state.files.threads()))
    let main = state.reader.layout.mainQueue
    #expect(try state.queues("nested") == [state["queue.inner"], state["queue.outer"]])
    #expect(try state.queues("main") == [main])
    #expect(try state.queues("plain") == [])
    #expect(try state.queues("syncWaiter") == [])
    #expect(try state.queues("writer") == [state["queue.written"]])
    #expect(try state.queues("reader").first == state["queue.readers"])
    #expect(
      try state.queues("sibling").prefix(2) == [state["queue.sibling"], state["queue.parent"]])
    #expect(try state.queues("handler").first == state["queue.handlers"])
    #expect(try state.queues("later").first == state["queue.later"])
    #expect(try state.queues("runningItem").first == state["queue.item"])
    let worker = try #require(try state.queues("worker").first)
    #expect(state.reader.queue(worker)?.isRoot == true)
    let operation = try #require(try state.queues("operation").first)
    #expect(state.reader.queue(operation)?.label == "fixture.operations")
    let task = try #require(try state.queues("task0").first)
    #expect(state.reader.queue(task)?.isCooperativePool == true)
    let manager = try #require(state.reader.queue(state.reader.layout.managerQueue)?.owner)
    #expect(state.reader.isManager(manager))
    #expect(!state.reader.isManager(try state.thread("worker")))
  }

  private func checkQueues(_ state: DispatchState) throws {
    let reader = state.reader
    func queue(_ name: String) throws -> DispatchMemory.Queue {
      try #require(reader.queue(try state["queue." + name]))
    }
    let outer = try queue("outer")
    #expect(outer.label == "fixture.outer" && outer.isSerial && !outer.isRoot)
    #expect(try outer.owner == state.thread("nested"))
    let readers = try queue("readers")
    #expect(!readers.isSerial && readers.hasPendingBarrier && !readers.inBarrier)
    #expect(readers.owner == nil && readers.runningWidth == 1)
    let written = try queue("written")
    #expect(written.inBarrier && !written.isSerial)
    #expect(try written.owner == state.thread("writer"))
    #expect(try queue("child").target == state["queue.parent"])
    #expect(try queue("child").owner == state.thread("childWaiter"))
    #expect(try queue("parent").owner == state.thread("sibling"))
    #expect(try queue("suspended").suspendCount == 2)
    #expect(try queue("suspended").hasItems)
    #expect(try queue("inactive").isInactive)
    let main = try #require(reader.queue(reader.layout.mainQueue))
    #expect(main.isMain && main.isThreadBound && main.hasItems)
    #expect(main.owner == KernelThreadID(state.run.pid))
    #expect(reader.kind(of: try state["group"]) == .group)
    #expect(reader.kind(of: try state["semaphore.never"]) == .semaphore)
    for wrong in [0, 8, reader.layout.mainQueue + 8, try state["group"], UInt64.max - 7] {
      #expect(reader.queue(wrong) == nil)
      #expect(reader.items(of: wrong) == nil)
    }
  }

  private func checkItems(_ state: DispatchState) throws {
    let reader = state.reader
    let group = try state["group"]
    let semaphore = try state["semaphore.captured"]
    let outer = try #require(reader.items(of: try state["queue.outer"]))
    #expect(
      try outer.map(\.kind)
        == [.syncWaiter(state.thread("syncWaiter")), .block, .block, .workItem, .block]
        + outer.dropFirst(5).map(\.kind))
    try #require(outer.count >= 5)
    #expect(outer.map { $0.group == group } == outer.indices.map { $0 == 2 })
    #expect(outer[4].isBarrier == false || outer[4].kind == .block)
    for item in outer {
      #expect(reader.isCode(item.function))
      #expect(item.closure.map { reader.isCode($0) } ?? true)
    }
    let captures = outer.prefix(5).map {
      reader.references(from: $0.block ?? 0, to: [semaphore, group]).contains(semaphore)
    }
    // A variable of the main file is captured by nobody: the code knows where it lies.
    #expect(captures == [false, false, false, false, false])

    let readers = try #require(reader.items(of: try state["queue.readers"]))
    #expect(readers.map(\.isBarrier) == [true, false])
    let written = try #require(reader.items(of: try state["queue.written"]))
    #expect(try written.map(\.kind) == [.syncWaiter(state.thread("lateReader"))])
    #expect(reader.items(of: try state["queue.suspended"])?.count == 2)
    #expect(reader.items(of: try state["queue.inner"])?.isEmpty == true)
    #expect(reader.items(of: reader.layout.mainQueue)?.count == 2)

    let holding = try #require(reader.items(of: try state["queue.holding"]))
    #expect(
      holding.map { reader.references(from: $0.block ?? 0, to: [semaphore, group]) }
        == [[semaphore], [semaphore, group], [], [group]])
    let pending = Set(reader.pendingQueues(pthreads: reader.pthreads().values))
    for name in ["outer", "readers", "written", "parent"] {
      #expect(try pending.contains(state["queue." + name]), "\(name)")
    }
    #expect(pending.contains(reader.layout.mainQueue))
    #expect(try !pending.contains(state["queue.inner"]))
  }

  private func checkWaits(_ state: DispatchState) throws {
    let reader = state.reader
    func sync(_ name: String) throws -> DispatchMemory.SyncWait {
      try #require(reader.syncWait(futex: try state.futex(name), tid: try state.thread(name)))
    }
    #expect(try sync("syncWaiter").queue == state["queue.outer"])
    #expect(try sync("syncWaiter").block != nil)
    #expect(try sync("lateReader").queue == state["queue.written"])
    #expect(try !sync("lateReader").isBarrier)
    #expect(try sync("childWaiter").queue == state["queue.parent"])
    #expect(try sync("childWaiter").topQueue == state["queue.child"])
    #expect(try sync("childWaiter").block != nil)

    let plain = try #require(reader.waitedObject(futex: try state.futex("plain")))
    #expect(try plain == (.semaphore, state["semaphore.never"]))
    let value = try #require(reader.semaphore(plain.address))
    #expect(value.original == 0 && value.value < -5)
    #expect(try #require(reader.semaphore(try state["semaphore.captured"])) == (2, 2))
    let waited = try #require(reader.waitedObject(futex: try state.futex("groupWaiter")))
    #expect(try waited == (.group, state["group"]))
    let group = try #require(reader.group(waited.address))
    #expect(group.count == 2 && group.hasWaiters && group.hasNotify)
    #expect(try group.notifyItems.map(\.queue) == [state["queue.inner"]])
    #expect(group.notifyItems.allSatisfy { reader.isCode($0.function) })

    let apply = try #require(reader.applyWait(futex: try state.futex("applyCaller")))
    #expect(apply.iterations == 2 && apply.left == 1)
    let once = try state.futex("onceWaiter") - 4
    #expect(try reader.swiftOnceOwner(once) == state.thread("onceOwner"))
    #expect(try state.futex("plainOnceWaiter") == state["token"])
    #expect(try reader.onceOwner(state["token"]) == state.thread("plainOnceOwner"))
    #expect(reader.onceOwner(try state["semaphore.never"]) == nil)
    let item = try #require(reader.waitedObject(futex: try state.futex("itemWaiter")))
    #expect(item.kind == .group && reader.group(item.address)?.count == 1)
    // Waited for, it has forgotten its queue; who runs it, it never knew.
    let running = try #require(reader.workItem(try state["block.running"]))
    #expect(running.group == item.address && running.queue == nil && running.runner == nil)
    #expect(!running.isCancelled && !running.hasRun)
    let holding = try #require(reader.items(of: try state["queue.holding"]))
    let pending = try #require(holding.last?.block.flatMap { reader.workItem($0) })
    #expect(try pending.queue == state["queue.holding"] && pending.runner == nil)
    #expect(!pending.hasRun && pending.group != nil && pending.group == holding.last?.ownGroup)
    // None is taken for another.
    for name in ["plain", "groupWaiter", "applyCaller", "onceWaiter"] {
      #expect(try reader.syncWait(futex: state.futex(name), tid: state.thread(name)) == nil)
      #expect(try !reader.isIdleWorker(futex: state.futex(name)))
    }
    for name in ["syncWaiter", "applyCaller", "onceWaiter"] {
      #expect(try reader.waitedObject(futex: state.futex(name)) == nil)
    }
    for name in ["syncWaiter", "plain", "groupWaiter", "onceWaiter"] {
      #expect(try reader.applyWait(futex: state.futex(name)) == nil)
    }
  }

  private func checkPools(_ state: DispatchState) throws {
    let reader = state.reader
    let roots = reader.roots()
    #expect(roots.count == 12 && roots.allSatisfy { $0.label.hasPrefix("com.apple.root.") })
    #expect(roots.count { $0.isOvercommit } == 6)
    let idle = state.files.threads().filter {
      guard case .call(202, let address) = state.files.state($0) else { return false }
      return reader.isIdleWorker(futex: address)
    }
    #expect(!idle.isEmpty)
    for tid in idle { #expect(state.files.name(tid).hasSuffix("-qos")) }
    let flood = try state["queue.flood"]
    let queue = try #require(reader.queue(flood))
    #expect(queue.qos == "background" && queue.runningWidth == 60)
    let background = try #require(roots.first { $0.label == "com.apple.root.background-qos" })
    #expect(background.hasItems)
    let handedOn = try #require(reader.items(of: background.address))
    #expect(handedOn.count > 20 && handedOn.allSatisfy { $0.kind == .redirect(queue: flood) })
    #expect(handedOn.allSatisfy { reader.isCode($0.function) && $0.block != nil })
    #expect(reader.pendingQueues().contains(background.address))

    let pool = try #require(try state.queues("task0").first.flatMap { reader.queue($0) })
    let cores = Int(try state["cores"])
    #expect(pool.width == cores && pool.runningWidth == cores)
    #expect(reader.items(of: pool.address)?.count == 3)
  }

  private func checkTimers(_ state: DispatchState) throws {
    let timers = try #require(state.reader.timers())
    let theirs = timers.filter { !$0.isOwn }
    #expect(timers.count { $0.isOwn } == 1)
    #expect(theirs.count == 203)
    #expect(theirs.count { $0.clock == .wall } == 1)
    #expect(theirs.count { $0.isRepeating } == 1)
    #expect(theirs.allSatisfy { state.reader.isCode($0.handler) })
    let outer = try state["queue.outer"]
    #expect(theirs.count { $0.targetQueue == outer } == 202)
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    let seconds = theirs.filter { $0.clock == .uptime }.map {
      Int($0.deadline / 1_000_000_000) - now.tv_sec
    }
    #expect(seconds.allSatisfy { $0 > 3000 && $0 < 10300 })
  }

  @Test func namesWhatWasSubmitted() throws {
    let state = try DispatchState(.debug, "timers")
    let reader = state.reader
    let symbolizer = Symbolizer(images: reader.images)
    func name(_ function: UInt64?) -> String? {
      function.flatMap {
        symbolizer.frames(for: RawFrame(pc: $0, cfa: 0, isExact: true)).last?.symbol
      }
    }
    let holding = try #require(reader.items(of: try state["queue.holding"]))
    #expect(holding.map { name($0.closure) } == (1...4).map { "closure #\($0) in fill(_:_:_:)" })
    let notify = try #require(reader.group(try state["group"])).notifyItems
    #expect(notify.allSatisfy { name($0.closure)?.hasSuffix(" in main") ?? false })
    for timer in try #require(reader.timers()) {
      if timer.isOwn {
        #expect(name(timer.handler) == "_dispatch_workq_monitor_pools")
      } else {
        #expect(name(timer.closure)?.hasSuffix(" in main") ?? false)
      }
    }
    let pool = try #require(try state.queues("task0").first)
    let jobs = try #require(reader.items(of: pool))
    #expect(jobs.allSatisfy { name($0.function)?.contains("swift_run_job") ?? false })
  }

  @Test func tellsTheMainQueueOfDispatchMain() throws {
    let state = try DispatchState(.debug, "dispatchMain")
    let main = try #require(state.reader.queue(state.reader.layout.mainQueue))
    #expect(!main.isThreadBound)
    #expect(try main.owner == state.thread("mainItem"))
    #expect(main.owner != KernelThreadID(state.run.pid))
    #expect(try state.queues("mainItem").first == main.address)
    #expect(state.reader.items(of: main.address)?.count == 1)
    #expect(state.reader.timers()?.filter { !$0.isOwn } == [])
  }

  @Test func tellsForWhomTheMainThreadWorks() throws {
    let state = try DispatchState(.optimised, "runLoop")
    #expect(try state.thread("mainItem") == KernelThreadID(state.run.pid))
    let pthread = try #require(state.reader.pthreads()[state.thread("mainItem")])
    let frames = state.reader.threadFrames(pthread: pthread)
    #expect(frames.queues == [state.reader.layout.mainQueue])
    #expect(try frames.onBehalfOf == state.thread("caller"))
    #expect(try state.queues("caller") == [state["queue.caller"]])
    let wait = state.reader.syncWait(
      futex: try state.futex("caller"), tid: try state.thread("caller"))
    #expect(wait?.queue == state.reader.layout.mainQueue)
  }

  @Test func saysNothingOfOtherPrograms() throws {
    let program = try Run("/bin/sleep", ["60"])
    let pid = ProcessID(program.pid)
    #expect(DispatchMemory(files: ProcessFiles(pid), memory: ProcessMemory(pid)) == nil)
  }

  /// Its thread-local block is then not where those of the first libraries are, and the program was
  /// looked at before.
  @Test func findsALibraryLoadedLate() throws {
    let library = try #require(
      ProcessFiles(ProcessID(getpid())).mappings().first { $0.path.hasSuffix("/libdispatch.so") })
    let folder = try Scratch()
    try folder.write("late.c", Self.late, mode: 0o644)
    let program = folder.path + "/late"
    let built = try Run.program(
      "/usr/bin/env", ["clang", "-w", "-o", program, folder.path + "/late.c", "-ldl", "-pthread"])
    try #require(built.status == 0, "\(built.errors)")
    let run = try Run(program, [library.path])
    let pid = ProcessID(run.pid)
    try run.wait(for: "before\n")
    #expect(DispatchMemory(files: ProcessFiles(pid), memory: ProcessMemory(pid)) == nil)
    kill(run.pid, SIGUSR1)
    try run.wait(for: "after\n")
    let reader = try #require(
      DispatchMemory(files: ProcessFiles(pid), memory: ProcessMemory(pid)))
    let words = run.output.split(separator: "\n").last { $0.hasPrefix("thread ") }?
      .split(separator: " ")
    let tid = try #require(words.flatMap { Int32($0[1]) })
    let pthread = try #require(reader.pthreads()[KernelThreadID(tid)])
    let queue = try #require(reader.queuesOfThread(pthread: pthread).first)
    #expect(reader.queue(queue)?.label == "late")
    #expect(reader.queue(queue)?.owner?.rawValue == tid)
    #expect(
      reader.pthreads().values.allSatisfy {
        $0 == pthread || !reader.queuesOfThread(pthread: $0).contains(queue)
      })
  }

  private static let late = #"""
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <pthread.h>
    #include <signal.h>
    #include <stdio.h>
    #include <unistd.h>
    static void *library;
    static void block(void *unused) {
      printf("thread %d\nafter\n", gettid());
      fflush(stdout);
      for (;;) pause();
    }
    static void *run(void *unused) {
      void *(*create)(const char *, void *) = dlsym(library, "dispatch_queue_create");
      void (*sync)(void *, void *, void (*)(void *)) = dlsym(library, "dispatch_sync_f");
      sync(create("late", 0), 0, block);
      return 0;
    }
    int main(int argc, char **argv) {
      sigset_t set;
      int signal;
      sigemptyset(&set);
      sigaddset(&set, SIGUSR1);
      sigprocmask(SIG_BLOCK, &set, 0);
      puts("before");
      fflush(stdout);
      sigwait(&set, &signal);
      library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
      pthread_t thread;
      pthread_create(&thread, 0, run, 0);
      for (;;) pause();
    }
    """#

  /// The test itself uses libdispatch.
  @Test func readsItsOwnProcess() throws {
    let pid = ProcessID(getpid())
    let reader = try #require(
      DispatchMemory(files: ProcessFiles(pid), memory: ProcessMemory(pid)))
    let queue = DispatchQueue(label: "own")
    queue.sync {
      let here = reader.queuesOfThread(pthread: UInt64(pthread_self()))
      #expect(here.first.flatMap { reader.queue($0)?.label } == "own")
      #expect(here.first.flatMap { reader.queue($0)?.owner?.rawValue } == gettid())
    }
    #expect(reader.pthreads()[KernelThreadID(gettid())] == UInt64(pthread_self()))
  }

  @Test func survivesALiveQueue() throws {
    let pid = ProcessID(getpid())
    let reader = try #require(
      DispatchMemory(files: ProcessFiles(pid), memory: ProcessMemory(pid)))
    let queue = DispatchQueue(label: "busy")
    let address = queue.sync {
      reader.queuesOfThread(pthread: UInt64(pthread_self())).first ?? 0
    }
    let stop = Stop()
    for _ in 0..<2 {
      Thread.detachNewThread {
        while !stop.isSet {
          for _ in 0..<50 { queue.async {} }
          queue.sync {}
        }
      }
    }
    var seen = 0
    for _ in 0..<3000 {
      let items = reader.items(of: address) ?? []
      seen += items.count
      #expect(items.count <= 200)
      #expect(items.allSatisfy { $0.function == 0 || reader.isCode($0.function) })
    }
    stop.set()
    queue.sync {}
    #expect(seen > 0)
  }

  /// Whatever lies there, no question ends the process that asks.
  @Test func survivesNonsense() throws {
    let state = try DispatchState(.debug)
    let reader = state.reader
    var random = SystemRandomNumberGenerator()
    var addresses: [UInt64] = [0, 1, 16, .max, .max - 7, 1 << 47, (1 << 47) - 8, 1 << 63]
    for mapping in state.files.mappings() where mapping.isWritable {
      for _ in 0..<20 {
        addresses.append(UInt64.random(in: mapping.start..<mapping.end, using: &random) & ~7)
      }
      addresses.append(mapping.end - 8)
    }
    addresses += addresses.compactMap { reader.memory.word($0) }
    for address in addresses {
      let tid = KernelThreadID(Int32(truncatingIfNeeded: address))
      _ = reader.queue(address)
      _ = reader.items(of: address)
      _ = reader.group(address)
      _ = reader.semaphore(address)
      _ = reader.workItem(address)
      _ = reader.handler(ofSource: address)
      _ = reader.onceOwner(address)
      _ = reader.swiftOnceOwner(address)
      _ = reader.queuesOfThread(pthread: address)
      _ = reader.syncWait(futex: address, tid: tid)
      _ = reader.applyWait(futex: address)
      _ = reader.waitedObject(futex: address)
      _ = reader.references(from: address, to: [1, 2])
      _ = reader.code(flags: 0x30, function: address, context: address)
      _ = reader.walk(from: address, limit: 50).map { reader.item($0, isNotify: true) }
    }
    #expect(addresses.count > 500)
    #expect(state.files.isAlive(KernelThreadID(state.run.pid)))
  }

  private final class Stop: @unchecked Sendable {
    // The lock guards it.
    private let lock = NSLock()
    private var value = false
    var isSet: Bool { lock.withLock { value } }
    func set() { lock.withLock { value = true } }
  }
}
