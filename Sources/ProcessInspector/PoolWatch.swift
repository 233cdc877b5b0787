internal import CHangcheck
internal import WaitForGraph

/// Watches one process for pools of threads that are all blocked while work is queued behind them, a
/// tick at a time. Confined to one thread.
///
/// A pool is one of libdispatch's global queues, or one of the queues behind Swift's cooperative pool.
/// It is told when all its threads have been found blocked, in waits that only this process ends, at
/// every look for as long as a wait may last; one that grows when eight are blocked, and again when
/// many are.
final class PoolWatch {
  struct Exhausted {
    var look: Look
    /// The threads, and what is listed of the queued work, of the look.
    var workers: [ThreadID]
    var queued: [ThreadID]
    var queuedCount: Int
    var resource: ResourceKey
    var isCooperative: Bool
    /// Of a pool that grows: it has few threads yet.
    var isSmall: Bool
    var seconds: Double
  }
  private struct Pool {
    var address: UInt64
    var name: String
    var isCooperative: Bool
    var queued: Int
  }

  // Threads that block while others are left: PoolWatch+Blocking.swift.
  var blockingAt: UInt64 = 0
  var blockingCost: UInt64 = 0
  var blockingSince: [BlockedThread: UInt64] = [:]
  var toldBlocking: Set<BlockedThread> = []

  let watch: DeadlockWatch
  private var blockedSince: [UInt64: UInt64] = [:]
  private var toldSmall: Set<UInt64> = []
  private var told: Set<UInt64> = []
  private var lookedAt: UInt64 = 0
  private var cost: UInt64 = 0

  private static let interval: UInt64 = 250_000_000
  private static let longestRest: UInt64 = 1_000_000_000
  /// Of a pool that grows: fewer blocked threads are no matter, and so many are an error.
  private static let someThreads = 8
  private static let manyThreads = 64

  init(_ watch: DeadlockWatch) { self.watch = watch }

  func tick(now: UInt64, threshold: Duration) -> [Exhausted] {
    guard now &- lookedAt >= max(Self.interval, min(20 &* cost, Self.longestRest)) else {
      return []
    }
    lookedAt = now
    let pools = poolsWithQueuedWork().filter { !told.contains($0.address) }
    guard !pools.isEmpty, let dispatch = watch.runtime.dispatch else {
      blockedSince = [:]
      return []
    }
    let began = hck_monotonic_ns()
    defer { cost = hck_monotonic_ns() &- began }
    let look = watch.wholeLook(now: now)
    let workers = workers(look, dispatch)
    var current: [UInt64: UInt64] = [:]
    defer { blockedSince = current }
    var result: [Exhausted] = []
    for pool in pools {
      let own = workers[pool.address] ?? []
      guard !own.isEmpty, own.allSatisfy({ isBlocked($0, look) }),
        pool.isCooperative || own.count >= Self.someThreads
      else { continue }
      let since = blockedSince[pool.address] ?? now
      current[pool.address] = since
      guard now &- since >= threshold.nanoseconds else { continue }
      let isSmall = !pool.isCooperative && own.count < Self.manyThreads
      let isNews =
        isSmall
        ? toldSmall.insert(pool.address).inserted : told.insert(pool.address).inserted
      if isNews {
        var found = exhausted(pool, since: since, now: now, dispatch)
        found.isSmall = isSmall
        result.append(found)
      }
    }
    return result.filter { !$0.workers.isEmpty }
  }

  /// The same of one look, where it is known for how many seconds threads have not run.
  func exhausted(
    _ look: Look, rested: [KernelThreadID: Double], now: UInt64, threshold: Duration
  ) -> Exhausted? {
    guard let dispatch = watch.runtime.dispatch else { return nil }
    let workers = workers(look, dispatch)
    for pool in poolsWithQueuedWork() {
      let own = workers[pool.address] ?? []
      guard !own.isEmpty, own.allSatisfy({ isBlocked($0, look) }),
        pool.isCooperative || own.count >= Self.someThreads,
        let least = own.map({ rested[look.thread($0).tid] ?? 0 }).min(),
        UInt64(min(least, 1e6) * 1e9) >= threshold.nanoseconds
      else { continue }
      let since = now &- UInt64(min(least, 1e6) * 1e9)
      var found = exhausted(pool, since: since, now: now, dispatch)
      found.isSmall = !pool.isCooperative && own.count < Self.manyThreads
      if !found.workers.isEmpty { return found }
    }
    return nil
  }

  /// The same with what is queued, and from where.
  private func exhausted(
    _ pool: Pool, since: UInt64, now: UInt64, _ dispatch: DispatchMemory
  ) -> Exhausted {
    var builder = watch.builder(now: now)
    builder.searchesTasks = pool.isCooperative
    if !pool.isCooperative { builder.pools = [pool.address: pool.name] }
    let look = builder.look(slots: nil, depth: .kernel)
    let key = ResourceKey(address: pool.address, kind: DerivedKind.pool)
    let queued = look.snapshot.threads.filter { thread in
      thread.kind != .thread && thread.wait.map { look.resource($0.resource) } == key
    }
    return Exhausted(
      look: look, workers: workers(look, dispatch)[pool.address] ?? [], queued: queued.map(\.id),
      queuedCount: max(pool.queued, queued.count), resource: key, isCooperative: pool.isCooperative,
      isSmall: false, seconds: Double(now &- since) / 1e9)
  }

  private func poolsWithQueuedWork() -> [Pool] {
    guard let dispatch = watch.runtime.dispatch else { return [] }
    var pools: [Pool] = []
    for root in dispatch.roots() where root.hasItems && !root.isOvercommit {
      // Its head is taken by whoever starts next: what is queued stays queued.
      let items = dispatch.rawItems(of: root.address, limit: 1000)
      guard !items.isEmpty else { continue }
      pools.append(
        Pool(
          address: root.address,
          name: ThreadPriority.QoS(label: root.label).map { "QoS \($0)" } ?? root.label,
          isCooperative: false, queued: items.count))
    }
    for pool in watch.runtime.concurrency?.pools() ?? [] where pool.isExhausted && !pool.isCut {
      pools.append(
        Pool(
          address: pool.queue, name: "", isCooperative: true, queued: pool.pending.count))
    }
    return pools
  }

  /// The threads that work for each pool.
  func workers(_ look: Look, _ dispatch: DispatchMemory) -> [UInt64: [ThreadID]] {
    var workers: [UInt64: [ThreadID]] = [:]
    var pthreads: [KernelThreadID: UInt64]?
    for thread in look.threads where thread.isAlive && thread.kind == .thread && !thread.isIdle {
      var pthread = thread.record?.pthread ?? 0
      if pthread == 0 {
        if pthreads == nil { pthreads = dispatch.pthreads() }
        pthread = pthreads?[thread.tid] ?? 0
      }
      guard pthread != 0 else { continue }
      let queues = dispatch.queuesOfThread(pthread: pthread)
      guard let outermost = queues.last, thread.tid.rawValue != watch.files.pid.rawValue else {
        continue
      }
      let pool =
        queues.first { dispatch.queue($0)?.isCooperativePool ?? false }
        ?? dispatch.targetChain(outermost).last
      if let pool { workers[pool, default: []].append(thread.id) }
    }
    return workers
  }

  /// In a wait without a time limit that a thread of this process must end.
  private func isBlocked(_ id: ThreadID, _ look: Look) -> Bool {
    guard case .blocked(_, true)? = look.thread(id).standing?.kind else { return false }
    return !(look.snapshot.threads[id.rawValue - 1].wait?.isTimed ?? false)
  }
}
