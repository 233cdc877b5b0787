// Whoever changes the number holds the lock; the line that prints it does not. The two need not
// meet in time: nothing orders them, so one day they will.
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

  var summary: String { "\(requests) requests" }
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
