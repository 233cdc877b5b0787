internal import CHangcheck
internal import WaitForGraph

/// Watches one process's arena for deadlocks, a tick at a time. Time comes in; nothing waits.
/// Confined to one thread.
///
/// A tick reads one word of each slot. Only waits that stood still since the last tick are
/// analysed, first from the arena and the locks' memory alone; what looks like a deadlock is then
/// asked of the kernel, twice, and the threads must not have run in between.
final class DeadlockWatch {
  struct WaitIdentity: Hashable {
    var slot: UInt32
    var generation: UInt32
    var wait: RecordedWait

    // One for each slot is all that a set ever has, and hashing is most of what a tick costs.
    func hash(into hasher: inout Hasher) { hasher.combine(slot) }
  }
  /// A deadlock by what does not change between two looks: who waits for what, held by whom.
  struct Identity: Hashable {
    /// A thread by its id, anything else by its address.
    struct Actor: Hashable {
      var tid: KernelThreadID
      var subject: UInt64
      init(_ thread: SeenThread) {
        tid = thread.tid
        subject = thread.subject
      }
    }
    struct Edge: Hashable {
      var actor: Actor
      var key: ResourceKey
      var owner: Actor?
    }
    var edges: Set<Edge>
  }
  struct Candidate {
    var since: UInt64
    var timesRun: [KernelThreadID: UInt64]
  }

  let arena: Arena
  let files: ProcessFiles
  let memory: ProcessMemory
  let runtime: RuntimeMemory
  /// Threads that belong to us, in a process of our own.
  var ignored: Set<KernelThreadID> = []
  /// Signals that are handled by us.
  var ignoredSignals: Set<Int32> = []
  /// What the stacks of threads without a record tell: see `LookBuilder`.
  var knownWaits: [KernelThreadID: KnownWait] = [:]
  var quiet: [KernelThreadID: Double] = [:]
  var itemRegisters: (KernelThreadID) -> Set<UInt64> = { _ in [] }
  var pthreads: [KernelThreadID: UInt64] = [:]
  var firstSeen: [WaitIdentity: UInt64] = [:]
  private var analysed: Set<WaitIdentity> = []
  private var analysedAt: UInt64 = 0
  private var candidates: [Identity: Candidate] = [:]
  private var reported: Set<Identity> = []

  /// Nanoseconds between the two looks that must agree.
  static let secondLook: UInt64 = 20_000_000
  /// The same where the owner is gone: a slow exit, or a thread that is about to unlock in its
  /// place, gets this long.
  static let secondLookAtGoneOwner: UInt64 = 1_000_000_000
  /// The same where nothing in the whole process can move.
  static let secondLookAtStandstill: UInt64 = 900_000_000
  static let surveyInterval: UInt64 = 300_000_000
  /// The same in a process of our own, where nothing looks wrong.
  static let thriftyInterval: UInt64 = 800_000_000
  /// How much more time passes between surveys for what they cost: 1, and more in a process of our
  /// own.
  var thrift: UInt64 = 1
  static let longestRest: UInt64 = 2_000_000_000
  /// The same in a program that has been seen to hand mutexes over.
  static let secondLookWhereHandedOver: UInt64 = 10_000_000_000

  /// Whether any wait is so young that it may yet turn out to be a deadlock.
  func seesYoungWaits(now: UInt64) -> Bool {
    !candidates.isEmpty || firstSeen.values.contains { now &- $0 < 1_000_000_000 }
  }

  convenience init(pid: ProcessID, arena: Arena) {
    self.init(files: ProcessFiles(pid), memory: ProcessMemory(pid), arena: arena)
  }

  init(files: ProcessFiles, memory: ProcessMemory, arena: Arena) {
    self.arena = arena
    self.files = files
    self.memory = memory
    runtime = RuntimeMemory(files: files, memory: memory)
    runtime.jobEntries = arena.jobEntries
  }

