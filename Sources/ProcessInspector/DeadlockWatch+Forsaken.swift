internal import CHangcheck
internal import WaitForGraph

/// What the search for forsaken waits remembers between its looks.
struct Forsaking {
  struct Suspect {
    var next: UInt64
    var rest: UInt64
  }
  /// What a search has proved, as long as none of its threads runs.
  struct Proof {
    var threads: Set<KernelThreadID>
    var keys: Set<ResourceKey>
    var provedAt: UInt64
    /// Since the threads were let go.
    var seen: (at: UInt64, timesRun: [KernelThreadID: UInt64])?
  }
  var suspects: [DeadlockWatch.WaitIdentity: Suspect] = [:]
  /// Deadlocks by a guess at who would end a wait, which a second look is to find again.
  var guesses: [DeadlockWatch.Identity: DeadlockWatch.Candidate] = [:]
  var told: Set<ResourceKey> = []
  var proof: Proof?
  var lookedAt: UInt64 = 0
  var cost: UInt64 = 0
  /// By path: whether a library calls what may wake a thread, or carry a reference, unseen.
  var callers = HiddenCalls()
}

// Waits without an owner that nobody can end, since nobody but those who are stuck refers to what is
// waited for, while the rest of the program lives on.
extension DeadlockWatch {
  private static let patience: UInt64 = 2_000_000_000
  private static let interval: UInt64 = 500_000_000
  private static let firstRest: UInt64 = 4_000_000_000
  private static let longestPause: UInt64 = 600_000_000_000
  private static let lookLimit: UInt64 = 400_000_000
  /// All threads stand still for no longer, while their memory is copied.
  private static let stopLimit: UInt64 = 100_000_000
  private static let mostThreads = 512

  /// Each is told once. A search through the process's memory costs some milliseconds for each ten
  /// MB; it is made for a wait of two seconds, and ever more seldom while it finds nothing. Only
  /// where nothing is found that refers to what is waited for, all threads are stopped for it once.
  func forsaken(now: UInt64) -> [ConfirmedDeadlock] {
    // What was guessed only has to be seen once more.
    let rest =
      forsaking.guesses.isEmpty
      ? max(Self.interval, 100 &* thrift &* forsaking.cost) : Self.secondLookAtStandstill
    guard now &- forsaking.lookedAt >= rest || hasProof else { return [] }
    if let proof = forsaking.proof { return settle(proof, now: now) }
    forsaking.lookedAt = now
    let old = firstSeen.filter { identity, since in
      now &- since >= Self.patience && !identity.wait.isTimed && isSought(identity.wait.key)
        && !forsaking.told.contains(identity.wait.key)
    }
    forsaking.suspects = forsaking.suspects.filter { old[$0.key] != nil }
    let due = old.keys.filter { forsaking.suspects[$0].map { $0.next <= now } ?? true }
    guard !due.isEmpty || !forsaking.guesses.isEmpty else { return [] }
    let began = hck_monotonic_ns()
    defer { forsaking.cost = hck_monotonic_ns() &- began }
    for identity in due {
      let rest = min(
        2 &* (forsaking.suspects[identity]?.rest ?? Self.firstRest / 2), Self.longestPause)
      forsaking.suspects[identity] = Forsaking.Suspect(next: now &+ rest, rest: rest)
    }
    let look = lookForGivers(.kernel, now: now)
    if stopper != nil, forsaking.guesses.isEmpty, prove(due, look) { return [] }
    // Where nothing else moves, that will be certain.
    guard !openings(limit: 1).isEmpty else {
      forsaking.guesses = [:]
      return []
    }
    let guessed = confirm(look, &forsaking.guesses, now: now)
    for deadlock in guessed {
      let keys = deadlock.deadlock.edges.map { look.resource($0.resource) }
      forsaking.told.formUnion(keys.filter(isSought))
    }
    return guessed
  }

  /// With whoever would end the waits without an owner, as far as that is known.
  func lookForGivers(_ depth: LookBuilder.Depth, now: UInt64) -> Look {
    var builder = builder(now: now)
    builder.seeksGivers = true
    return builder.look(slots: nil, depth: depth)
  }

