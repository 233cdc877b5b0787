internal import CHangcheck
internal import HangReport
internal import WaitForGraph

/// What the alarms of one process come to: the threads and resources of a picture, with what the
/// alarms add to it, and what is wrong.
///
/// A thread that raised an alarm is believed: it looked at its own memory, at the moment.
struct AlarmReport {
  let look: Look
  let assembler: ReportAssembler
  let memory: ProcessMemory
  let stacks: [KernelThreadID: CapturedThread]
  private(set) var threads: [Thread]
  var resources: [Resource]
  private(set) var misuses: [Misuse] = []
  var races: [DataRace] = []
  /// Circles that a thread was about to close, with whether it traps rather than hangs.
  private(set) var deadlocks: [(deadlock: Deadlock, traps: Bool)] = []
  private var added: [ResourceKey: ResourceID] = [:]
  private let outer: [KernelThreadID: KernelThreadID]

  init(
    look: Look, assembler: ReportAssembler, memory: ProcessMemory,
    stacks: [KernelThreadID: CapturedThread], threads: [Thread], resources: [Resource]
  ) {
    self.look = look
    self.assembler = assembler
    self.memory = memory
    self.stacks = stacks
    self.threads = threads
    self.resources = resources
    var outer: [KernelThreadID: KernelThreadID] = [:]
    let files = assembler.files
    if assembler.arena.ownPID != UInt32(bitPattern: files.pid.rawValue) {
      for tid in files.threads() {
        if let inner = files.innerID(tid) { outer[inner] = tid }
      }
    }
    self.outer = outer
  }

  /// An alarm of the program's end has been confirmed before.
  mutating func add(_ alarm: RecordedAlarm) {
    let thread = thread(of: alarm)
    let site = stack(alarm.site, of: thread)
    switch alarm.kind {
    case HCK_ALARM_SYNC_SELF.rawValue:
      addLoop(alarm, thread, site, traps: true)
    case HCK_ALARM_ONCE_REENTERED.rawValue, HCK_ALARM_OPERATION_CYCLE.rawValue:
      addLoop(alarm, thread, site, traps: false)
    case HCK_ALARM_FUTEX_DEADLOCK.rawValue: addCircle(alarm, thread, site)
    case HCK_ALARM_DATA_RACE.rawValue, HCK_ALARM_STALE_WRITE.rawValue: addRace(alarm, thread)
    default: addMisuse(alarm, thread, site)
    }
  }

  private mutating func addMisuse(_ alarm: RecordedAlarm, _ thread: ThreadID, _ site: [Frame]) {
    guard let rule = Misuse.Rule(alarm) else { return }
    var misuse = Misuse(
      rule: rule, thread: thread, resource: alarm.key.address == 0 ? nil : resource(alarm.key),
      site: site, text: alarm.text)
    switch rule {
    case .foreignUnlock, .destroyHeld, .initHeld, .freedHeld:
      let tid = KernelThreadID(Int32(truncatingIfNeeded: alarm.other))
      misuse.owner = alarm.other == 0 ? nil : thread == self.thread(tid) ? thread : self.thread(tid)
    case .exitHeld:
      misuse.thread = self.thread(KernelThreadID(Int32(truncatingIfNeeded: alarm.other)))
    case .writeTwice, .identityChanged: misuse.owner = thread
    case .conditionWithoutMutex, .conditionTwoMutexes:
      misuse.mutex = resource(ResourceKey(address: alarm.other, kind: HCK_MUTEX.rawValue))
    default: misuse.count = alarm.other
    }
    misuse.otherSite = stack(alarm.otherSite, of: misuse.owner)
    if misuse.otherSite.isEmpty, let owner = misuse.owner {
      misuse.otherSite =
        threads.first { $0.id == owner }?.holds.first { $0.resource == misuse.resource }?.stack
        ?? []
    }
    if misuse.site.isEmpty, alarm.record == nil {
      misuse.site = threads.first { $0.id == misuse.thread }?.stack ?? []
    }
    if rule == .conditionTwoMutexes, let other = otherWaiter(alarm) {
      misuse.owner = other.id
      misuse.otherSite = other.stack
    }
    misuse.uses = uses(of: alarm)
    misuses.append(misuse)
  }