  /// `now`: CLOCK_MONOTONIC in nanoseconds. Returns each deadlock once.
  func tick(now: UInt64) -> [ConfirmedDeadlock] {
    // Reading thousands of slots is no matter of every ten milliseconds.
    guard now &- tickedAt >= 5 &* tickCost else { return [] }
    tickedAt = now
    let begun = hck_monotonic_ns()
    var current: [WaitIdentity: UInt64] = Dictionary(minimumCapacity: firstSeen.count)
    var still: Set<WaitIdentity> = Set(minimumCapacity: analysed.count)
    var left: [UInt32] = []
    for slot in 0..<arena.slots {
      // A condition's wait that has run out goes on waiting for its mutex, for ever if need be.
      if let wait = arena.wait(slot), !wait.isTimed || wait.key.kind == HCK_CONDITION.rawValue {
        let identity = WaitIdentity(slot: slot, generation: arena.generation(slot), wait: wait)
        let since = firstSeen[identity]
        current[identity] = since ?? now
        if since != nil && concerns(identity) { still.insert(identity) }
      } else if arena.isLeft(slot) {
        left.append(slot)
      }
    }
    firstSeen = current
    tickCost = hck_monotonic_ns() &- begun
    // A thread that exits changes the graph without a new wait: look again now and then. Thousands
    // of threads take long to look at, and are looked at less often.
    let rested = now &- analysedAt
    let isStale = rested > max(250_000_000, 20 &* cost)
    let isNew = still != analysed && rested >= 4 &* cost
    guard !still.isEmpty, isNew || isStale || !candidates.isEmpty else { return survey(now: now) }
    analysed = still
    let began = hck_monotonic_ns()
    defer {
      cost = hck_monotonic_ns() &- began
      analysedAt = now &+ cost
    }
    let result = analyse(slots: still.map(\.slot).sorted() + left, now: now)
    return result.isEmpty ? survey(now: now) : result
  }
  /// What the last analysis took, in nanoseconds.
  private var cost: UInt64 = 0
  private var tickedAt: UInt64 = 0
  private var tickCost: UInt64 = 0

  /// Whether a thread on record as a condition's waiter has been woken and waits for its mutex,
  /// which only the kernel knows.
  private func waitsForMutex(_ record: RecordedThread?, _ isLocked: inout [UInt64: Bool]) -> Bool {
    guard let record, let wait = record.wait, wait.key.kind == HCK_CONDITION.rawValue else {
      return false
    }
    let known = isLocked[wait.mutex] ?? MutexMemory(memory, wait.mutex)?.isLocked ?? false
    isLocked[wait.mutex] = known
    guard known else { return false }
    // Ids of another namespace, or a process that may not be looked at: the whole look decides.
    guard case .call(_, let address) = files.state(record.tid) else {
      return files.state(record.tid) == .unknown
    }
    return address >= wait.mutex && address &- wait.mutex < UInt64(hck_mutex_size())
  }

  /// A wait without an owner by a thread that holds nothing can only queue behind.
  private func concerns(_ identity: WaitIdentity) -> Bool {
    switch identity.wait.key.kind {
    case HCK_CONDITION.rawValue, HCK_BARRIER.rawValue, HCK_SEMAPHORE.rawValue,
      HCK_POSIX_SEMAPHORE.rawValue:
      arena.holdsAnything(identity.slot)
    default: true
    }
  }

  private func waited(_ record: RecordedThread, now: UInt64) -> Double? {
    guard let wait = record.wait,
      let since = firstSeen[
        WaitIdentity(slot: record.slot, generation: record.generation, wait: wait)]
    else { return nil }
    return Double(now &- since) / 1e9
  }

  /// All threads as they stand, with the kernel's word.
  func wholeLook(now: UInt64) -> Look {
    look(.kernel, now: now)
  }

  func look(_ depth: LookBuilder.Depth, slots: [UInt32]? = nil, now: UInt64) -> Look {
    var builder = builder(now: now)
    return builder.look(slots: slots, depth: depth)
  }

  func builder(now: UInt64) -> LookBuilder {
    var builder = LookBuilder(arena: arena, files: files, memory: memory, runtime: runtime) {
      [self] in waited($0, now: now)
    }
    builder.ignored = ignored
    builder.ignoredSignals = ignoredSignals
    builder.knownWaits = knownWaits
    builder.quiet = quiet
    builder.itemRegisters = itemRegisters
    builder.pthreads = pthreads
    return builder
  }

  /// What is on record, of a process that has ended.
  func lastLook(now: UInt64) -> Look {
    var builder = builder(now: now)
    return builder.lookAtRecord()
  }

