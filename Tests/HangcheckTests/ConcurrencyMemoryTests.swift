import Foundation
import Glibc
import HangReport
import Synchronization
import Testing

@testable import ProcessInspector

@Suite("tasks in another process's memory", .serialized)
struct ConcurrencyMemoryTests {
  private static let waiting = [
    "cycle-1", "cycle-2", "unsafe", "checked", "dropped", "all", "all-sleeps", "all-awaits", "next",
    "next-sleeps", "next-awaits", "discarding", "discarding-awaits", "async-let", "sleeps",
    "for-main",
  ]

  @Test("each task that waits, and for what", arguments: TaskProgram.Build.allCases)
  func waits(_ build: TaskProgram.Build) throws {
    let program = try TaskProgram("waits", build)
    let picture = try program.picture { $0.stand(Self.waiting) }
    // One more: the child of async let has no name.
    #expect(picture.tasks.count == Self.waiting.count + 1)
    #expect(!picture.isCut)
    #expect(!picture.tasks.contains { $0.name == "ended" })

    func need(_ name: String) throws -> ConcurrencyPicture.Need {
      picture.need(of: try picture.named(name))
    }
    let first = try picture.named("cycle-1").address
    let second = try picture.named("cycle-2").address
    let unsafe = try picture.named("unsafe")
    #expect(try need("cycle-1") == .end(of: [second], all: true))
    #expect(try need("cycle-2") == .end(of: [first], all: true))
    for name in ["unsafe", "checked", "dropped"] {
      guard case .resumption = try need(name) else {
        Issue.record("\(name): \(try need(name))")
        continue
      }
    }
    for name in ["sleeps", "all-sleeps", "next-sleeps"] { #expect(try need(name) == .time) }
    for name in ["all-awaits", "next-awaits", "discarding-awaits"] {
      #expect(try need(name) == .end(of: [unsafe.address], all: true))
    }
    for name in ["all", "next", "discarding"] {
      let children = picture.tasks.filter { $0.name?.hasPrefix(name + "-") == true }
      let parent = try picture.named(name)
      #expect(children.allSatisfy { $0.parent == parent.address && $0.kind == .groupChild })
      guard case .end(let tasks, let all) = try need(name) else {
        Issue.record("\(name): \(try need(name))")
        continue
      }
      #expect(Set(tasks) == Set(children.map(\.address)))
      #expect(all == (name != "next"))
    }
    let child = try #require(picture.tasks.first { $0.kind == .asyncLet })
    #expect(child.parent == (try picture.named("async-let").address))
    #expect(try need("async-let") == .end(of: [child.address], all: true))
    #expect(
      try need("for-main") == .turn(.init(place: .main, occupants: [], isTaken: nil)))
    #expect(try picture.named("sleeps").priority == 0x19)
    #expect(program.memory.isUnchanged(unsafe))
  }

  @Test("a checked continuation that somebody still holds, and one that nobody does")
  func checkedContinuations() throws {
    let program = try TaskProgram("waits", .debug)
    let picture = try program.picture { $0.stand(["unsafe", "checked", "dropped"]) }
    #expect(try picture.named("checked").checkedContinuation == "waitChecked()")
    #expect(try picture.named("dropped").checkedContinuation == nil)
    #expect(try picture.named("unsafe").checkedContinuation == nil)
  }

  @Test("the stack of a task, with the lines of its awaits")
  func frames() throws {
    let program = try TaskProgram("waits", .debug)
    let picture = try program.picture { $0.stand(["unsafe"]) }
    let stack = program.memory.stack(of: try picture.named("unsafe"), program.symbolizer())
    let own = stack.filter { !$0.runtime }
    #expect(own.count == 3)
    #expect(own.first?.symbol == "waitUnsafe(_:)")
    #expect(own.first?.line == (try TaskProgram.line("AWAITS")))
    #expect(own.dropFirst().first?.symbol == "callsWaitUnsafe()")
    #expect(own.dropFirst().first?.line == (try TaskProgram.line("CALLS")))
  }

  @Test("what called the code that a thread runs")
  func callers() throws {
    let program = try TaskProgram("levels", .debug)
    let picture = try program.picture { $0.running[TaskProgram.number("level")]?.task != nil }
    let task = try picture.named("level")
    #expect(task.isRunning)
    #expect(picture.need(of: task) == .thread(TaskProgram.number("level")))
    let stack = program.memory.stack(of: task, program.symbolizer()).filter { !$0.runtime }
    #expect(stack.first?.symbol == "level2()")
    #expect(stack.first?.line == (try TaskProgram.line("LEVEL2")))
    #expect(stack.dropFirst().first?.symbol == "level1()")
  }

