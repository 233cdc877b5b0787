internal import CHangcheck
internal import HangReport
internal import WaitForGraph

/// Watches one process for waits of urgent threads for less urgent ones, a tick at a time. Confined to
/// one thread.
///
/// A wait is looked at once it has lasted for half of the threshold: who must act, and whose work is
/// more urgent. From then on the scheduler's own figures say what the owner did, and who ran
/// meanwhile. It is told when it is over, or a second after the threshold.
final class InversionWatch {
  /// One that has lasted for the threshold.
  struct Opened {
    var look: Look
    var waiter: ThreadID
    var owner: ThreadID
    var resource: ResourceID
    fileprivate var identity: DeadlockWatch.WaitIdentity
  }
  /// What came of one, or comes of one that goes on.
  struct Outcome {
    var facts: InversionFacts
    var goesOn: Bool
  }
  struct Course {
    var identity: DeadlockWatch.WaitIdentity
    var waiter: KernelThreadID
    var owner: KernelThreadID
    var priorities: [KernelThreadID: ThreadPriority]
    /// When the wait began, and the figures: CLOCK_MONOTONIC in nanoseconds.
    var since: UInt64
    var begun: UInt64
    var times: [KernelThreadID: ThreadTimes]
    /// The figures when they were last read.
    var read: UInt64
    var latest: [KernelThreadID: ThreadTimes]
    /// When it was last seen waiting.
    var seen: UInt64
    var isOpened = false
  }

  private let watch: DeadlockWatch
  private var courses: [DeadlockWatch.WaitIdentity: Course] = [:]
  private var dismissed: Set<DeadlockWatch.WaitIdentity> = []
  /// Of threads without a record, for one look.
  private var pthreads: [KernelThreadID: UInt64]?
  private var lookedAt: UInt64 = 0
  private var cameEarly = false
  private var cost: UInt64 = 0

  // With more threads their figures would cost more than they tell.
  private static let mostThreads = 256
  private static let longestCourse: UInt64 = 1_000_000_000
  private static let longestRest: UInt64 = 150_000_000
  private static let sampleInterval: UInt64 = 50_000_000

  init(_ watch: DeadlockWatch) { self.watch = watch }

  /// Those that have lasted for the threshold since the last call.
  func opened(now: UInt64, threshold: UInt64) -> [Opened] {
    let waits = watch.firstSeen
    dismissed = dismissed.filter { waits[$0] != nil }
    // Those that were over before they had lasted for the threshold.
    courses = courses.filter { $0.value.isOpened || waits[$0.key] != nil }
    let young = waits.filter { identity, since in
      now &- since >= threshold / 2 && Self.concerns(identity.wait.key)
        && courses[identity] == nil && !dismissed.contains(identity)
    }
    let ripe = courses.values.filter { course in
      !course.isOpened && now &- course.since >= threshold && waits[course.identity] != nil
    }
    // One that is ripe may soon be over: every second look comes early for it.
    let rest = min(threshold / 4, 50_000_000)
    let costs = min(20 &* cost, Self.longestRest)
    let comesEarly = !ripe.isEmpty && !cameEarly
    guard !young.isEmpty || !ripe.isEmpty,
      now &- lookedAt >= (comesEarly ? rest : max(rest, costs))
    else { return [] }
    cameEarly = now &- lookedAt < costs
    lookedAt = now
    let began = hck_monotonic_ns()
    defer { cost = hck_monotonic_ns() &- began }
    let look = watch.wholeLook(now: now)
    pthreads = nil
    for (identity, since) in young {
      if let course = course(of: identity, since: since, look, now: now) {
        courses[identity] = course
      } else {
        dismissed.insert(identity)
      }
    }
    return ripe.compactMap { old in
      // Whom it waits for now, and whether that is an inversion still: a priority may be inherited.
      guard
        let (waiter, resource, owner) = subjects(of: old.identity, look),
        look.thread(owner).tid == old.owner,
        let priorities = inversion(look, waiter, owner)
      else {
        courses[old.identity] = nil
        dismissed.insert(old.identity)
        return nil
      }
      var course = old
      for thread in look.threads where course.times[thread.tid] != nil {
        course.priorities[thread.tid] = priority(thread)
      }
      course.priorities.merge(priorities) { $1 }
      course.isOpened = true
      courses[old.identity] = course
      return Opened(
        look: look, waiter: waiter, owner: owner, resource: resource, identity: old.identity)
    }
  }

