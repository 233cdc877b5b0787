internal import CHangcheck
internal import WaitForGraph

// Whether anything can move any more, and what those wait for whose waits are not on record.
extension DeadlockWatch {
  /// Whether nothing can move any more; and what those wait for whose waits no record shows, since
  /// their calls cannot be interposed (a static standard library).
  func survey(now: UInt64) -> [ConfirmedDeadlock] {
    // What thousands of tasks wait for takes long to read, and one that was told stays as it is.
    let longest = max(Self.longestRest, 20 &* surveyCost)
    let hasNoSuspects = standstills.isEmpty && hiddenCandidates.isEmpty
    let rest = hasNoSuspects ? min(50 &* thrift &* surveyCost, longest) : 0
    let least = hasNoSuspects && thrift > 1 ? Self.thriftyInterval : Self.surveyInterval
    guard now &- surveyedAt >= max(least, rest) else { return [] }
    surveyedAt = now
    let run = timesOthersRan?()
    // What nobody has changed since is as it was.
    if let run, run == surveyedRun, hasNoSuspects, standstill == nil,
      hiddenWaits.isEmpty || hiddenWaits == toldHidden
    {
      return []
    }
    surveyedRun = run
    let begun = hck_monotonic_ns()
    defer { surveyCost = hck_monotonic_ns() &- begun }
    let outside = runtime.outside()
    var canMove = false
    var hidden: [KernelThreadID: UInt64] = [:]
    // A condition's wait may be one for an operation.
    let recorded = Set((0..<arena.slots).compactMap { arena.waitingThread($0) })
    for tid in files.threads() where !ignored.contains(tid) {
      let standing = outside.standing(tid)
      if standing.canMove { canMove = true }
      if case .blocked(let futex, true) = standing.kind, !recorded.contains(tid) {
        hidden[tid] = futex
      }
      // Where nothing is hidden, one that can move is enough.
      if canMove && hidden.isEmpty && now &- hiddenAt < Self.hiddenInterval { break }
    }
    guard canMove else { return confirmStandstill(now: now) }
    standstills = [:]
    standstill = nil
    let circles = circlesOfTasks(now: now)
    if !circles.isEmpty { return circles }
    guard now &- hiddenAt >= Self.hiddenInterval else { return [] }
    hiddenAt = now
    defer { hiddenWaits = hidden }
    // Two surveys must find a thread in one place before it is worth a look.
    let still = hidden.filter { hiddenWaits[$0.key] == $0.value }
    guard !still.isEmpty, still != toldHidden || !hiddenCandidates.isEmpty,
      now &- hiddenLookAt >= 100 &* hiddenCost || !hiddenCandidates.isEmpty
    else { return [] }
    toldHidden = still
    hiddenLookAt = now
    let begunLook = hck_monotonic_ns()
    defer { hiddenCost = hck_monotonic_ns() &- begunLook }
    return confirm(look(.kernel, now: now), &hiddenCandidates, now: now)
  }

  /// Tasks that wait for each other while the rest of the program lives on: a search through the
  /// process's memory, so now and then only.
  func circlesOfTasks(now: UInt64) -> [ConfirmedDeadlock] {
    let rest = taskCandidates.isEmpty ? max(Self.taskInterval, 100 &* thrift &* tasksCost) : 0
    guard now &- tasksAt >= rest, runtime.concurrency != nil else { return [] }
    let isFirst = tasksAt == 0
    tasksAt = now
    if isFirst { return [] }
    let begun = hck_monotonic_ns()
    defer { tasksCost = hck_monotonic_ns() &- begun }
    var builder = builder(now: now)
    builder.searchesTasks = true
    let look = builder.look(slots: nil, depth: .kernel)
    return confirm(look, &taskCandidates, now: now)
  }

  private func confirmStandstill(now: UInt64) -> [ConfirmedDeadlock] {
    let look = look(.whole, now: now)
    guard !look.snapshot.hasOpenings else {
      standstills = [:]
      standstill = nil
      return []
    }
    if standstill?.timesRun != look.timesRun {
      standstill = Standstill(since: now, seen: now, timesRun: look.timesRun)
    }
    standstill?.seen = now
    let confirmed = confirm(look, &standstills, now: now)
    noteGroups(confirmed.isEmpty && standstills.isEmpty ? look : nil, now: now)
    return confirmed
  }

  /// Nothing can move any more, as two looks have found between which no thread ran.
  var standsStill: Bool {
    standstill.map { $0.seen &- $0.since >= Self.secondLookAtStandstill } ?? false
  }

  /// What `neverLeft` has been told.
  func takeNeverLeft() -> [RecordedAlarm] {
    defer { neverLeft = [] }
    return neverLeft
  }

  private func noteGroups(_ look: Look?, now: UInt64) {
    var current: [UInt64: UInt64] = [:]
    defer { groupsSince = current }
    guard let look, let dispatch = runtime.dispatch else { return }
    let queued = Set(look.threads.flatMap(\.holds).map(\.key))
    for tally in arena.allTallies()
    where tally.operation == .notify && tally.key.kind == HCK_GROUP.rawValue
      && !queued.contains(tally.key) && !toldGroups.contains(tally.key.address)
    {
      let address = tally.key.address
      guard let group = dispatch.group(address), group.count > 0, group.hasNotify else { continue }
      let since = groupsSince[address] ?? now
      current[address] = since
      guard now &- since >= Self.secondLookAtStandstill, toldGroups.insert(address).inserted else {
        continue
      }
      neverLeft.append(
        RecordedAlarm(
          record: nil, kind: RecordedAlarm.groupNeverLeft, key: tally.key, isShared: false,
          other: UInt64(group.count), tid: tally.tid ?? KernelThreadID(files.pid.rawValue),
          waits: false, slot: nil, site: tally.site, otherSite: nil, name: tally.threadName ?? "",
          text: ""))
    }
  }

  /// The program ends while a group is waited for: whether nothing alive could leave it, but for the
  /// thread that ends the program.
  func confirmsAtExit(_ alarm: RecordedAlarm, now: UInt64) -> Bool {
    guard alarm.key.kind == HCK_GROUP.rawValue else { return false }
    var builder = builder(now: now)
    builder.ignored.insert(alarm.tid)
    let look = builder.look(slots: nil, depth: .whole)
    guard !look.snapshot.hasOpenings else { return false }
    return WaitForGraph(look.snapshot).deadlocks().contains { deadlock in
      deadlock.edges.contains { look.resource($0.resource) == alarm.key }
    }
  }

  /// What could still set the process in motion, in words.
  func openings(limit: Int) -> [String] {
    var exceptions = OutsideWorld.Exceptions()
    exceptions.threads = ignored
    exceptions.signals = ignoredSignals
    return Array(runtime.outside().openings(ignoring: exceptions, limit: limit).prefix(limit))
  }
}
