// WITH(support.swift)
// Groups that are never left, left too often, or left only by what waits for them; the first argument
// says which.
import Foundation

@main enum Groups {
  static func main() {
    play([
      "error-path": errorPath, "early-return": earlyReturn, "callback-lost": callbackLost,
      "two-of-three": twoOfThree, "inside": inside, "own-queue": ownQueue, "main": onMain,
      "notify-never": notifyNever, "at-exit": atExit, "freed": freed, "twice": twice,
      "before": before, "late-twice": lateTwice, "lock": lock, "each-other": eachOther,
      "nested": nested, "suspended": suspended, "victims": victims,
    ])
  }
}

// MARK: leave is missing

struct Failure: Error {}
func download(_ number: Int, _ completion: @escaping (Result<Int, Failure>) -> Void) {
  DispatchQueue.global().async {
    pause(20)
    completion(number == 2 ? .failure(Failure()) : .success(number))
  }
}

/// The error path forgets to leave.
func errorPath() {
  let group = DispatchGroup()
  for number in 0..<4 {
    group.enter()
    download(number) { result in
      guard case .success = result else { return }
      group.leave()
    }
  }
  group.wait()  // WAITS(error-path:main)
}

/// One function enters, and returns early before anything that would leave.
func earlyReturn() {
  let group = DispatchGroup()
  func refresh(_ name: String?) {
    group.enter()
    guard let name else { return }
    start(name) { group.leave() }
  }
  refresh("weather")
  refresh(nil)
  group.wait()  // WAITS(early-return:main)
}

/// Whoever would have called back is gone.
final class Session {
  func fetch(_ completion: @escaping () -> Void) {
    DispatchQueue.global().asyncAfter(deadline: .now() + 0.1) { [weak self] in
      if self != nil { completion() }
    }
  }
}
func callbackLost() {
  let group = DispatchGroup()
  group.enter()
  Session().fetch { group.leave() }
  group.wait()  // WAITS(callback-lost:main)
}

func twoOfThree() {
  let group = DispatchGroup()
  let threads = (0..<3).map { i -> Thread in
    group.enter()
    return start("worker-\(i)") { if i != 1 { group.leave() } }
  }
  for thread in threads { watch(thread) }
  group.wait()  // WAITS(two-of-three:main)
}

// MARK: leave comes from what waits

/// A block of the group waits for its group.
func inside() {
  let group = DispatchGroup()
  let isDone = Flag()
  DispatchQueue.global().async(group: group) {
    call("insider")
    group.wait()  // WAITS(insider)
    isDone.set()
  }
  isDone.poll()
}

/// What would leave is queued on the serial queue that waits.
func ownQueue() {
  let queue = DispatchQueue(label: "batch")
  let isDone = Flag()
  queue.async {
    call("batcher")
    let group = DispatchGroup()
    for _ in 0..<3 { queue.async(group: group) { print("part") } }
    group.wait()  // WAITS(batcher)
    isDone.set()
  }
  isDone.poll()
}

func onMain() {
  let group = DispatchGroup()
  group.enter()
  DispatchQueue.global().async {
    pause(30)
    DispatchQueue.main.async { group.leave() }
  }
  group.wait()  // WAITS(main:main)
}

// MARK: nobody waits, and it is wrong all the same

/// All that the program does waits in a notify, which never comes.
func notifyNever() {
  let group = DispatchGroup()
  group.enter()
  group.enter()
  group.notify(queue: .main) { done() }
  DispatchQueue.global().async { group.leave() }
  dispatchMain()
}

/// The program ends, and a notify has never come.
func atExit() {
  let group = DispatchGroup()
  group.enter()
  group.notify(queue: .global()) { print("saved") }
  pause(200)
}

/// The last reference goes while something is outstanding; the enter keeps the group itself alive.
func freed() {
  func begin() {
    let group = DispatchGroup()
    group.enter()
    group.notify(queue: .global()) { print("notified") }
  }
  begin()
  pause(200)
}

// MARK: leave once too often: a trap to come

func twice() {
  let group = DispatchGroup()
  group.enter()
  func finish() { group.leave() }
  watch(start("timer") { finish() })
  watch(start("reply") { finish() })
  pause(200)
}

func before() {
  let group = DispatchGroup()
  group.leave()
  pause(200)
}

/// A callback that fires for each change, of which only the first was entered for.
func lateTwice() {
  let group = DispatchGroup()
  group.enter()
  let changes = DispatchQueue(label: "changes")
  for i in 0..<2 {
    changes.asyncAfter(deadline: .now() + 0.1 * Double(i + 1)) { group.leave() }
  }
  group.wait()
  pause(600)
}

// MARK: among others

func lock() {
  let group = DispatchGroup()
  let lock = NSLock()
  watch(
    start("collector") {
      lock.lock()  // HOLDS(collector)
      DispatchQueue.global().async(group: group) {
        call("gatherer")
        lock.lock()  // WAITS(gatherer)
        lock.unlock()
      }
      group.wait()  // WAITS(collector)
      lock.unlock()
    })
}

/// Two groups, each left by whoever waits for the other.
func eachOther() {
  let (maps, tiles) = (DispatchGroup(), DispatchGroup())
  maps.enter()
  tiles.enter()
  start("mapper") {
    tiles.wait()  // WAITS(mapper)
    maps.leave()
  }
  tiles.notify(queue: .global()) { print("tiles") }
  maps.wait()  // WAITS(each-other:main)
  tiles.leave()
}

/// The workers of an outer group wait for an inner group whose last member they are themselves.
func nested() {
  let (outer, inner) = (DispatchGroup(), DispatchGroup())
  for i in 0..<2 {
    inner.enter()
    DispatchQueue.global().async(group: outer) {
      call("member-\(i)")
      if i == 0 { inner.leave() }
      inner.wait()  // WAITS(member-*)
      if i == 1 { inner.leave() }
    }
  }
  outer.wait()  // WAITS(nested:main)
}

func suspended() {
  let queue = DispatchQueue(label: "paused")
  queue.suspend()
  let group = DispatchGroup()
  queue.async(group: group) { print("run") }
  group.wait()  // WAITS(suspended:main)
}

/// Two wait for each other through a group and a lock; others only wait behind them.
func victims() {
  let group = DispatchGroup()
  let lock = NSLock()
  let other = DispatchSemaphore(value: 0)
  group.enter()
  start("holder") {
    lock.lock()  // HOLDS(holder)
    meet(2)
    group.wait()  // WAITS(holder)
    lock.unlock()
  }
  start("leaver") {
    meet(2)
    pause(50)
    lock.lock()  // WAITS(leaver)
    lock.unlock()
    group.leave()
  }
  for i in 0..<2 {
    start("victim-\(i)") {
      pause(150)
      lock.lock()
      lock.unlock()
      other.signal()
    }
  }
  other.wait()
}
