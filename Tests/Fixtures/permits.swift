// WITH(support.swift)
// Semaphores that nobody will signal, that are signalled too often, or that go too soon; the first
// argument says which.
import Foundation

@main enum Permits {
  static func main() {
    play([
      "limiter": limiter, "thrown": thrown, "pool": pool, "main": onMain, "main-nested": mainNested,
      "own-queue": ownQueue, "behind": behind, "ping-pong": pingPong, "lost": lost,
      "two-limiters": twoLimiters, "nested-limiter": nestedLimiter, "lock": lock,
      "run-loop": runLoop, "notify": notify, "timer-off": timerOff, "below": below,
      "below-queue": belowQueue, "over": over, "wrong-count": wrongCount,
    ])
  }
}

// MARK: a permit that is not given back

/// Uploads, two at a time; one that is refused returns before it gives its permit back.
func limiter() {
  let permits = DispatchSemaphore(value: 2)
  func upload(_ size: Int) {
    permits.wait()  // WAITS(uploader-2)
    guard size < 100 else { return }
    pause(20)
    permits.signal()
  }
  for (i, size) in [500, 900, 10].enumerated() {
    let thread = start("uploader-\(i)") { upload(size) }
    if i < 2 { watch(thread) }
  }
  permits.wait()  // WAITS(limiter:main)
  permits.signal()
}

struct Refused: Error {}
func thrown() {
  let permits = DispatchSemaphore(value: 1)
  func store(_ valid: Bool) throws {
    permits.wait()  // WAITS(thrown:main)
    if !valid { throw Refused() }
    permits.signal()
  }
  let first = start("first") { try? store(false) }
  watch(first)
  try? store(true)
}

/// A connection pool whose users forget to give back what they got.
final class ConnectionPool {
  private let free: DispatchSemaphore
  private let lock = NSLock()
  private var connections: [Int]
  init(_ count: Int) {
    free = DispatchSemaphore(value: count)
    connections = Array(0..<count)
  }
  func take() -> Int {
    free.wait()  // WAITS(client-*)
    return lock.withLock { connections.removeLast() }
  }
  func give(_ connection: Int) {
    lock.withLock { connections.append(connection) }
    free.signal()
  }
}
func pool() {
  let pool = ConnectionPool(3)
  let all = DispatchGroup()
  for i in 0..<5 {
    all.enter()
    start("client-\(i)") {
      if i >= 3 { pause(50) }
      let (first, second) = (pool.take(), i < 3 ? nil : Optional(pool.take()))
      pause(30)
      // Each of the first three keeps what it has.
      if let second {
        pool.give(first)
        pool.give(second)
      }
      all.leave()
    }
  }
  all.wait()  // WAITS(pool:main)
}

// MARK: the signal is queued behind what waits

/// The completion comes on the main queue, for which the main thread does not look.
func onMain() {
  let answered = DispatchSemaphore(value: 0)
  DispatchQueue.global().async {
    pause(50)
    DispatchQueue.main.async { answered.signal() }
  }
  answered.wait()  // WAITS(main:main)
}

/// The same inside a block of the main queue.
func mainNested() {
  DispatchQueue.main.async {
    let saved = DispatchSemaphore(value: 0)
    DispatchQueue.main.asyncAfter(deadline: .now() + 0.1) { saved.signal() }
    saved.wait()  // WAITS(main-nested:main)
    done()
  }
  RunLoop.main.run()
}

func ownQueue() {
  let queue = DispatchQueue(label: "player")
  let isDone = Flag()
  queue.async {
    call("player")
    let loaded = DispatchSemaphore(value: 0)
    queue.async { loaded.signal() }
    loaded.wait()  // WAITS(player)
    isDone.set()
  }
  isDone.poll()
}

/// Two queues, each of which waits for what stands behind the other.
func behind() {
  let (audio, video) = (DispatchQueue(label: "audio"), DispatchQueue(label: "video"))
  let (heard, seen) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
  let all = DispatchGroup()
  audio.async(group: all) {
    call("audio")
    meet(2)
    seen.wait()  // WAITS(audio)
  }
  video.async(group: all) {
    call("video")
    meet(2)
    heard.wait()  // WAITS(video)
  }
  audio.async(group: all) { heard.signal() }
  video.async(group: all) { seen.signal() }
  all.wait()  // WAITS(behind:main)
}

// MARK: signals that never come

/// Each waits for the other's turn to be over.
func pingPong() {
  let (ping, pong) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
  start("ponger") {
    ping.wait()  // WAITS(ponger)
    pong.signal()
  }
  pong.wait()  // WAITS(ping-pong:main)
  ping.signal()
}