  private static let mostUses = 5

  /// What else was done to it, from the tallies: what takes comes first, the making last.
  private mutating func uses(of alarm: RecordedAlarm) -> [Misuse.Use] {
    guard alarm.key.address != 0 else { return [] }
    var found: [(use: Misuse.Use, site: RecordedSite?)] = []
    for tally in assembler.arena.tallies(of: alarm.key) {
      guard let operation = operation(tally), let site = tally.site,
        !isSamePlace(site, alarm.site)
      else { continue }
      let id = tally.tid.map { self.thread($0, name: tally.threadName) }
      found.append(
        (
          Misuse.Use(operation: operation, thread: id, count: tally.count, stack: []), tally.site
        ))
    }
    found.sort {
      let (a, b) = ($0.use, $1.use)
      return (a.operation.rawValue, b.count) < (b.operation.rawValue, a.count)
    }
    return found.prefix(Self.mostUses).compactMap { use, site in
      var use = use
      use.stack = stack(site, of: use.thread)
      // Where a wrapper made it, which kept no frame pointer, is no news.
      return use.operation == .made && use.stack.allSatisfy(\.runtime) ? nil : use
    }
  }

  /// The same call, on behalf of the same caller.
  private func isSamePlace(_ site: RecordedSite, _ other: RecordedSite?) -> Bool {
    site.returnAddress == other?.returnAddress
      && site.chain.first?.returnAddress == other?.chain.first?.returnAddress
  }

  private func operation(_ tally: RecordedTally) -> Misuse.Use.Operation? {
    switch (tally.operation, tally.key.kind) {
    case (.create, _): .made
    case (.notify, _): .notified
    case (.takeByBlock, _): .enteredByBlock
    case (.giveByBlock, _): nil
    case (.take, HCK_GROUP.rawValue): .entered
    case (.give, HCK_GROUP.rawValue): .left
    case (.take, HCK_QUEUE.rawValue): .suspended
    case (.give, HCK_QUEUE.rawValue): .resumed
    case (.take, _): .waited
    case (.give, _): .signalled
    }
  }

  /// Who waits on the same condition with another mutex.
  private func otherWaiter(_ alarm: RecordedAlarm) -> Thread? {
    let waiter = look.threads.first {
      $0.record?.wait?.key == alarm.key && $0.record?.wait?.mutex != alarm.other
    }
    return waiter.flatMap { seen in threads.first { $0.id == seen.id } }
  }

  // MARK: - Circles

  /// A thread that waits for itself.
  private mutating func addLoop(
    _ alarm: RecordedAlarm, _ thread: ThreadID, _ site: [Frame], traps: Bool
  ) {
    let id = resource(alarm.key)
    let edge = Edge(thread: thread, resource: id, mode: .exclusive, owner: thread)
    show(edge, wait: site, hold: stack(alarm.otherSite, of: thread))
    deadlocks.append((Deadlock(cause: .cycle, edges: [edge], victims: []), traps))
  }

  /// The kernel refused to let a thread wait for the owner of a futex: from owner to owner the way
  /// leads back to it. What each waits for stands in its slot, who owns that in the futex itself.
  private mutating func addCircle(_ alarm: RecordedAlarm, _ thread: ThreadID, _ site: [Frame]) {
    var edges: [Edge] = []
    var (waiter, key) = (thread, alarm.key)
    while edges.count <= threads.count {
      let owner = owner(key).map { self.thread($0) }
      edges.append(
        Edge(thread: waiter, resource: resource(key), mode: .exclusive, owner: owner))
      guard let owner, owner != thread else { break }
      guard let wait = record(owner)?.wait, !edges.contains(where: { $0.thread == owner }) else {
        break
      }
      (waiter, key) = (owner, wait.key)
    }
    if edges.last?.owner != thread {
      // The way back is not known: only that there is one.
      edges = [
        Edge(thread: thread, resource: resource(alarm.key), mode: .exclusive, owner: nil)
      ]
    }
    for edge in edges { show(edge, wait: edge.thread == thread ? site : nil, hold: []) }
    deadlocks.append(
      (
        Deadlock(cause: .cycle, edges: edges, victims: []),
        alarm.key.kind == HCK_FUTEX_LOCK.rawValue
      ))
  }

