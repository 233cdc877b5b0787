internal import CHangcheck
internal import WaitForGraph

/// Watches one process for threads that fail in turn to take what the others of them hold, a tick at
/// a time. Confined to one thread.
///
/// A streak is a thread's failures since it got on (`hck_trial`). Those that last for the threshold
/// are asked who kept them from their lock; a circle of such threads is a livelock. Who holds the lock
/// is what its memory said when the try failed, of a lock that names no owner what is on record.
final class LivelockWatch {
  struct Member {
    var tid: KernelThreadID
    var failures: Int
    /// What it tries for, and the next member holds.
    var lock: ResourceKey
    var tried: RecordedSite?
    /// Where the next member took that; nil where it is not known.
    var taken: RecordedSite?
    /// The same as an address alone.
    var takenAt: UInt64?
  }
  struct Found {
    var look: Look
    /// Each is kept by the next one, the last by the first.
    var members: [Member]
    var seconds: Double
  }
  private struct Edge: Hashable {
    var lock: ResourceKey
    var owner: KernelThreadID
  }
  private struct Sighting {
    var count: Int
    var last: UInt64
    var tried: RecordedSite?
    var taken: RecordedSite?
    var takenAt: UInt64?
  }
  private struct Streak {
    var generation: UInt32
    var since: UInt32
    var tid: KernelThreadID
    var failures: UInt32
    /// From when on it counts, on the arena's clock, and the failures before.
    var began: UInt32
    var failedBefore: UInt32 = 0
    var edges: [Edge: Sighting] = [:]
    /// What it held when it failed last.
    var holds: [RecordedHold] = []
    /// How often it was seen to have taken anew what it holds, by the clock of the arena.
    var taken: [ResourceKey: (since: UInt32, times: Int)] = [:]
    /// Of semaphores that it tried for in vain: how many permits it had taken by then.
    var permits: [ResourceKey: UInt64] = [:]
    var isTold = false
  }

  private let watch: DeadlockWatch
  private var streaks: [UInt32: Streak] = [:]
  private var lookedAt: UInt64 = 0
  private var cost: UInt64 = 0

  private static let interval: UInt64 = 20_000_000
  /// With fewer a thread just waits.
  private static let leastFailures: UInt32 = 4
  /// One sighting may be of somebody who was about to give the lock back.
  private static let leastSightings = 2

  init(_ watch: DeadlockWatch) { self.watch = watch }

  /// Those that have lasted for the threshold since the last call.
  func tick(now: UInt64, threshold: Duration) -> [Found] {
    guard now &- lookedAt >= max(Self.interval, 20 &* cost) else { return [] }
    lookedAt = now
    let began = hck_monotonic_ns()
    defer { cost = hck_monotonic_ns() &- began }
    let clock = watch.arena.clock
    let patience = UInt32(clamping: threshold.nanoseconds / 1_000_000)
    readTrials(now: now, patience: patience)
    let recent = max(threshold.nanoseconds / 2, 200_000_000)
    let ripe = streaks.filter { _, streak in
      clock &- streak.began >= patience
        && streak.failures &- streak.failedBefore >= Self.leastFailures
    }
    guard ripe.count > 1, ripe.contains(where: { !$0.value.isTold }) else { return [] }
    var kept: [KernelThreadID: [(edge: Edge, sighting: Sighting)]] = [:]
    let tids = Set(ripe.values.map(\.tid))
    for streak in ripe.values {
      kept[streak.tid] = streak.edges.filter { edge, sighting in
        edge.owner != streak.tid && tids.contains(edge.owner) && now &- sighting.last <= recent
          && sighting.count >= Self.leastSightings && givesBack(edge)
      }.map { (edge: $0, sighting: $1) }.sorted { a, b in
        (b.sighting.count, a.edge.lock.address) < (a.sighting.count, b.edge.lock.address)
      }
    }
    var found: [Found] = []
    for streak in ripe.values.sorted(by: { $0.tid < $1.tid }) where !streak.isTold {
      guard let circle = circle(from: streak.tid, kept) else { continue }
      let members = circle.map { tid, edge, sighting in
        Member(
          tid: tid,
          failures: ripe.values.first { $0.tid == tid }.map {
            Int($0.failures &- $0.failedBefore)
          } ?? 0,
          lock: edge.lock, tried: sighting.tried, taken: sighting.taken, takenAt: sighting.takenAt)
      }
      let own = Set(members.map(\.tid))
      if found.contains(where: { !own.isDisjoint(with: $0.members.map(\.tid)) }) { continue }
      var least = UInt32.max
      for (slot, other) in ripe where own.contains(other.tid) {
        streaks[slot]?.isTold = true
        least = min(least, clock &- other.began)
      }
      found.append(
        Found(look: watch.wholeLook(now: now), members: members, seconds: Double(least) / 1000))
    }
    return found
  }

