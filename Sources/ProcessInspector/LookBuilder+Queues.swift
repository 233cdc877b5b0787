internal import CHangcheck
internal import WaitForGraph

extension LookBuilder {
  /// Who runs on which queue, from libdispatch's own memory; and what is queued behind them.
  ///
  /// The record knows only from where a queue was entered: the entry of a synchronous call looks the
  /// same while it waits and while its block runs.
  mutating func settleQueues() {
    guard let dispatch = runtime.dispatch else {
      for index in holds.indices {
        if holds[index].contains(where: { $0.key.kind == HCK_QUEUE.rawValue }) {
          holds[index].removeAll { $0.key.kind == HCK_QUEUE.rawValue }
        }
      }
      return
    }
    var seen = SeenQueues(dispatch: dispatch)
    let waiting = threads.indices.filter { waits[$0] != nil }
    settleRunning(&seen)
    // What others have yet to run may hold what a waiter waits for.
    for index in seeksGivers ? Array(threads.indices) : waiting {
      if let key = waits[index]?.key, key.kind == HCK_QUEUE.rawValue { seen.matter(key.address) }
      for hold in holds[index] where hold.key.kind == HCK_QUEUE.rawValue {
        seen.matter(hold.key.address)
      }
    }
    var next = 0
    while next < seen.important.count {
      let queue = seen.important[next]
      next += 1
      settleOwner(of: queue, &seen)
      addBlocks(on: queue, &seen)
      settleLeavers(of: queue, &seen)
    }
    for (pool, name) in pools.sorted(by: { $0.key < $1.key }) {
      names[ResourceKey(address: pool, kind: DerivedKind.pool)] = name
      addBlocks(on: pool, &seen)
    }
    settleGroups(dispatch)
  }

  /// The queues that each thread runs on take the place of what is on record.
  private mutating func settleRunning(_ seen: inout SeenQueues) {
    var pthreads: [KernelThreadID: UInt64]?
    for index in threads.indices where threads[index].isAlive {
      let recorded = holds[index].filter { $0.key.kind == HCK_QUEUE.rawValue }
      guard waits[index] != nil || !recorded.isEmpty || threads[index].standing != nil else {
        continue
      }
      if !recorded.isEmpty { holds[index].removeAll { $0.key.kind == HCK_QUEUE.rawValue } }
      var pthread = threads[index].pthread
      if pthread == 0 {
        if pthreads == nil { pthreads = seen.dispatch.pthreads() }
        pthread = pthreads?[inner(threads[index].tid)] ?? 0
      }
      guard pthread != 0 else { continue }
      for address in seen.dispatch.queuesOfThread(pthread: pthread).reversed() {
        guard let queue = seen.queue(address), !queue.isRoot, !queue.isManager else { continue }
        if !queue.isMain { threads[index].queue = queue.label }
        // The first thread is on the main queue from its start, and leaves it to others at times.
        if queue.isMain, queue.owner.map(known) != threads[index].tid { continue }
        if queue.isCooperativePool {
          let key = ResourceKey(address: address, kind: DerivedKind.pool)
          holds[index].append(RecordedHold(key: key, isShared: false, since: 0, site: nil))
          continue
        }
        let isShared =
          !queue.isSerial && !(queue.inBarrier && queue.owner.map(known) == threads[index].tid)
        let entry = recorded.last { $0.key.address == address }
        holds[index].append(
          RecordedHold(
            key: ResourceKey(address: address, kind: HCK_QUEUE.rawValue), isShared: isShared,
            since: entry?.since ?? 0, site: entry?.site))
      }
    }
  }

  /// A queue is also held by the thread that its state names: it drains it, or is in a synchronous
  /// call that waits further down the chain of targets. Without one, whoever holds the target.
  private mutating func settleOwner(of address: UInt64, _ seen: inout SeenQueues) {
    let key = ResourceKey(address: address, kind: HCK_QUEUE.rawValue)
    guard let queue = seen.queue(address) else { return }
    names[key] = queue.label
    guard queue.suspendCount == 0, !queue.isInactive else {
      isOpen[key] = true
      return
    }
    var holder = queue.owner
    var target = queue.target
    var steps = 0
    while holder == nil, let next = target, steps < 32, let below = seen.queue(next), !below.isRoot
    {
      if below.suspendCount > 0 || below.isInactive { isOpen[key] = true }
      holder = below.owner
      target = below.target
      steps += 1
    }
    guard let holder else { return }
    let tid = known(holder)
    let index =
      threads.firstIndex { $0.tid == tid && $0.isAlive }
      ?? append(tid, isAlive: files.isAlive(tid))
    guard !holds[index].contains(where: { $0.key == key }), waits[index]?.key != key else { return }
    holds[index].append(RecordedHold(key: key, isShared: false, since: 0, site: nil))
  }

  /// Where only those who run on a concurrent queue see to what waits, reads wait for them as well,
  /// also where no barrier is among what waits.
  private mutating func settleLeavers(of address: UInt64, _ seen: inout SeenQueues) {
    guard seen.queue(address)?.waitsForLeavers == true else { return }
    let key = ResourceKey(address: address, kind: HCK_QUEUE.rawValue)
    let waiting = waits.indices.filter { waits[$0]?.key == key }
    guard waiting.allSatisfy({ waits[$0]?.isShared == true }) else { return }
    needsOne.insert(key)
    for index in waiting { waits[index]?.isShared = false }
  }

