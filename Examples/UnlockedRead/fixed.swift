// Whoever uses the number holds the lock, to read it as well.
import Foundation
import InstrumentedLocks

final class Statistics: @unchecked Sendable {
  private let lock = InstrumentedLock(name: "statistics")
  @RaceChecked(name: "requests") private var requests = 0

  func count() {
    lock.lock()
    defer { lock.unlock() }
    requests += 1
  }

  var summary: String { lock.withLock { "\(requests) requests" } }
}

let statistics = Statistics()
InstrumentedThread {
  Thread.current.name = "server"
  for _ in 0..<50 { statistics.count() }
  sleep(2)
}.start()
usleep(500_000)
print(statistics.summary)
sleep(1)