  private func readTrials(now: UInt64, patience: UInt32) {
    let arena = watch.arena
    var trials: [RecordedTrial] = []
    for slot in 0..<arena.slots {
      let failures = arena.failures(slot)
      guard failures != 0 else {
        if !streaks.isEmpty { streaks[slot] = nil }
        continue
      }
      // Nothing new to learn.
      if streaks[slot]?.failures == failures, streaks[slot]?.generation == arena.generation(slot) {
        continue
      }
      if let trial = arena.trial(slot) { trials.append(trial) }
    }
    for trial in trials where !watch.ignored.contains(trial.tid) { begin(trial) }
    for trial in trials where !watch.ignored.contains(trial.tid) {
      note(trial, now: now, patience: patience)
    }
  }

  private func begin(_ trial: RecordedTrial) {
    let old = streaks[trial.slot]
    var streak =
      old.flatMap { old in
        old.generation == trial.generation && old.since == trial.since
          && old.failures <= trial.failures ? old : nil
      }
      ?? Streak(
        generation: trial.generation, since: trial.since, tid: trial.tid, failures: 0,
        began: trial.since)
    streak.failures = trial.failures
    streak.holds = trial.holds
    for hold in trial.holds {
      let known = streak.taken[hold.key]
      guard known?.since != hold.since else { continue }
      streak.taken[hold.key] = (hold.since, (known?.times ?? 0) + 1)
    }
    streaks[trial.slot] = streak
  }

  private func note(_ trial: RecordedTrial, now: UInt64, patience: UInt32) {
    guard var streak = streaks[trial.slot] else { return }
    if Self.isSemaphore(trial.lock) {
      if streak.permits[trial.lock] == nil {
        streak.permits[trial.lock] = permitsTaken(trial.lock, by: trial.tid)
        streaks[trial.slot] = streak
      }
      // Many look for signals with a time limit, and tallies take long to find.
      if watch.arena.clock &- streak.began < patience / 2 { return }
    }
    if hasTaken(streak) {
      streak.began = watch.arena.clock
      streak.failedBefore = trial.failures
      streak.edges = [:]
      streak.permits = [:]
    }
    for owner in owners(of: trial) where owner != trial.tid {
      let edge = Edge(lock: trial.lock, owner: owner)
      var sighting = streak.edges[edge] ?? Sighting(count: 0, last: now)
      sighting.count += 1
      sighting.last = now
      sighting.tried = trial.site ?? sighting.tried
      let place = place(trial.lock, of: owner)
      sighting.taken = place.site ?? sighting.taken
      sighting.takenAt = place.address ?? sighting.takenAt
      streak.edges[edge] = sighting
    }
    streaks[trial.slot] = streak
  }

  /// Whether the owner gives the lock back between its own failures: whoever keeps it is just slow. Of
  /// what no record shows it is taken for granted.
  private func givesBack(_ edge: Edge) -> Bool {
    guard let owner = streaks.values.first(where: { $0.tid == edge.owner }),
      let taken = owner.taken[edge.lock]
    else { return true }
    return taken.times > 1
  }

