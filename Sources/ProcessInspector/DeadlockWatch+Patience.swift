internal import CHangcheck
internal import HangReport
internal import WaitForGraph

/// What was seen of one long wait: who took the lock meanwhile, as often as it was looked at.
struct WaitCourse {
  struct Taker {
    var count = 0
    var isReader: Bool
    var site: RecordedSite?
    /// When it took what it was last seen to hold, on the arena's clock.
    var since: UInt32
  }
  /// Nanoseconds.
  var begun: UInt64
  var takers: [KernelThreadID: Taker] = [:]
}

extension DeadlockWatch {
  /// Looks at who holds what is waited for long. A hold that began after the last look is one more time
  /// that the waiter was passed over; those that were over between two looks are not seen.
  func sampleLongWaits(now: UInt64, threshold: Duration) {
    guard now &- sampledAt >= max(15_000_000, 20 &* sampleCost) else { return }
    sampledAt = now
    let least = threshold.nanoseconds / 4
    var wanted: [UInt64: [WaitIdentity]] = [:]
    for (identity, since) in firstSeen where now &- since >= least && isLock(identity.wait.key) {
      wanted[word(identity.wait.key), default: []].append(identity)
    }
    if !courses.isEmpty { courses = courses.filter { firstSeen[$0.key] != nil } }
    guard !wanted.isEmpty else { return }
    let began = hck_monotonic_ns()
    defer { sampleCost = hck_monotonic_ns() &- began }
    for identities in wanted.values {
      for identity in identities {
        if hasTakenSince(identity, now: now) {
          courses[identity] = nil
        } else if courses[identity] == nil {
          courses[identity] = WaitCourse(begun: now)
        }
      }
    }
    for slot in 0..<arena.slots {
      arena.forEachHold(slot) { word, entry in
        for identity in wanted[word & ~(7 << 60)] ?? [] where identity.slot != slot {
          note(word, entry, slot, identity)
        }
      }
    }
  }

  private func note(
    _ word: UInt64, _ entry: UnsafeMutablePointer<hck_entry>, _ slot: UInt32,
    _ identity: WaitIdentity
  ) {
    guard var course = courses[identity] else { return }
    let tid = KernelThreadID(Int32(truncatingIfNeeded: arena.pointer(slot).pointee.tid))
    let since = entry.pointee.since
    let isReader = word & (1 << 60) != 0
    var taker = course.takers[tid] ?? .init(isReader: isReader, since: since)
    let isNew = taker.since != since || course.takers[tid] == nil
    if isNew, Int32(bitPattern: since &- UInt32(truncatingIfNeeded: course.begun / 1_000_000)) > 0 {
      taker.count += 1
      taker.isReader = isReader
      taker.site = arena.site(entry) ?? taker.site
    }
    taker.since = since
    course.takers[tid] = taker
    courses[identity] = course
  }

  /// Whether the thread got something at this depth since the wait was first seen: then it is another
  /// wait for the same. Waits that follow each other at once look like one.
  func hasTakenSince(_ identity: WaitIdentity, now: UInt64) -> Bool {
    guard let began = firstSeen[identity], let taken = arena.lastTaken(identity.slot) else {
      return false
    }
    let since = Int32(bitPattern: taken &- UInt32(truncatingIfNeeded: began / 1_000_000))
    // The clock is moved every 10 ms.
    guard since > 20, Int64(since) <= Int64((now &- began) / 1_000_000) else { return false }
    firstSeen[identity] = now
    return true
  }

  private func isLock(_ key: ResourceKey) -> Bool {
    switch key.kind {
    case HCK_MUTEX.rawValue, HCK_RWLOCK.rawValue, HCK_SPIN.rawValue, HCK_FUTEX_LOCK.rawValue: true
    default: false
    }
  }

  private func word(_ key: ResourceKey) -> UInt64 { key.address | UInt64(key.kind) << 56 }

  /// What those do who would have to act for some threads to go on: the ends of the chains of those who
  /// wait for each other. To be asked before any thread is stopped, which changes the calls they are in.
  func activities(of waiters: [ThreadID], in look: Look) -> [ThreadID: HangActivity] {
    var result: [ThreadID: HangActivity] = [:]
    let outside = runtime.outside()
    for waiter in waiters {
      var next = look.snapshot.threads[waiter.rawValue - 1].wait?.resource
      var seen: Set<ThreadID> = [waiter]
      while let resource = next {
        let owner = look.snapshot.threads.first { thread in
          thread.isAlive && thread.kind == .thread && !seen.contains(thread.id)
            && thread.holds.contains { $0.resource == resource }
        }
        guard let owner, seen.insert(owner.id).inserted else { break }
        next = owner.wait?.resource
        if next == nil, result[owner.id] == nil {
          result[owner.id] = activity(look.thread(owner.id).tid, outside)
        }
      }
    }
    return result
  }

  private func activity(_ tid: KernelThreadID, _ outside: OutsideWorld) -> HangActivity {
    guard let (isRunning, call) = outside.proc.systemCall(tid) else {
      return HangActivity(.unknown)
    }
    guard let call else { return HangActivity(isRunning ? .computing : .unknown) }
    let described = outside.describe(call)
    return HangActivity(.call(described.name, described.what))
  }

  /// What a report says of one long wait, with the stacks of those who took it most.
  func facts(
    of waiter: ThreadID, in look: Look, _ activities: [ThreadID: HangActivity],
    _ assembler: ReportAssembler
  ) -> LongWaitFacts {
    var facts = LongWaitFacts(activities: activities)
    guard let record = look.thread(waiter).record, let wait = record.wait,
      let course = courses[
        WaitIdentity(slot: record.slot, generation: record.generation, wait: wait)]
    else { return facts }
    facts.seconds = Double(sampledAt &- course.begun) / 1e9
    let takers = course.takers.filter { $0.value.count > 0 }.sorted { a, b in
      (b.value.count, a.key) < (a.value.count, b.key)
    }
    facts.taken = takers.reduce(0) { $0 + $1.value.count }
    facts.read = takers.reduce(0) { $0 + ($1.value.isReader ? $1.value.count : 0) }
    facts.takers = takers.prefix(2).compactMap { tid, taker in
      look.threads.first { $0.tid == tid && $0.isAlive && $0.kind == .thread }.map {
        .init(
          thread: $0.id, count: taker.count, stack: assembler.acquisition(taker.site, live: []))
      }
    }
    return facts
  }
}