  /// Who the resource's own memory says owns it.
  private func owner(_ key: ResourceKey) -> KernelThreadID? {
    func tid(_ word: UInt32?) -> KernelThreadID? {
      guard let word, word & 0x3fff_ffff != 0 else { return nil }
      return KernelThreadID(Int32(word & 0x3fff_ffff))
    }
    switch key.kind {
    case HCK_FUTEX_LOCK.rawValue: return tid(memory.word32(key.address))
    case HCK_ONCE.rawValue:
      // Swift's: a flag, then the lock; libdispatch's: the owner.
      let first = memory.word32(key.address)
      return first == 0 ? tid(memory.word32(key.address &+ 4)) : tid(first)
    case HCK_MUTEX.rawValue: return MutexMemory(memory, key.address)?.owner
    default: return nil
    }
  }

  /// Lets the picture show an edge of a circle: the graph did not know of it.
  private mutating func show(_ edge: Edge, wait: [Frame]?, hold: [Frame]) {
    if let index = threads.firstIndex(where: { $0.id == edge.thread }),
      threads[index].waitsFor?.resource != edge.resource
    {
      threads[index].waitsFor = Thread.Wait(
        resource: edge.resource, mode: edge.mode, seconds: nil,
        stack: wait ?? threads[index].stack)
      threads[index].state = .blocked
    }
    if let owner = edge.owner, let index = threads.firstIndex(where: { $0.id == owner }),
      !threads[index].holds.contains(where: { $0.resource == edge.resource })
    {
      threads[index].holds.append(
        Thread.Hold(resource: edge.resource, mode: edge.mode, seconds: nil, stack: hold))
    }
    guard let index = resources.firstIndex(where: { $0.id == edge.resource }) else { return }
    if !resources[index].waiters.contains(edge.thread) {
      resources[index].waiters.append(edge.thread)
    }
    if let owner = edge.owner, !resources[index].owners.contains(owner) {
      resources[index].owners.append(owner)
    }
  }

  // MARK: - Threads, resources, stacks

  private func record(_ id: ThreadID) -> RecordedThread? {
    look.threads.first { $0.id == id }?.record
  }

  private mutating func thread(of alarm: RecordedAlarm) -> ThreadID {
    let id = thread(alarm.tid)
    if let index = threads.firstIndex(where: { $0.id == id }), threads[index].name.isEmpty {
      threads[index].name = alarm.name
    }
    return id
  }

  /// The thread of an id that the process wrote; one that has ended is added.
  mutating func thread(_ inner: KernelThreadID, name: String? = nil) -> ThreadID {
    let tid = outer.isEmpty ? inner : outer[inner] ?? KernelThreadID(-inner.rawValue)
    if let known = look.threads.first(where: { $0.tid == tid && $0.isAlive })
      ?? look.threads.first(where: { $0.tid == tid }),
      threads.contains(where: { $0.id == known.id })
    {
      return known.id
    }
    if let known = threads.first(where: { $0.tid == tid.rawValue }) { return known.id }
    let highest = max(look.threads.count, threads.map(\.id.rawValue).max() ?? 0)
    let id = ThreadID(highest + 1)
    threads.append(
      Thread(
        id: id, tid: tid.rawValue,
        pid: assembler.isRoot ? nil : assembler.files.pid.rawValue,
        name: name ?? assembler.files.name(tid), state: .idle))
    return id
  }

  /// What a queue is called, with its target.
  private func queueLabel(_ key: ResourceKey) -> String? {
    guard key.kind == HCK_QUEUE.rawValue, let own = assembler.label(ofQueue: key.address) else {
      return nil
    }
    if own.isEmpty { return nil }
    // A queue is occupied with its target.
    guard let target = memory.word(key.address &+ UInt64(DispatchLayout.target)), target != 0,
      let below = assembler.label(ofQueue: target), !below.hasPrefix("com.apple.root")
    else { return own }
    return "\(own), which leads to \(below),"
  }