  @Test("an actor that a thread occupies", arguments: TaskProgram.Build.allCases)
  func actors(_ build: TaskProgram.Build) throws {
    let program = try TaskProgram("actors", build)
    let owner = TaskProgram.number("owner")
    let picture = try program.picture {
      $0.running[owner]?.task != nil && $0.stand(["waiter-1", "waiter-2"])
    }
    guard case .executor(.actor(let address)) = try picture.named("waiter-1").wait else {
      Issue.record("\(picture.tasks)")
      return
    }
    #expect(try picture.named("waiter-2").wait == .executor(.actor(address)))
    let actor = try #require(picture.actors[address])
    #expect(actor.state == .running)
    #expect(!actor.isCut)
    let waiters = try ["waiter-1", "waiter-2"].map { try picture.named($0) }
    #expect(Set(actor.queued) == Set(waiters.map(\.address)))
    let running = try #require(picture.running[owner])
    #expect(
      running == RunningTask(task: try picture.named("owner").address, place: .actor(address)))
    for waiter in waiters {
      #expect(
        picture.need(of: waiter)
          == .turn(.init(place: .actor(address), occupants: [owner], isTaken: true)))
    }
  }

  @Test("a pool without a free thread", arguments: TaskProgram.Build.allCases)
  func pool(_ build: TaskProgram.Build) throws {
    let program = try TaskProgram("pool", build)
    let width = Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    let picture = try program.picture {
      $0.pools?.contains { $0.isExhausted && $0.pending.count == 6 } == true
        && $0.running.count == width && $0.stand(["other"])
    }
    let pool = try #require(picture.pools?.first { $0.priority == 0x15 })
    #expect(pool.width == width)
    #expect(pool.busy == width)
    #expect(pool.label == "Swift global concurrent queue")
    let pending = picture.tasks.filter { $0.wait == .executor(.pool) }
    #expect(Set(pool.pending) == Set(pending.map { .task($0.address) }))
    let occupants = picture.tasks.filter(\.isRunning).map {
      TaskProgram.number($0.name ?? "")
    }
    #expect(occupants.count == width)
    for task in pending {
      #expect(
        picture.need(of: task)
          == .turn(.init(place: .pool, occupants: occupants.sorted(), isTaken: true)))
      let stack = program.memory.stack(of: task, program.symbolizer()).filter { !$0.runtime }
      #expect(stack.first?.symbol == "closure #1 in pool()")
    }
    // Another priority has threads of its own.
    #expect(picture.pools?.contains { $0.priority == 0x19 && $0.isExhausted } == false)
  }

  @Test("twenty thousand tasks, and as many that have ended")
  func many() throws {
    let program = try TaskProgram("many", .release)
    let picture = try program.picture {
      $0.tasks.count >= 20_000 && !$0.tasks.contains { $0.isRunning || $0.isEnqueued }
    }
    #expect(picture.tasks.count == 20_000)
    #expect(!picture.isCut)
    #expect(Set(picture.tasks.map(\.id)).count == 20_000)
    // Limits are kept, and said.
    let some = program.memory.tasks(most: 100)
    #expect(some.tasks.count == 100 && some.isCut)
    #expect(program.memory.tasks(milliseconds: 0).isCut)
  }

  @Test("a runtime without its inner names: who sleeps is not known, and not guessed")
  func stripped() throws {
    let whole = try TaskProgram("actors", .release)
    let runtime = try #require(whole.runtime)
    let folder = try Scratch()
    let result = try Run.program(
      "/usr/bin/env", ["strip", runtime, "-o", folder.path + "/libswift_Concurrency.so"])
    #expect(result.status == 0, "\(result.errors)")
    let others = runtime.split(separator: "/").dropLast().map { "/" + $0 }.joined()
    let libraries = folder.path + ":" + others

    let program = try TaskProgram("waits", .release, libraries: libraries)
    #expect(program.runtime?.hasPrefix(folder.path) == true)
    let picture = try program.picture { $0.stand(["cycle-1", "cycle-2", "unsafe", "all-awaits"]) }
    for name in ["sleeps", "all-sleeps", "next-sleeps"] {
      #expect(picture.need(of: try picture.named(name)) == .unknown)
    }
    guard case .resumption = picture.need(of: try picture.named("unsafe")) else {
      Issue.record("\(try picture.named("unsafe"))")
      return
    }
    #expect(picture.pools == nil)
    #expect(picture.tasks.allSatisfy { $0.name != nil || $0.kind == .asyncLet })
    // Threads' own words are where they were.
    let actors = try TaskProgram("actors", .release, libraries: libraries)
    let owner = TaskProgram.number("owner")
    let other = try actors.picture { $0.running[owner]?.task != nil && $0.stand(["waiter-1"]) }
    #expect(other.running[owner]?.task == (try other.named("owner").address))
  }

  @Test("a program without tasks has nothing to read")
  func none() throws {
    let sleeper = try Run("/bin/sleep", ["100"])
    let pid = ProcessID(sleeper.pid)
    #expect(ConcurrencyMemory(files: ProcessFiles(pid), memory: ProcessMemory(pid)) == nil)
  }

  @Test("this very process, whose reader keeps copies of what it reads")
  func own() async throws {
    let held = Held()
    let names = (0..<20).map { "own-\($0)" }
    let tasks = names.map { name in
      Task.detached(name: name) { await withUnsafeContinuation { held.add($0) } }
    }
    while held.count < names.count { await Task.yield() }
    let files = ProcessFiles(ProcessID(getpid()))
    let readers = [0, 1].compactMap { _ in
      ConcurrencyMemory(files: files, memory: ProcessMemory(files.pid))
    }
    #expect(readers.count == 2)
    for reader in readers + readers {
      let found = reader.tasks().tasks.filter { $0.name?.hasPrefix("own-") == true }
      #expect(found.map { $0.name ?? "" }.sorted() == names.sorted())
    }
    held.resume()
    for task in tasks { await task.value }
    #expect(readers[0].tasks().tasks.allSatisfy { $0.name?.hasPrefix("own-") != true })
  }
}

/// Continuations, to be resumed together.
private final class Held: Sendable {
  private let continuations = Mutex<[UnsafeContinuation<Void, Never>]>([])
  var count: Int { continuations.withLock { $0.count } }
  func add(_ continuation: UnsafeContinuation<Void, Never>) {
    continuations.withLock { $0.append(continuation) }
  }
  func resume() {
    for continuation in continuations.withLock({ $0 }) { continuation.resume() }
  }
}