  private func analyse(slots: [UInt32], now: UInt64) -> [ConfirmedDeadlock] {
    let cheap = look(.memory, slots: slots, now: now)
    var isLocked: [UInt64: Bool] = [:]
    let mayHideMutex = cheap.threads.contains { waitsForMutex($0.record, &isLocked) }
    // One that was told stays for ever: it is not worth asking the kernel again and again.
    let suspects = WaitForGraph(cheap.snapshot).deadlocks()
    guard mayHideMutex || suspects.contains(where: { !reported.contains(identity($0, cheap)) })
    else {
      candidates = [:]
      return []
    }
    return confirm(look(.kernel, now: now), &candidates, now: now)
  }

  /// Deadlocks of this look that were there before, by threads that have not run since. In a core
  /// nothing runs any more.
  func confirm(
    _ look: Look, _ candidates: inout [Identity: Candidate], now: UInt64
  ) -> [ConfirmedDeadlock] {
    var result: [ConfirmedDeadlock] = []
    var next: [Identity: Candidate] = [:]
    for deadlock in WaitForGraph(look.snapshot).deadlocks() {
      let identity = identity(deadlock, look)
      let isGuess = deadlock.isGuess(look)
      if reported.contains(identity) || !concernsProgram(deadlock, look) { continue }
      // Where it is asked who would end a wait, all else was asked before.
      if !look.givers.isEmpty && !isGuess { continue }
      let confirmed = ConfirmedDeadlock(deadlock: deadlock, look: look, isGuess: isGuess)
      if files.core != nil {
        reported.insert(identity)
        result.append(confirmed)
        continue
      }
      let timesRun = timesRun(deadlock, look)
      if let candidate = candidates[identity], candidate.timesRun == timesRun {
        if now &- candidate.since >= patience(deadlock, look) {
          reported.insert(identity)
          result.append(confirmed)
          continue
        }
        next[identity] = candidate
      } else {
        next[identity] = Candidate(since: now &- quietTime(of: timesRun.keys), timesRun: timesRun)
      }
    }
    candidates = next
    return result
  }

  /// Deadlocks among operations of which a thread has said that they wait for each other, and all
  /// their operations: what is wrong with these no other look can mend.
  func circles(
    of operations: Set<UInt64>, now: UInt64
  ) -> (deadlocks: [ConfirmedDeadlock], members: Set<UInt64>) {
    var builder = builder(now: now)
    builder.operations = operations
    let look = builder.look(slots: nil, depth: .kernel)
    var members: Set<UInt64> = []
    let found = WaitForGraph(look.snapshot).deadlocks().filter { deadlock in
      let subjects = deadlock.edges.map { look.thread($0.thread) }.filter { $0.kind == .operation }
        .map(\.subject)
      guard !operations.isDisjoint(with: subjects) else { return false }
      members.formUnion(subjects)
      return reported.insert(identity(deadlock, look)).inserted
    }
    return (found.map { ConfirmedDeadlock(deadlock: $0, look: look) }, members)
  }

  // What the surveys remember: DeadlockWatch+Standstill.swift.
  struct Standstill {
    var since: UInt64
    var seen: UInt64
    var timesRun: [ThreadID: UInt64]
  }
  var standstill: Standstill?
  var standstills: [Identity: Candidate] = [:]
  var surveyedAt: UInt64 = 0
  /// How often other threads than the calling one have left a processor; nil where that takes long
  /// to find out.
  var timesOthersRan: (() -> Int)?
  var surveyedRun: Int?
  var surveyCost: UInt64 = 0
  var hiddenAt: UInt64 = 0
  var hiddenLookAt: UInt64 = 0
  var hiddenCost: UInt64 = 0
  var hiddenWaits: [KernelThreadID: UInt64] = [:]
  var toldHidden: [KernelThreadID: UInt64] = [:]
  var hiddenCandidates: [Identity: Candidate] = [:]
  static let hiddenInterval: UInt64 = 600_000_000
  var tasksAt: UInt64 = 0
  var tasksCost: UInt64 = 0
  var taskCandidates: [Identity: Candidate] = [:]
  static let taskInterval: UInt64 = 3_000_000_000
  /// Groups that ask to be told of their end, in a process where nothing can act any more.
  var groupsSince: [UInt64: UInt64] = [:]
  var toldGroups: Set<UInt64> = []
  var neverLeft: [RecordedAlarm] = []

  // The search for what nobody refers to any more: DeadlockWatch+Forsaken.swift.
  var forsaking = Forsaking()
  /// Stands all threads still; nil in a process of our own, which cannot do that.
  var stopper: StackCapture?
  var pidfd: Int32 = -1

