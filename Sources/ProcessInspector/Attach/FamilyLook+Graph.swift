internal import CHangcheck
internal import Glibc
internal import WaitForGraph

// The looks at several processes as one graph.
extension FamilyLook {
  /// Deadlocks in which one of these waits takes part, or that the process stands behind.
  ///
  /// `lenient`: of a process that could act, its first thread is the one that would. Others might, though
  /// they do something else now, so that what is found is possible and no more.
  func look(lenient: Bool) -> Found {
    var found = merged(
      members.map { $0.watch.look(.kernel, now: hck_monotonic_ns()) }, lenient: lenient)
    let first = Set((1...max(1, found.looks[0].threads.count)).map { ThreadID($0) })
    found.deadlocks = WaitForGraph(found.snapshot).deadlocks().filter { deadlock in
      !first.isDisjoint(with: deadlock.edges.map(\.thread) + deadlock.victims)
        && (!lenient
          || deadlock.edges.contains { edge in
            let kind = found.resources[edge.resource]?.kind
            return kind == .pipe || kind == .fileLock
          })
    }
    return found
  }

  func merged(_ looks: [Look], lenient: Bool) -> Found {
    var found = Found(
      looks: looks, snapshot: Snapshot(threads: [], resources: [], hasOpenings: false),
      resources: [:], deadlocks: [], isLenient: lenient)
    for look in looks {
      let offset = (found.snapshot.threads.count, found.snapshot.resources.count)
      found.offsets.append(offset)
      found.snapshot.threads += look.snapshot.threads.map { $0.moved(offset.0, offset.1) }
      found.snapshot.resources += look.snapshot.resources.map { $0.moved(offset.0, offset.1) }
    }
    settleSharedLocks(&found)
    addWaits(to: &found)
    for (number, look) in looks.enumerated() {
      for (index, seen) in look.threads.enumerated()
      where seen.isAlive && seen.kind == .thread && watchesFamily(members[number], seen.tid) {
        found.snapshot.threads[found.offsets[number].threads + index].isIdle = true
      }
    }
    found.snapshot.hasOpenings = hasOpenings(found, found.offsets.map(\.threads))
    return found
  }

  private func addWaits(to found: inout Found) {
    var known: [KernelWait: ResourceID] = [:]
    var waiters: [KernelWait: Set<ThreadID>] = [:]
    let placed = waits.sorted { ($0.key.pid, $0.key.tid) < ($1.key.pid, $1.key.tid) }
      .compactMap { place, list in
        index(of: place, list, found).map { (member: $0.member, thread: $0.thread, list: list) }
      }
    for (_, thread, list) in placed {
      for wait in list { waiters[wait, default: []].insert(ThreadID(thread + 1)) }
    }
    for (at, thread, list) in placed {
      let ids = list.map { wait in
        let id = known[wait] ?? ResourceID(found.snapshot.resources.count + 1)
        if known[wait] == nil {
          known[wait] = id
          add(wait, id, besides: waiters[wait] ?? [], to: &found)
        }
        return id
      }
      let tid = found.looks[at].threads[thread - found.offsets[at].threads].tid
      found.snapshot.threads[thread].isIdle = false
      if members[at].waitForProcess.contains(tid) {
        found.lookingAfter.insert(found.snapshot.threads[thread].id)
      }
      found.snapshot.threads[thread].isMain = at == 0 && tid.rawValue == members[at].pid.rawValue
      found.snapshot.threads[thread].wait = ids.first.map {
        // Who looks after its child every 50 ms has waited for longer than it has not run.
        let isAwake = members[at].waitForProcess.contains(tid)
        return Snapshot.Wait(
          resource: $0, mode: .exclusive, seconds: isAwake ? nil : members[at].watch.quiet[tid])
      }
      found.snapshot.threads[thread].moreWaits = ids.dropFirst().map {
        Snapshot.Wait(resource: $0, mode: .exclusive)
      }
    }
  }

  /// Where a waiting thread is in the whole; nil where somebody who is not looked at may end its wait, or
  /// a handler or a clock.
  private func index(
    of place: Place, _ list: [KernelWait], _ found: Found
  ) -> (member: Int, thread: Int)? {
    guard let at = members.firstIndex(where: { $0.pid == place.pid }),
      let index = found.looks[at].threads.firstIndex(where: { $0.isAlive && $0.tid == place.tid }),
      list.allSatisfy({ wait in
        wait.processes.allSatisfy { pid in members.contains { $0.pid == pid } }
      })
    else { return nil }
    // What lies in memory may be given by a handler; a call in the kernel is cut short by one.
    for wait in list where wait.place != nil {
      for member in members where wait.processes.contains(member.pid) {
        if mayBeInterrupted(member) { return nil }
      }
    }
    if !found.isLenient, hasAlarm(members[at]) { return nil }
    return (at, found.offsets[at].threads + index)
  }

  private func mayBeInterrupted(_ member: AttachSession) -> Bool {
    let outside = member.watch.runtime.outside()
    var exceptions = OutsideWorld.Exceptions()
    exceptions.signals = [SIGCHLD]
    return !outside.signals(exceptions).isEmpty || !outside.posixTimers().isEmpty
  }

  /// A clock that is handled: the handler itself, or the call that it cuts short.
  private func hasAlarm(_ member: AttachSession) -> Bool {
    let outside = member.watch.runtime.outside()
    var exceptions = OutsideWorld.Exceptions()
    exceptions.signals = Set(1...64).subtracting([SIGALRM, SIGVTALRM, SIGPROF])
    return !outside.signals(exceptions).isEmpty || !outside.posixTimers().isEmpty
  }