  /// What came of one: nil while it goes on and may become worse. `isLast`: the process ends.
  func outcome(of opened: Opened, now: UInt64, isLast: Bool) -> Outcome? {
    guard var course = courses[opened.identity] else { return nil }
    let goesOn = watch.firstSeen[course.identity] != nil && !isLast
    let isOver = !goesOn || now &- course.begun >= Self.longestCourse
    if isOver || now &- course.read >= Self.sampleInterval {
      let latest = times(of: Array(course.times.keys))
      // Of threads that have ended, and of a process, the last is known.
      if !latest.isEmpty { course.read = now }
      course.latest.merge(latest) { $1 }
    }
    if goesOn { course.seen = now }
    courses[opened.identity] = course
    guard isOver else { return nil }
    courses[opened.identity] = nil
    dismissed.insert(opened.identity)
    return Outcome(facts: facts(course, opened), goesOn: goesOn)
  }

  private func facts(_ course: Course, _ opened: Opened) -> InversionFacts {
    func moved(_ tid: KernelThreadID) -> ThreadTimes? {
      guard let then = course.times[tid], let now = course.latest[tid] else { return nil }
      return ThreadTimes(ran: now.ran &- then.ran, ready: now.ready &- then.ready)
    }
    let window = course.read &- course.begun
    let waiter = course.priorities[course.waiter]
    let others = opened.look.threads.compactMap { thread -> InversionFacts.Other? in
      guard thread.isAlive, thread.kind == .thread, thread.tid != course.owner,
        let ran = moved(thread.tid)?.ran, ran >= window / 10, window > 0,
        // Who is as urgent as the waiter would have had the processor anyway.
        let priority = course.priorities[thread.tid], let waiter, waiter.outranks(priority)
      else { return nil }
      return .init(thread: thread.id, seconds: Double(ran) / 1e9)
    }
    let owner = moved(course.owner)
    let words = priorityWords(course)
    return InversionFacts(
      waiter: opened.waiter, owner: opened.owner, resource: opened.resource,
      waiterPriority: words.waiter, ownerPriority: words.owner,
      waited: Double(course.seen &- course.since) / 1e9, measured: Double(window) / 1e9,
      ready: owner.map { Double($0.ready) / 1e9 }, ran: owner.map { Double($0.ran) / 1e9 },
      others: others.sorted { $0.seconds > $1.seconds })
  }

  private func times(of tids: [KernelThreadID]) -> [KernelThreadID: ThreadTimes] {
    var result: [KernelThreadID: ThreadTimes] = [:]
    for tid in tids { result[tid] = watch.files.times(tid) }
    return result
  }

  private func priorityWords(_ course: Course) -> (waiter: String, owner: String) {
    guard let waiter = course.priorities[course.waiter],
      let owner = course.priorities[course.owner]
    else { return ("", "") }
    return (waiter.words(against: owner), owner.words(against: waiter))
  }

  /// What one thread has at a time, or gives back: a queue of waiters without an owner has nobody who
  /// is late.
  private static func concerns(_ key: ResourceKey) -> Bool {
    switch key.kind {
    case HCK_MUTEX.rawValue, HCK_RWLOCK.rawValue, HCK_SPIN.rawValue, HCK_QUEUE.rawValue,
      HCK_ONCE.rawValue, HCK_FUTEX_LOCK.rawValue, HCK_SEMAPHORE.rawValue,
      HCK_POSIX_SEMAPHORE.rawValue, HCK_GROUP.rawValue, HCK_WORK_ITEM.rawValue:
      true
    default: false
    }
  }

