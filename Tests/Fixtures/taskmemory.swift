// Tasks, actors and continuations that stand still, each in one way: what ConcurrencyMemory must
// find. Says 'ready' when everything was started, and which thread is where.
import Dispatch
import Glibc
import Synchronization

setvbuf(stdout, nil, _IOLBF, 0)
let never = DispatchSemaphore(value: 0)

func here(_ name: String) { print("thread \(name) \(pthread_self())") }

final class Shared: @unchecked Sendable {
  var first: Task<Void, Never>?
  var second: Task<Void, Never>?
  let unsafe = Mutex<[UnsafeContinuation<Int, Never>]>([])
  var checked: CheckedContinuation<Void, Never>?
}
let shared = Shared()

func waitUnsafe(_ number: Int) async -> Int {
  let doubled = number * 2
  let result = await withUnsafeContinuation { continuation in  // AWAITS
    shared.unsafe.withLock { $0.append(continuation) }
  }
  return result + doubled
}

func callsWaitUnsafe() async -> Int {
  let one = 1
  let result = await waitUnsafe(one)  // CALLS
  return result + one
}

func waitChecked() async {
  await withCheckedContinuation { shared.checked = $0 }
}

func waitDropped() async {
  await withCheckedContinuation { (_: CheckedContinuation<Void, Never>) in }
}

func sleepLong() async { try? await Task.sleep(for: .seconds(10_000)) }
func sleepNanoseconds() async { try? await Task.sleep(nanoseconds: 10_000_000_000_000) }

actor Blocked {
  func block() {
    here("owner")
    never.wait()
  }
  func touch() {}
}

func level3() async {
  here("level")
  never.wait()
  await Task.yield()
}
func level2() async -> Int {
  await level3()  // LEVEL2
  return 2
}
func level1() async { print(await level2()) }

func waits() {
  shared.first = Task.detached(name: "cycle-1") {
    while shared.second == nil { usleep(1000) }
    await shared.second?.value
  }
  shared.second = Task.detached(name: "cycle-2") { await shared.first?.value }
  let unsafe = Task.detached(name: "unsafe") { _ = await callsWaitUnsafe() }
  Task.detached(name: "checked") { await waitChecked() }
  Task.detached(name: "dropped") { await waitDropped() }
  Task.detached(name: "all") {
    await withTaskGroup(of: Void.self) { group in
      group.addTask(name: "all-sleeps") { await sleepLong() }
      group.addTask(name: "all-awaits") { await unsafe.value }
      await group.waitForAll()
    }
  }
  Task.detached(name: "next") {
    await withTaskGroup(of: Void.self) { group in
      group.addTask(name: "next-sleeps") { await sleepLong() }
      group.addTask(name: "next-awaits") { await unsafe.value }
      await group.next()
    }
  }
  Task.detached(name: "discarding") {
    await withDiscardingTaskGroup { group in
      group.addTask(name: "discarding-awaits") { await unsafe.value }
    }
  }
  Task.detached(name: "async-let") {
    async let value = waitUnsafe(3)
    _ = await value
  }
  Task.detached(name: "sleeps", priority: .high) { await sleepNanoseconds() }
  Task.detached(name: "for-main") { await MainActor.run {} }
  let ended = DispatchGroup()
  for _ in 0..<200 {
    ended.enter()
    Task.detached(name: "ended") { ended.leave() }
  }
  ended.wait()
}

func actors() {
  let actor = Blocked()
  Task.detached(name: "owner") { await actor.block() }
  usleep(100_000)
  Task.detached(name: "waiter-1", priority: .low) { await actor.touch() }
  Task.detached(name: "waiter-2", priority: .high) { await actor.touch() }
}

func levels() { Task.detached(name: "level") { await level1() } }

func pool() {
  for index in 0..<sysconf(Int32(_SC_NPROCESSORS_ONLN)) + 6 {
    Task.detached(name: "hog-\(index)") {
      here("hog-\(index)")
      never.wait()
    }
  }
  Task.detached(name: "other", priority: .high) { _ = await waitUnsafe(1) }
}

func many() {
  for _ in 0..<20_000 { Task.detached { _ = await waitUnsafe(1) } }
  let ended = DispatchGroup()
  for _ in 0..<20_000 {
    ended.enter()
    Task.detached(name: "ended") { ended.leave() }
  }
  ended.wait()
}

here("main")
switch CommandLine.arguments.dropFirst().first {
case "waits": waits()
case "actors": actors()
case "levels": levels()
case "pool": pool()
case "many": many()
default: break
}
print("ready")
while true { sleep(1000) }