  private static let mostBlocks = 200
  /// Of those that nothing else depends on.
  private static let mostPlainBlocks = 8

  private mutating func addBlocks(on address: UInt64, _ seen: inout SeenQueues) {
    guard let queue = seen.queue(address), !queue.isRoot || pools[address] != nil else { return }
    let key = ResourceKey(
      address: address, kind: queue.isRoot ? DerivedKind.pool : HCK_QUEUE.rawValue)
    var plain = 0
    for item in seen.dispatch.items(of: address, limit: Self.mostBlocks) ?? [] {
      switch item.kind {
      case .queue:
        // Its own items wait for this one's thread.
        seen.matter(item.address)
        continue
      case .syncWaiter, .redirect, .other: continue
      case .block, .workItem, .function, .source, .groupNotify: break
      }
      if item.group == nil && !item.isBarrier {
        plain += 1
        if plain > Self.mostPlainBlocks, !seeksGivers { continue }
      }
      let index = append(KernelThreadID(0), isAlive: true, kind: .block)
      threads[index].subject = item.address
      threads[index].queue = queue.label ?? ""
      threads[index].code = [item.closure ?? item.function].filter { $0 != 0 }
      threads[index].block = item.block
      waits[index] = RecordedWait(
        key: key, isShared: !queue.isSerial && !item.isBarrier, isTimed: false, mutex: 0)
      if let block = item.block, seen.dispatch.isWorkItem(block) {
        holds[index].append(
          RecordedHold(
            key: ResourceKey(address: block, kind: HCK_WORK_ITEM.rawValue), isShared: false,
            since: 0, site: nil))
      }
      if let group = item.group {
        holds[index].append(
          RecordedHold(
            key: ResourceKey(address: group, kind: HCK_GROUP.rawValue), isShared: false, since: 0,
            site: nil))
      }
    }
  }

  /// A group may be left by anybody, but for the enters of blocks that are queued: these must run.
  private mutating func settleGroups(_ dispatch: DispatchMemory) {
    for index in threads.indices {
      guard let key = waits[index]?.key else { continue }
      switch key.kind {
      case HCK_GROUP.rawValue:
        guard let group = dispatch.group(key.address) else {
          isOpen[key] = true
          continue
        }
        values[key] = group.count
        if group.count == 0 { waits[index] = nil }
        guard isOpen[key] == nil else { continue }
        let queued = holds.joined().count { $0.key == key }
        let running = arena.isBare ? addRunners(of: key) : 0
        isOpen[key] = group.count != queued + running && group.count > queued
        if queued == 0, running == 0 { addMembers(of: key, group.count, dispatch) }
      case HCK_SEMAPHORE.rawValue: values[key] = dispatch.semaphore(key.address)?.value
      case HCK_WORK_ITEM.rawValue: isOpen[key] = !holds.joined().contains { $0.key == key }
      default: break
      }
    }
  }
}

extension LookBuilder {
  /// Where all who entered a group are blocks that were given to it (`async(group:)`), only threads
  /// that run some queue's work can leave it: one of them is enough.
  ///
  /// Who runs which block is not known. A block that no such thread runs is queued elsewhere, and may
  /// run yet.
  private mutating func addMembers(
    of key: ResourceKey, _ count: Int, _ dispatch: DispatchMemory
  ) {
    var byBlocks = 0
    for tally in arena.tallies(of: key) {
      switch tally.operation {
      case .takeByBlock: byBlocks += Int(clamping: tally.count)
      case .giveByBlock: byBlocks -= Int(clamping: tally.count)
      case .take, .give, .notify, .create: break
      }
      if tally.mayIncludeEarlier { return }
    }
    guard count > 0, byBlocks == count else { return }
    let members = threads.indices.filter { index in
      guard threads[index].kind == .thread, threads[index].isAlive, !threads[index].isIdle,
        case let pthread = threads[index].pthread, pthread != 0
      else { return false }
      return dispatch.runsItems(
        pthread: pthread, isMain: threads[index].tid.rawValue == files.pid.rawValue)
    }
    guard members.count >= count else { return }
    // libdispatch keeps a block's group on the stack of the thread that runs it, near its end.
    let known = members.filter { index in
      dispatch.endOfStack(pthread: threads[index].pthread, mentions: key.address)
    }
    let leaving = known.count == count ? known : members
    isOpen[key] = false
    needsOne.insert(key)
    for member in leaving {
      holds[member].append(RecordedHold(key: key, isShared: false, since: 0, site: nil))
    }
  }
}

/// Queues of one look, each read once, and those whose owners and items matter.
private struct SeenQueues {
  let dispatch: DispatchMemory
  private var known: [UInt64: DispatchMemory.Queue?] = [:]
  private(set) var important: [UInt64] = []
  private var listed: Set<UInt64> = []

  init(dispatch: DispatchMemory) { self.dispatch = dispatch }

  mutating func queue(_ address: UInt64) -> DispatchMemory.Queue? {
    if let known = known[address] { return known }
    let queue = dispatch.queue(address)
    known[address] = queue
    return queue
  }

  mutating func matter(_ address: UInt64) {
    if listed.insert(address).inserted { important.append(address) }
  }
}
