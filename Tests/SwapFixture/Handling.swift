import Foundation
import Watchdog

/// Scenarios whose handlers do what they should not.
let handling: [String: @Sendable () -> Void] = [
  "left behind": {
    // One handler never comes back, the next one is told all the same, also later.
    watch([.closure { _ in waitForEver() }, counting])
    ring(2)
    waitUntilTold(1)
    ring(2)
    waitUntilTold(2)
  },
  "takes a held lock": {
    let (a, b, meeting) = (NSLock(name: "a"), NSLock(name: "b"), Meeting(2))
    watch(
      [.closure { _ in a.withLock { say("unreachable") } }, counting, noting],
      waitThreshold: .seconds(3))
    thread("cancel") { takeBoth(a, b, meeting) }
    thread("submit") { takeBoth(b, a, meeting) }
    waitUntilTold(1)
    ring(2)
    waitUntilTold(2)
    waitUntilNoted()
  },
  "holds a lock": {
    // A closure that is left behind holds what a thread waits for: it has not ended, and a program
    // that waits for it is in no deadlock.
    let (lock, taken) = (NSLock(name: "kept"), Meeting(2))
    let calls = Counter()
    watch([
      .closure { _ in
        guard calls.next() == 1 else { return }
        lock.lock()
        taken.arrive()
        waitForEver()
      }, counting,
    ])
    ring(2)
    taken.arrive()
    thread("waiter") { lock.withLock {} }
    waitUntilTold(1)
    // What hangs for good is found after a second, were it believed to.
    sleep(3)
    say(told.value)
  },
  "blocked stderr": {
    blockStandardError()
    watch([.standardError, counting])
    ring(2)
    waitUntilTold(1)
    ring(2)
    waitUntilTold(2)
  },
  "blocked stderr, terminated": {
    blockStandardError()
    watch([.standardError], onDeadlock: .terminate)
    ring(2)
    waitForEver()
  },
  "blocked at exit": {
    // The exit waits for misuse to be told, and not for ever.
    blockStandardError()
    watch([.closure { _ in waitForEver() }, .standardError])
    let lock = NSLock()
    lock.lock()
    thread("other") {
      lock.unlock()
      exit(3)
    }
    waitForEver()
  },
  "blocked before a trap": {
    // The next handler is told before the program ends.
    watch([.closure { _ in waitForEver() }, .jsonLines(CommandLine.arguments[2])])
    DispatchQueue.main.sync {}
  },
  "stops itself": {
    watch([
      .closure { _ in
        Watchdog.shared.stop()
        say("stopped")
      }, counting,
    ])
    ring(2)
    waitUntilTold(1)
  },
  "full": {
    // The log may not grow beyond what fits of it; the program has its own idea of SIGXFSZ.
    signal(SIGXFSZ) { _ in _exit(9) }
    let log = CommandLine.arguments[2]
    watch([.jsonLines(log), counting])
    ring(2)
    waitUntilTold(1)
    var before = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before)
    var limit = rlimit(rlim_cur: rlim_t(size(of: log) + 1000), rlim_max: before.rlim_max)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    ring(2)
    waitUntilTold(2)
    let isSame = signal(SIGXFSZ, SIG_DFL).map { unsafeBitCast($0, to: Int.self) } ?? 0 > 1
    say(isSame)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before)
    ring(2)
    waitUntilTold(3)
  },
  "rotating": {
    // Five reports, one after the other, into a log that others write as well.
    watch([.jsonLines(CommandLine.arguments[2], rotatingAt: 60_000, keeping: 1000), counting])
    for round in 1...5 {
      ring(2)
      waitUntilTold(round)
    }
  },
]

private func watch(
  _ handlers: [Watchdog.Handler], onDeadlock: Watchdog.OnDeadlock = .continue,
  waitThreshold: Duration = .seconds(1000)
) {
  var configuration = Watchdog.Configuration()
  configuration.handlers = handlers
  configuration.onDeadlock = onDeadlock
  configuration.waitThreshold = waitThreshold
  Watchdog.shared.start(configuration)
}

final class Counter: @unchecked Sendable {
  private let lock = Foundation.NSLock()
  private var count = 0
  func next() -> Int {
    lock.withLock {
      count += 1
      return count
    }
  }
  var value: Int { lock.withLock { count } }
}

private let told = Counter()
private let counting = Watchdog.Handler.closure { report in
  if report.findings.contains(where: { $0.kind == .deadlock }) { _ = told.next() }
}

private let noted = Counter()
/// Says where a handler's own thread waits.
private let noting = Watchdog.Handler.closure { report in
  for thread in report.threads where thread.name == "hangcheck-log" {
    guard let wait = thread.waitsFor, noted.value == 0 else { return }
    let lock = report.resources.first { $0.id == wait.resource }?.name ?? "?"
    let own = wait.stack.filter { !$0.runtime }.count
    say(report.findings.map(\.kind.rawValue), lock, own)
    _ = noted.next()
  }
}

private func waitUntilNoted() { while noted.value < 1 { usleep(5000) } }

/// The test ends what does not get there.
private func waitUntilTold(_ count: Int) {
  while told.value < count { usleep(5000) }
  say("told", count)
}

private func size(of path: String) -> Int {
  (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
}

/// Makes standard error a full pipe whose reader sleeps.
private func blockStandardError() {
  var ends: [Int32] = [0, 0]
  pipe(&ends)
  let flags = fcntl(ends[1], F_GETFL)
  _ = fcntl(ends[1], F_SETFL, flags | O_NONBLOCK)
  let bytes = [UInt8](repeating: 32, count: 4096)
  while write(ends[1], bytes, bytes.count) > 0 {}
  _ = fcntl(ends[1], F_SETFL, flags)
  dup2(ends[1], 2)
}
