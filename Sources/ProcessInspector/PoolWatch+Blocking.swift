internal import CHangcheck
internal import HangReport
internal import WaitForGraph

// Threads of Swift's cooperative pool that block although others are left: the way to an exhausted one.
extension PoolWatch {
  struct Blocking {
    var look: Look
    /// Those that are blocked, and of them those that have not been told.
    var workers: [ThreadID]
    var fresh: [ThreadID]
    var width: Int
    var seconds: Double

    var facts: BlockedPoolFacts {
      BlockedPoolFacts(workers: workers, fresh: fresh, width: width, seconds: seconds)
    }
  }

  struct BlockedThread: Hashable {
    var tid: KernelThreadID
    /// It has not run in between: it is in one call all the time.
    var timesRun: UInt64
  }

  private static let pause: UInt64 = 1_000_000_000

  /// Threads that have been in one blocking call for as long as a wait may last, each once.
  func blocking(now: UInt64, threshold: Duration) -> [Blocking] {
    guard now &- blockingAt >= max(Self.pause, 100 &* blockingCost) else { return [] }
    blockingAt = now
    // Of an exhausted one that is told.
    let pools = (watch.runtime.concurrency?.pools() ?? []).filter {
      $0.width > 0 && $0.busy > 0 && !$0.isExhausted
    }
    guard !pools.isEmpty, let dispatch = watch.runtime.dispatch else {
      blockingSince = [:]
      return []
    }
    let began = hck_monotonic_ns()
    defer { blockingCost = hck_monotonic_ns() &- began }
    let look = watch.wholeLook(now: now)
    let workers = workers(look, dispatch)
    var current: [BlockedThread: UInt64] = [:]
    var result: [Blocking] = []
    for pool in pools {
      var long: [(ThreadID, BlockedThread, since: UInt64)] = []
      for id in workers[pool.queue] ?? [] where isInBlockingCall(id, look) {
        guard let timesRun = look.timesRun[id] else { continue }
        let thread = BlockedThread(tid: look.thread(id).tid, timesRun: timesRun)
        let since = blockingSince[thread] ?? now
        current[thread] = since
        if now &- since >= threshold.nanoseconds { long.append((id, thread, since)) }
      }
      let fresh = long.filter { !toldBlocking.contains($0.1) }
      guard !fresh.isEmpty, let first = fresh.map(\.since).min() else { continue }
      toldBlocking.formUnion(fresh.map(\.1))
      result.append(
        Blocking(
          look: look, workers: long.map(\.0), fresh: fresh.map(\.0), width: pool.width,
          seconds: Double(now &- first) / 1e9))
    }
    blockingSince = current
    toldBlocking.formIntersection(current.keys)
    return result
  }

  /// Sleeps, or waits for what another thread gives; not in input or output.
  private func isInBlockingCall(_ id: ThreadID, _ look: Look) -> Bool {
    switch look.thread(id).standing?.kind {
    case .blocked(_, true), .timed: true
    default: false
    }
  }
}