  /// Whether some of these waits were found to be forsaken; what is left is to see that it lasts.
  private func prove(_ due: [WaitIdentity], _ look: Look) -> Bool {
    let waits = forsakenWaits(look, seek: Set(due.map(\.wait.key)))
    guard !waits.isEmpty, look.threads.count <= Self.mostThreads,
      case let work = queuedWork(look),
      let first = stuck(waits, work, look, isStopped: false), !first.isEmpty,
      let stuck = stuck(waits, work, look, isStopped: true)
    else { return false }
    var keys: Set<ResourceKey> = []
    for thread in look.snapshot.threads where stuck.contains(look.thread(thread.id).tid) {
      if let wait = thread.wait, isSought(look.resource(wait.resource)) {
        keys.insert(look.resource(wait.resource))
      }
    }
    guard !keys.isEmpty else { return false }
    forsaking.proof = Forsaking.Proof(threads: stuck, keys: keys, provedAt: hck_monotonic_ns())
    return true
  }

  private var hasProof: Bool { forsaking.proof != nil }

  private func isSought(_ key: ResourceKey) -> Bool {
    [
      HCK_SEMAPHORE.rawValue, HCK_POSIX_SEMAPHORE.rawValue, HCK_GROUP.rawValue,
      HCK_CONDITION.rawValue,
    ].contains(key.kind)
  }

  /// What blocked threads wait for, where that is known; empty where nothing can be proved.
  private func forsakenWaits(_ look: Look, seek: Set<ResourceKey>) -> [KernelThreadID:
    HolderSearch.Blocked.Wait]
  {
    let outside = runtime.outside()
    guard outside.program.isSupported, !outside.hasStaticSwift,
      !forsaking.callers.areIn(outside.proc, memory: memory)
    else { return [:] }
    let handlesSignals = !outside.signals(OutsideWorld.Exceptions()).isEmpty
    var waits: [KernelThreadID: HolderSearch.Blocked.Wait] = [:]
    var isWanted = false
    for seen in look.snapshot.threads {
      let thread = look.thread(seen.id)
      guard seen.kind == .thread, thread.isAlive, !thread.isIdle, let wait = seen.wait,
        !wait.isTimed, seen.moreWaits.isEmpty, case .blocked(_, true)? = thread.standing?.kind
      else { continue }
      let key = look.resource(wait.resource)
      if isSought(key) {
        // A handler ends the wait for a POSIX semaphore.
        if key.kind == HCK_POSIX_SEMAPHORE.rawValue && handlesSignals { continue }
        if !isUnsignalled(key) { continue }
        waits[thread.tid] = .object(key.address)
        if seek.contains(key) { isWanted = true }
        continue
      }
      guard let owners = owners(of: wait, by: seen.id, look) else { continue }
      waits[thread.tid] = .threads(owners)
    }
    return isWanted ? waits : [:]
  }

  /// Who must act before this wait ends, by numbers of `ReferenceSurvey.Work`; nil where that is not all
  /// there is to it.
  private func owners(of wait: Snapshot.Wait, by id: ThreadID, _ look: Look) -> [Int]? {
    let described = look.snapshot.resources[wait.resource.rawValue - 1]
    guard !described.isOpen, !described.needsOne, !described.hasOnlyWakers else { return nil }
    let owners = look.snapshot.threads.filter { other in
      other.isAlive && other.id != id
        && (other.holds.contains { $0.resource == wait.resource } || described.thread == other.id)
    }
    guard !owners.isEmpty else { return nil }
    return owners.map { owner in
      owner.kind == .thread
        ? Int(look.thread(owner.id).tid.rawValue)
        : ReferenceSurvey.Work.first + owner.id.rawValue - 1
    }
  }