  // And the search for long waits: DeadlockWatch+LongWaits.swift.
  var toldLong: Set<WaitIdentity> = []
  var soughtLong: UInt64 = 0
  // Of what happens meanwhile: DeadlockWatch+Patience.swift.
  var courses: [WaitIdentity: WaitCourse] = [:]
  var sampledAt: UInt64 = 0
  var sampleCost: UInt64 = 0

  /// A process whose main thread is not stuck may just rest: its workers wait for work that will not
  /// come, as they may. Whoever waits for a lock, a queue or another's end does not rest.
  private func concernsProgram(_ deadlock: Deadlock, _ look: Look) -> Bool {
    guard deadlock.needsStandstill else { return true }
    let stuck = Set(deadlock.edges.map(\.thread) + deadlock.victims)
    let wanted = Set(
      look.snapshot.threads.filter { stuck.contains($0.id) }.compactMap(\.wait?.resource))
    return look.snapshot.threads.contains { thread in
      guard stuck.contains(thread.id) else { return false }
      if thread.isMain { return true }
      // The first task is the program's own main function.
      if thread.kind == .task { return look.thread(thread.id).name == "1" }
      guard thread.kind == .thread, let wait = thread.wait else { return false }
      switch ResourceKind(recorded: look.resource(wait.resource).kind) {
      case .semaphore, .condition, .futex, .barrier:
        return thread.holds.contains { wanted.contains($0.resource) }
      default: return true
      }
    }
  }

  /// A mutex may be given back by a thread that did not take it, against its rules: one that is
  /// waited for by its own owner, or whose owner is gone, gets time for that while there are others
  /// who could.
  private func patience(_ deadlock: Deadlock, _ look: Look) -> UInt64 {
    let stuck = Set(deadlock.edges.map(\.thread) + deadlock.victims)
    let isLonely = deadlock.edges.count == 1
    if deadlock.needsStandstill || deadlock.cause == .forsaken || deadlock.isGuess(look) {
      return Self.secondLookAtStandstill
    }
    guard isLonely, look.threads.contains(where: { $0.isAlive && !stuck.contains($0.id) }) else {
      return Self.secondLook
    }
    return arena.handsOver ? Self.secondLookWhereHandedOver : Self.secondLookAtGoneOwner
  }

  /// Nanoseconds for which none of these threads had run before they were first looked at.
  private func quietTime(of threads: some Sequence<KernelThreadID>) -> UInt64 {
    let least = threads.map { quiet[$0] ?? 0 }.min() ?? 0
    return UInt64(max(0, min(least, 1e6)) * 1e9)
  }

  private func identity(_ deadlock: Deadlock, _ look: Look) -> Identity {
    Identity(
      edges: Set(
        deadlock.edges.map { edge in
          Identity.Edge(
            actor: Identity.Actor(look.thread(edge.thread)), key: look.resource(edge.resource),
            owner: edge.owner.map { Identity.Actor(look.thread($0)) })
        }))
  }

  /// Whether it is told for the first time.
  func markForsaken(_ deadlock: Deadlock, _ look: Look) -> Bool {
    reported.insert(identity(deadlock, look)).inserted
  }

  /// A deadlock that an alarm has told is not told again.
  func markTold(_ deadlock: Deadlock, _ look: Look) {
    let isSeen = deadlock.edges.allSatisfy { edge in
      edge.thread.rawValue <= look.threads.count && edge.resource.rawValue <= look.resources.count
        && (edge.owner?.rawValue ?? 1) <= look.threads.count
    }
    if isSeen { reported.insert(identity(deadlock, look)) }
  }

  /// Those of a look that have been told and are still there.
  func toldDeadlocks(in look: Look) -> [Deadlock] {
    WaitForGraph(look.snapshot).deadlocks().filter { reported.contains(identity($0, look)) }
  }

  /// Of the threads that wait in the kernel; one that spins runs all the time.
  private func timesRun(_ deadlock: Deadlock, _ look: Look) -> [KernelThreadID: UInt64] {
    var result: [KernelThreadID: UInt64] = [:]
    if deadlock.needsStandstill {
      for thread in look.threads where thread.kind == .thread && !thread.isIdle {
        result[thread.tid] = look.timesRun[thread.id]
      }
      return result
    }
    for edge in deadlock.edges where look.thread(edge.thread).kind == .thread {
      if case .running? = look.thread(edge.thread).standing?.kind { continue }
      result[look.thread(edge.thread).tid] = look.timesRun[edge.thread]
    }
    return result
  }
}