/// The signal goes into a semaphore that was replaced.
func lost() {
  var ready = DispatchSemaphore(value: 0)
  let old = ready
  ready = DispatchSemaphore(value: 0)
  watch(start("signaller") { old.signal() })
  ready.wait()  // WAITS(lost:main)
}

/// Blocks the main thread until all of them have come to their ends.
func all(_ bodies: KeyValuePairs<String, () -> Void>) {
  let group = DispatchGroup()
  for (name, body) in bodies {
    group.enter()
    start(name) {
      body()
      group.leave()
    }
  }
  group.wait()
}

/// Two limiters of one permit each, taken in two orders.
func twoLimiters() {
  let (disk, net) = (DispatchSemaphore(value: 1), DispatchSemaphore(value: 1))
  all([
    "fetcher": {
      net.wait()  // HOLDS(fetcher)
      meet(2)
      disk.wait()  // WAITS(fetcher)
      disk.signal()
      net.signal()
    },
    "pusher": {
      disk.wait()  // HOLDS(pusher)
      meet(2)
      net.wait()  // WAITS(pusher)
      net.signal()
      disk.signal()
    },
  ])
}

/// Everybody who has a permit waits for another one of the same limiter.
func nestedLimiter() {
  let permits = DispatchSemaphore(value: 3)
  func crawl() {
    permits.wait()  // HOLDS(crawler-*)
    meet(3)
    permits.wait()  // WAITS(crawler-*)
    permits.signal()
    permits.signal()
  }
  all(["crawler-0": crawl, "crawler-1": crawl, "crawler-2": crawl])
}

func lock() {
  let (lock, permit) = (NSLock(), DispatchSemaphore(value: 1))
  all([
    "indexer": {
      lock.lock()  // HOLDS(indexer)
      meet(2)
      permit.wait()  // WAITS(indexer)
      permit.signal()
      lock.unlock()
    },
    "cleaner": {
      permit.wait()  // HOLDS(cleaner)
      meet(2)
      lock.lock()  // WAITS(cleaner)
      lock.unlock()
      permit.signal()
    },
  ])
}

/// A timer of the main run loop would signal: the run loop does not run.
func runLoop() {
  let fired = DispatchSemaphore(value: 0)
  let timer = Timer(timeInterval: 0.1, repeats: false) { _ in fired.signal() }
  RunLoop.main.add(timer, forMode: .default)
  fired.wait()  // WAITS(run-loop:main)
}

/// A group's notify would signal, and the group's last leave comes after the wait.
func notify() {
  let group = DispatchGroup()
  let all = DispatchSemaphore(value: 0)
  group.enter()
  group.notify(queue: .global()) { all.signal() }
  all.wait()  // WAITS(notify:main)
  group.leave()
}

/// The timer that would signal is cancelled before it fires.
func timerOff() {
  let ticked = DispatchSemaphore(value: 0)
  let timer = DispatchSource.makeTimerSource(queue: .global())
  timer.setEventHandler { ticked.signal() }
  timer.schedule(deadline: .now() + 0.5)
  timer.resume()
  timer.cancel()
  ticked.wait()  // WAITS(timer-off:main)
}

// MARK: a permit out when the semaphore goes: a trap to come

final class Client {
  private let permit = DispatchSemaphore(value: 2)
  func fetch() { permit.wait() }
}
func below() {
  watch(
    start("owner") {
      var client: Client? = Client()
      client?.fetch()
      client = nil
    })
  pause(200)
}

func belowQueue() {
  let queue = DispatchQueue(label: "requests")
  func request() {
    let permit = DispatchSemaphore(value: 1)
    queue.async { permit.wait() }
  }
  request()
  // It ends in a trap long before.
  pause(5000)
}

// MARK: more permits than there are

/// A limiter that is signalled on a path that never waited.
func over() {
  let permits = DispatchSemaphore(value: 2)
  func work(_ cached: Bool) {
    defer { permits.signal() }
    if cached { return }
    permits.wait()
    pause(5)
  }
  for i in 0..<6 { watch(start("job-\(i)") { work(i % 2 == 1) }) }
}

/// One signal for three who wait.
func wrongCount() {
  let opened = DispatchSemaphore(value: 0)
  let all = DispatchGroup()
  for i in 0..<3 {
    all.enter()
    start("guest-\(i)") {
      opened.wait()  // WAITS(guest-*)
      all.leave()
    }
  }
  start("door") {
    pause(50)
    opened.signal()
  }
  all.wait()  // WAITS(wrong-count:main)
}