  /// Blocks and tasks that wait for their turn behind others, one for each thread of the look; where
  /// there is none, an empty one stands.
  private func queuedWork(_ look: Look) -> [ReferenceSurvey.Work] {
    look.snapshot.threads.map { part in
      let seen = look.thread(part.id)
      var work = ReferenceSurvey.Work(object: 0, list: nil, owners: [])
      var owners: [Int] = []
      for wait in (part.wait.map { [$0] } ?? []) + part.moreWaits {
        guard let more = self.owners(of: wait, by: part.id, look) else { return work }
        owners += more
      }
      guard !owners.isEmpty else { return work }
      switch part.kind {
      case .block:
        guard let block = seen.block, let dispatch = runtime.dispatch, !dispatch.isWorkItem(block)
        else { return work }
        work.object = block
        work.list = dispatch.places(ofItem: seen.subject)
      case .task:
        guard runtime.concurrency?.mayHandleCancellation(seen.subject) == false else { return work }
        work.object = seen.subject
      case .thread, .operation: return work
      }
      work.owners = owners
      return work
    }
  }

  /// Not given already to one that has yet to wake up.
  private func isUnsignalled(_ key: ResourceKey) -> Bool {
    switch key.kind {
    case HCK_SEMAPHORE.rawValue:
      runtime.dispatch?.semaphore(key.address).map { $0.value < 0 } ?? false
    case HCK_GROUP.rawValue: runtime.dispatch?.group(key.address).map { $0.count > 0 } ?? false
    // The value of glibc's semaphore, on 64 bits, is its low half.
    case HCK_POSIX_SEMAPHORE.rawValue: memory.word32(key.address) == 0
    default: true
    }
  }

  private func stuck(
    _ waits: [KernelThreadID: HolderSearch.Blocked.Wait], _ work: [ReferenceSurvey.Work],
    _ look: Look, isStopped: Bool
  ) -> Set<KernelThreadID>? {
    var pthreads: [KernelThreadID: UInt64] = [:]
    for (tid, pthread) in runtime.dispatch?.pthreads() ?? [:] {
      let outer = builder(now: 0).known(tid)
      pthreads[outer] = pthread
    }
    for thread in look.threads where thread.isAlive && thread.kind == .thread {
      if let pthread = thread.record?.pthread, pthread != 0 { pthreads[thread.tid] = pthread }
    }
    let outside = runtime.outside()
    let before = Dictionary(
      uniqueKeysWithValues: waits.keys.map { ($0, outside.proc.systemCall($0)?.call) })
    func survey(_ registers: [KernelThreadID: [UInt64]]?, limit: UInt64) -> (
      ReferenceSurvey, [KernelThreadID: HolderSearch.Blocked.Wait]
    )? {
      var still = waits
      let threads = (registers.map { Array($0.keys) } ?? files.threads()).map { tid in
        let words = registers?[tid] ?? []
        let pointer =
          words.count > 17 ? words[17] : outside.proc.systemCall(tid)?.call?.stackPointer
        let call = before[tid] ?? nil
        let isInCall = registers == nil || (words.count > 17 && words[15] == 202)
        if call?.number != SystemCalls.futex || call?.stackPointer != pointer || !isInCall {
          still[tid] = nil
        }
        return ReferenceSurvey.Thread(
          tid: tid, stackPointer: pointer, registers: words, pthread: pthreads[tid] ?? 0)
      }
      return ReferenceSurvey(
        threads.sorted { $0.tid < $1.tid }, outside: outside, memory: memory, pidfd: pidfd,
        deadline: hck_monotonic_ns() &+ limit, isLast: registers != nil
      ).map { ($0, still) }
    }
    guard isStopped else {
      return survey(nil, limit: Self.lookLimit).flatMap { $0.0.stuck($0.1, work) }
    }
    let list = { [files] in files.threads() }
    let found = stopper?.whileAllStand(list) { survey($0, limit: Self.stopLimit) }
    return found.flatMap { $0.0.stuck($0.1, work) }
  }