  /// Whoever waits for it gives it to nobody; where there is nobody else, all wait for themselves.
  private func add(
    _ wait: KernelWait, _ id: ResourceID, besides waiters: Set<ThreadID>, to found: inout Found
  ) {
    var holders: [Int] = []
    // Within its own process any thread may be the one that gives it.
    let own = Set(
      found.offsets.indices.filter { number in
        let range =
          found.offsets[number].threads..<found.offsets[number].threads
          + found.looks[number].threads.count
        return waiters.contains { range.contains($0.rawValue - 1) }
      })
    found.resources[id] = wait
    found.snapshot.resources.append(
      Snapshot.Resource(id: id, kind: wait.kind, isOpen: false, needsOne: true))
    for (number, member) in members.enumerated() where wait.processes.contains(member.pid) {
      for (index, seen) in found.looks[number].threads.enumerated()
      where seen.isAlive && seen.kind == .thread
        && !found.proxies.contains(ThreadID(found.offsets[number].threads + index + 1))
        && (!found.isLenient || own.contains(number) || seen.tid.rawValue == member.pid.rawValue)
      {
        holders.append(found.offsets[number].threads + index)
      }
    }
    let others = holders.filter { !waiters.contains(ThreadID($0 + 1)) }
    for index in others.isEmpty ? holders : others {
      found.snapshot.threads[index].holds.append(Snapshot.Hold(resource: id, mode: .exclusive))
    }
  }

  // MARK: - Locks in memory that processes share

  /// A look lists the owner of such a lock although that is a thread of another process: the two are
  /// one. So is the lock.
  private func settleSharedLocks(_ found: inout Found) {
    var own: [KernelThreadID: Int] = [:]
    for (number, look) in found.looks.enumerated() {
      let listed = Set(members[number].files.threads())
      for (index, thread) in look.threads.enumerated()
      where thread.isAlive && thread.kind == .thread && listed.contains(thread.tid) {
        own[thread.tid] = found.offsets[number].threads + index
      }
    }
    for (number, look) in found.looks.enumerated() {
      for (index, thread) in look.threads.enumerated()
      where thread.isAlive && thread.kind == .thread {
        let at = found.offsets[number].threads + index
        guard let real = own[thread.tid], real != at, !look.snapshot.threads[index].holds.isEmpty
        else { continue }
        found.snapshot.threads[real].holds += found.snapshot.threads[at].holds
        found.snapshot.threads[at].holds = []
        found.snapshot.threads[at].isIdle = true
        found.proxies.insert(found.snapshot.threads[at].id)
      }
    }
    findAliases(&found)
    guard !found.aliases.isEmpty else { return }
    for index in found.snapshot.threads.indices {
      let thread = found.snapshot.threads[index]
      if let wait = thread.wait, let first = found.aliases[wait.resource] {
        found.snapshot.threads[index].wait?.resource = first
      }
      var holds: [Snapshot.Hold] = []
      for var hold in thread.holds {
        hold.resource = found.aliases[hold.resource] ?? hold.resource
        if !holds.contains(where: { $0.resource == hold.resource }) { holds.append(hold) }
      }
      found.snapshot.threads[index].holds = holds
    }
  }

  private func findAliases(_ found: inout Found) {
    struct Lock: Hashable {
      var kind: UInt32
      var place: SharedPlace
    }
    var first: [Lock: ResourceID] = [:]
    for (number, look) in found.looks.enumerated() {
      var maps: String?
      for (index, key) in look.resources.enumerated()
      where key.kind == HCK_MUTEX.rawValue || key.kind == HCK_RWLOCK.rawValue
        || key.kind == HCK_FUTEX_LOCK.rawValue
      {
        let text = maps ?? members[number].proc.text("maps") ?? ""
        maps = text
        guard let place = SharedPlace(key.address, maps: text) else { continue }
        let id = ResourceID(found.offsets[number].resources + index + 1)
        let lock = Lock(kind: key.kind, place: place)
        if let known = first[lock] { found.aliases[id] = known } else { first[lock] = id }
      }
    }
  }
}

extension Snapshot.Thread {
  func moved(_ threads: Int, _ resources: Int) -> Snapshot.Thread {
    var copy = self
    copy.id = ThreadID(id.rawValue + threads)
    copy.isMain = false
    copy.wait?.resource = ResourceID((wait?.resource.rawValue ?? 0) + resources)
    for index in copy.moreWaits.indices {
      copy.moreWaits[index].resource = ResourceID(moreWaits[index].resource.rawValue + resources)
    }
    for index in copy.holds.indices {
      copy.holds[index].resource = ResourceID(holds[index].resource.rawValue + resources)
    }
    return copy
  }
}

extension Snapshot.Resource {
  func moved(_ threads: Int, _ resources: Int) -> Snapshot.Resource {
    var copy = self
    copy.id = ResourceID(id.rawValue + resources)
    copy.thread = thread.map { ThreadID($0.rawValue + threads) }
    copy.wakers = wakers.map { ThreadID($0.rawValue + threads) }
    return copy
  }
}

extension Deadlock {
  func moved(_ threads: Int, _ resources: Int) -> Deadlock {
    var copy = self
    for index in edges.indices {
      copy.edges[index].thread = ThreadID(edges[index].thread.rawValue + threads)
      copy.edges[index].resource = ResourceID(edges[index].resource.rawValue + resources)
      copy.edges[index].owner = edges[index].owner.map { ThreadID($0.rawValue + threads) }
    }
    copy.victims = victims.map { ThreadID($0.rawValue + threads) }
    return copy
  }
}