  mutating func resource(_ key: ResourceKey) -> ResourceID {
    let seen = look.resources.firstIndex(of: key).map { ResourceID($0 + 1) }
    let id = seen ?? added[key] ?? ResourceID(look.resources.count + added.count + 1)
    if seen == nil { added[key] = id }
    if !resources.contains(where: { $0.id == id }) {
      resources.append(
        Resource(
          id: id, kind: ResourceKind(recorded: key.kind),
          name: assembler.arena.name(of: key.address) ?? queueLabel(key) ?? assembler.name(key),
          address: Address(key.address)))
    }
    return id
  }

  func stack(_ site: RecordedSite?, of id: ThreadID?) -> [Frame] {
    guard let site else { return [] }
    let tid = look.threads.first { $0.id == id }?.tid
    let captured = tid.flatMap { stacks[$0] }
    let live = captured.flatMap { assembler.unwinder?.unwind($0.registers, stack: [$0.stack]) }
    let frames = live?.frames ?? []
    // The call that raised it goes on: its caller's frame begins where that call's ends.
    if let index = frames.firstIndex(where: { $0.pc == site.returnAddress }), index > 0,
      frames[index - 1].cfa == site.stackPointer
    {
      return assembler.symbolizer.frames(for: Array(frames[index...]))
    }
    return assembler.acquisition(site, live: frames)
  }
}

extension Misuse.Rule {
  /// nil for what is a deadlock rather, and for what a newer agent may say.
  init?(_ alarm: RecordedAlarm) {
    switch alarm.kind {
    case HCK_ALARM_FOREIGN_UNLOCK.rawValue: self = .foreignUnlock
    case HCK_ALARM_UNLOCK_OF_UNLOCKED.rawValue: self = .unlockOfUnlocked
    case HCK_ALARM_DESTROY_HELD.rawValue: self = .destroyHeld
    case HCK_ALARM_INIT_HELD.rawValue: self = .initHeld
    case HCK_ALARM_FREED_HELD.rawValue: self = .freedHeld
    case HCK_ALARM_EXIT_HELD.rawValue: self = .exitHeld
    case HCK_ALARM_WRITE_TWICE.rawValue: self = .writeTwice
    case HCK_ALARM_GROUP_OVERLEFT.rawValue: self = .groupOverleft
    case HCK_ALARM_GROUP_ABANDONED.rawValue: self = .groupAbandoned
    case RecordedAlarm.groupNeverLeft: self = .groupNeverLeft
    case HCK_ALARM_SEMAPHORE_LOW.rawValue: self = .semaphoreLow
    case HCK_ALARM_SEMAPHORE_HIGH.rawValue: self = .semaphoreHigh
    case HCK_ALARM_OVERRESUMED.rawValue: self = .overresumed
    case HCK_ALARM_RELEASED_SUSPENDED.rawValue: self = .releasedSuspended
    case HCK_ALARM_WAITED_TWICE.rawValue: self = .waitedTwice
    case HCK_ALARM_BARRIER_ON_GLOBAL.rawValue: self = .barrierOnGlobal
    case HCK_ALARM_TARGET_CYCLE.rawValue: self = .targetCycle
    case HCK_ALARM_CONDITION_WITHOUT_MUTEX.rawValue: self = .conditionWithoutMutex
    case HCK_ALARM_CONDITION_TWO_MUTEXES.rawValue: self = .conditionTwoMutexes
    case HCK_ALARM_CONTINUATION.rawValue:
      // The runtime's words: "… leaked its continuation", "… more than once".
      let isLeak = alarm.text.utf8.split(separator: UInt8(ascii: " ")).contains {
        $0.elementsEqual("leaked".utf8)
      }
      self = isLeak ? .continuationLeaked : .continuationResumedTwice
    case HCK_ALARM_AT_EXIT.rawValue: self = .unbalancedAtExit
    case HCK_ALARM_FORKED_HELD.rawValue: self = .forkedHeld
    case HCK_ALARM_IDENTITY_CHANGED.rawValue: self = .identityChanged
    default: return nil
    }
  }
}