  /// Who kept a thread from a lock.
  private func owners(of trial: RecordedTrial) -> [KernelThreadID] {
    if let owner = trial.owner { return [owner] }
    if Self.isSemaphore(trial.lock) {
      let keepers = keepers(of: trial.lock)
      return keepers.count == 1 ? keepers : []
    }
    // Of readers a lock knows the number alone, of a spin lock's owner nothing.
    guard trial.lock.kind == HCK_RWLOCK.rawValue || trial.lock.kind == HCK_SPIN.rawValue else {
      return []
    }
    return streaks.values.filter { other in other.holds.contains { $0.key == trial.lock } }
      .map(\.tid).sorted()
  }

  /// Where a thread took what it holds: as it was kept when that one failed itself, or as it holds it
  /// now.
  private func place(
    _ lock: ResourceKey, of owner: KernelThreadID
  ) -> (site: RecordedSite?, address: UInt64?) {
    if let own = streaks.values.first(where: { $0.tid == owner }),
      let hold = own.holds.first(where: { $0.key == lock })
    {
      return (hold.site, nil)
    }
    // A drop-in Mutex says where it was taken last, in front of its word.
    guard lock.kind == HCK_FUTEX_LOCK.rawValue,
      watch.memory.word32(lock.address).map({ $0 & 0x3fff_ffff })
        == UInt32(bitPattern: owner.rawValue)
    else { return (nil, nil) }
    return (nil, ReportAssembler.mark(of: lock.address, watch.memory)?.taken)
  }

  // MARK: - Semaphores

  private static func isSemaphore(_ key: ResourceKey) -> Bool {
    key.kind == HCK_SEMAPHORE.rawValue || key.kind == HCK_POSIX_SEMAPHORE.rawValue
  }

  private func permitsTaken(_ key: ResourceKey, by tid: KernelThreadID) -> UInt64 {
    watch.arena.tallies(of: key).filter { $0.tid == tid && $0.operation == .take }
      .reduce(0) { $0 &+ $1.count }
  }

  /// Who has the permit of a semaphore that is used as a lock: made with one permit, which nobody gives
  /// who has not taken it. Of any other, as of a mailbox, nobody has anything.
  private func keepers(of key: ResourceKey) -> [KernelThreadID] {
    var kept: [KernelThreadID: Int] = [:]
    var first: UInt64?
    for tally in watch.arena.tallies(of: key) {
      if tally.operation == .create { first = tally.count }
      guard let tid = tally.tid else { continue }
      switch tally.operation {
      case .take: kept[tid, default: 0] += Int(clamping: tally.count)
      case .give: kept[tid, default: 0] -= Int(clamping: tally.count)
      default: break
      }
    }
    guard first == 1, kept.values.allSatisfy({ $0 >= 0 }) else { return [] }
    return kept.filter { $0.value > 0 }.keys.sorted()
  }

  /// Whether it got a permit of a semaphore that it tried for in vain, which its slot does not say.
  private func hasTaken(_ streak: Streak) -> Bool {
    streak.permits.contains { permitsTaken($0.key, by: streak.tid) != $0.value }
  }

  // MARK: - Circles

  /// The shortest way from a thread back to itself.
  private func circle(
    from start: KernelThreadID, _ kept: [KernelThreadID: [(edge: Edge, sighting: Sighting)]]
  ) -> [(KernelThreadID, Edge, Sighting)]? {
    var ways: [[(KernelThreadID, Edge, Sighting)]] = [[]]
    var seen: Set<KernelThreadID> = [start]
    while !ways.isEmpty {
      var longer: [[(KernelThreadID, Edge, Sighting)]] = []
      for way in ways {
        let last = way.last?.1.owner ?? start
        for (edge, sighting) in kept[last] ?? [] {
          let next = way + [(last, edge, sighting)]
          if edge.owner == start { return next }
          if seen.insert(edge.owner).inserted { longer.append(next) }
        }
      }
      ways = longer
    }
    return nil
  }
}