  private func course(
    of identity: DeadlockWatch.WaitIdentity, since: UInt64, _ look: Look, now: UInt64
  ) -> Course? {
    guard let (waiter, _, owner) = subjects(of: identity, look),
      let priorities = inversion(look, waiter, owner)
    else { return nil }
    let live = look.threads.filter { $0.isAlive && $0.kind == .thread }.map(\.tid)
    let times = times(of: live.count > Self.mostThreads ? [look.thread(owner).tid] : live)
    return Course(
      identity: identity, waiter: look.thread(waiter).tid, owner: look.thread(owner).tid,
      priorities: priorities, since: since, begun: now, times: times, read: now,
      latest: times, seen: now)
  }

  /// The priorities of both where the waiter's is the higher.
  private func inversion(
    _ look: Look, _ waiter: ThreadID, _ owner: ThreadID
  ) -> [KernelThreadID: ThreadPriority]? {
    let (waiter, owner) = (look.thread(waiter), look.thread(owner))
    guard let high = priority(waiter), let low = priority(owner), high.outranks(low) else {
      return nil
    }
    // A main thread that waits for the end of work which it handed on is in no hurry.
    if let key = waiter.record?.wait?.key,
      key.kind == HCK_GROUP.rawValue || key.kind == HCK_WORK_ITEM.rawValue,
      waiter.tid.rawValue == watch.files.pid.rawValue || high.qos == nil
    {
      return nil
    }
    return [waiter.tid: high, owner.tid: low]
  }

  private func priority(_ thread: SeenThread) -> ThreadPriority? {
    guard var priority = watch.files.priority(thread.tid) else { return nil }
    if let dispatch = watch.runtime.dispatch {
      var pthread = thread.record?.pthread ?? 0
      if pthread == 0 {
        if pthreads == nil { pthreads = dispatch.pthreads() }
        pthread = pthreads?[thread.tid] ?? 0
      }
      if pthread != 0 { priority.qos = dispatch.qos(pthread: pthread) }
    }
    return priority
  }

  /// Who waits, for what, and the thread that must act for it to go on: the end of the chain of those
  /// who wait for each other.
  private func subjects(
    of identity: DeadlockWatch.WaitIdentity, _ look: Look
  ) -> (waiter: ThreadID, resource: ResourceID, owner: ThreadID)? {
    guard
      let seen = look.threads.first(where: {
        $0.record?.slot == identity.slot && $0.record?.generation == identity.generation
      }), let wait = look.snapshot.threads[seen.id.rawValue - 1].wait
    else { return nil }
    var next = wait.resource
    var visited: Set<ThreadID> = [seen.id]
    while let owner = owner(of: next, look, besides: visited) {
      visited.insert(owner)
      guard let wait = look.snapshot.threads[owner.rawValue - 1].wait, visited.count < 16 else {
        return (seen.id, wait.resource, owner)
      }
      next = wait.resource
    }
    return nil
  }

  private func owner(of resource: ResourceID, _ look: Look, besides: Set<ThreadID>) -> ThreadID? {
    let holders = look.snapshot.threads.filter { thread in
      thread.isAlive && thread.kind == .thread && !besides.contains(thread.id)
        && thread.holds.contains { $0.resource == resource }
    }
    if let first = holders.first { return holders.count == 1 ? first.id : nil }
    return lastToTake(look.resource(resource), look, besides: besides)
  }

  /// Of a semaphore with one permit: who has it. A permit that another thread gives back has no
  /// owner.
  private func lastToTake(_ key: ResourceKey, _ look: Look, besides: Set<ThreadID>) -> ThreadID? {
    guard key.kind == HCK_SEMAPHORE.rawValue || key.kind == HCK_POSIX_SEMAPHORE.rawValue else {
      return nil
    }
    var kept: [KernelThreadID: Int] = [:]
    for tally in watch.arena.tallies(of: key) {
      guard let tid = tally.tid else { continue }
      switch tally.operation {
      case .take: kept[tid, default: 0] += Int(clamping: tally.count)
      case .give: kept[tid, default: 0] -= Int(clamping: tally.count)
      default: break
      }
    }
    let keepers = kept.filter { $0.value > 0 }
    guard keepers.count == 1, let tid = keepers.first?.key else { return nil }
    return look.threads.first { $0.tid == tid && $0.isAlive && !besides.contains($0.id) }?.id
  }
}