  /// Whoever was given what he waits for before the memory was copied would have run by now.
  private func settle(_ proof: Forsaking.Proof, now: UInt64) -> [ConfirmedDeadlock] {
    let rest: UInt64 = proof.seen == nil ? 300_000_000 : Self.secondLookAtStandstill
    guard now &- (proof.seen?.at ?? proof.provedAt) >= rest, now >= proof.provedAt else {
      return []
    }
    var builder = builder(now: now)
    builder.seeksGivers = true
    builder.forsaken = proof.keys
    let look = builder.look(slots: nil, depth: .kernel)
    var timesRun: [KernelThreadID: UInt64] = [:]
    for thread in look.threads
    where thread.kind == .thread && thread.isAlive && proof.threads.contains(thread.tid) {
      guard look.snapshot.threads[thread.id.rawValue - 1].wait != nil else { continue }
      timesRun[thread.tid] = look.timesRun[thread.id]
    }
    guard timesRun.count == proof.threads.count,
      proof.seen == nil || proof.seen?.timesRun == timesRun
    else {
      forsaking.proof = nil
      return []
    }
    guard proof.seen != nil else {
      forsaking.proof?.seen = (now, timesRun)
      return []
    }
    forsaking.proof = nil
    forsaking.told.formUnion(proof.keys)
    return WaitForGraph(look.snapshot).deadlocks().filter { deadlock in
      isProved(deadlock, look, proof.keys) && markForsaken(deadlock, look)
    }.map { ConfirmedDeadlock(deadlock: $0, look: look) }
  }

  /// Nobody else refers to what is waited for; where it is known who would give it, they are in the cycle.
  private func isProved(_ deadlock: Deadlock, _ look: Look, _ keys: Set<ResourceKey>) -> Bool {
    guard deadlock.cause == .cycle else {
      return deadlock.cause == .forsaken && !isParked(deadlock, look)
    }
    return deadlock.edges.contains { keys.contains(look.resource($0.resource)) }
  }

  /// The main thread alone, or one on something that it made itself to wait for ever: that is how
  /// threads rest while others do the work.
  private func isParked(_ deadlock: Deadlock, _ look: Look) -> Bool {
    deadlock.victims.isEmpty
      && deadlock.edges.allSatisfy { edge in
        look.snapshot.threads[edge.thread.rawValue - 1].isMain
          || arena.tallies(of: look.resource(edge.resource)).contains {
            $0.operation == .create && $0.tid.map(known) == look.thread(edge.thread).tid
          }
      }
  }

  private func known(_ tid: KernelThreadID) -> KernelThreadID { builder(now: 0).known(tid) }
}

/// Calls by which a thread may be woken, or a reference may travel, where no search of memory sees it.
struct HiddenCalls {
  private var known: [String: Bool] = [:]
  private static let names = [
    "pthread_cancel", "msgsnd", "mq_send", "mq_timedsend",
  ].map { [0] + Array($0.utf8) + [0] }

  /// Whether the program, or a library that is not the system's own, calls one of them.
  mutating func areIn(_ proc: ProcReader, memory: ProcessMemory) -> Bool {
    let maps = proc.text("maps") ?? ""
    var seen: Set<Substring> = []
    for line in maps.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
      guard words.count == 6, let slash = words[5].firstIndex(of: "/"), words[2] == "00000000",
        seen.insert(words[5]).inserted
      else { continue }
      let path = words[5][slash...]
      let name = path.split(separator: "/").last ?? ""
      if ["libc.so.", "ld-linux", "libHangAgent.so", "libpthread"].contains(where: name.hasPrefix) {
        continue
      }
      let key = String(words[5])
      if let answer = known[key] {
        if answer { return true }
        continue
      }
      let range = words[0].split(separator: "-")
      guard range.count == 2, let start = UInt64(range[0], radix: 16),
        let end = UInt64(range[1], radix: 16)
      else { return true }
      // The names of what it calls lie in its first segment.
      let answer = Self.calls(start..<min(end, start &+ (1 << 24)), memory)
      known[key] = answer
      if answer { return true }
    }
    return maps.isEmpty
  }

  private static func calls(_ range: Range<UInt64>, _ memory: ProcessMemory) -> Bool {
    var bytes = [UInt8](repeating: 0, count: Int(range.upperBound - range.lowerBound))
    let got = bytes.withUnsafeMutableBytes { memory.read(range.lowerBound, into: $0) }
    return bytes.withUnsafeBytes { raw in
      guard got > 32 else { return false }
      return (0..<got - 32).contains { at in
        raw[at] == 0 && (raw[at + 1] == UInt8(ascii: "p") || raw[at + 1] == UInt8(ascii: "m"))
          && names.contains { raw[at..<at + $0.count].elementsEqual($0) }
      }
    }
  }
}
