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
    guard now &- forsaking.lookedAt >= max(Self.interval, 100 &* forsaking.cost) || hasProof,
      stopper != nil
    else { return [] }
    if let proof = forsaking.proof { return settle(proof, now: now) }
    forsaking.lookedAt = now
    let old = firstSeen.filter { identity, since in
      now &- since >= Self.patience && !identity.wait.isTimed && isSought(identity.wait.key)
        && !forsaking.told.contains(identity.wait.key)
    }
    forsaking.suspects = forsaking.suspects.filter { old[$0.key] != nil }
    let due = old.keys.filter { forsaking.suspects[$0].map { $0.next <= now } ?? true }
    guard !due.isEmpty else { return [] }
    let began = hck_monotonic_ns()
    defer { forsaking.cost = hck_monotonic_ns() &- began }
    for identity in due {
      let rest = min(
        2 &* (forsaking.suspects[identity]?.rest ?? Self.firstRest / 2), Self.longestPause)
      forsaking.suspects[identity] = Forsaking.Suspect(next: now &+ rest, rest: rest)
    }
    let look = wholeLook(now: now)
    let waits = forsakenWaits(look, seek: Set(due.map(\.wait.key)))
    guard !waits.isEmpty, look.threads.count <= Self.mostThreads,
      let first = stuck(waits, look, isStopped: false), !first.isEmpty,
      let stuck = stuck(waits, look, isStopped: true)
    else { return [] }
    var keys: Set<ResourceKey> = []
    for thread in look.snapshot.threads where stuck.contains(look.thread(thread.id).tid) {
      if let wait = thread.wait, isSought(look.resource(wait.resource)) {
        keys.insert(look.resource(wait.resource))
      }
    }
    guard !keys.isEmpty else { return [] }
    forsaking.proof = Forsaking.Proof(threads: stuck, keys: keys, provedAt: hck_monotonic_ns())
    return []
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
      let owners = look.snapshot.threads.filter { other in
        other.isAlive && other.kind == .thread && other.id != seen.id
          && (other.holds.contains { $0.resource == wait.resource }
            || look.snapshot.resources[wait.resource.rawValue - 1].thread == other.id)
      }
      let described = look.snapshot.resources[wait.resource.rawValue - 1]
      guard !owners.isEmpty, !described.isOpen, !described.needsOne else { continue }
      waits[thread.tid] = .threads(owners.map { Int(look.thread($0.id).tid.rawValue) })
    }
    return isWanted ? waits : [:]
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
    _ waits: [KernelThreadID: HolderSearch.Blocked.Wait], _ look: Look, isStopped: Bool
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
    guard isStopped else { return survey(nil, limit: Self.lookLimit).flatMap { $0.0.stuck($0.1) } }
    let list = { [files] in files.threads() }
    let found = stopper?.whileAllStand(list) { survey($0, limit: Self.stopLimit) }
    return found.flatMap { $0.0.stuck($0.1) }
  }

  /// Whoever was given what he waits for before the memory was copied would have run by now.
  private func settle(_ proof: Forsaking.Proof, now: UInt64) -> [ConfirmedDeadlock] {
    let rest: UInt64 = proof.seen == nil ? 300_000_000 : Self.secondLookAtStandstill
    guard now &- (proof.seen?.at ?? proof.provedAt) >= rest, now >= proof.provedAt else {
      return []
    }
    var builder = builder(now: now)
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
      deadlock.cause == .forsaken && !isParked(deadlock, look) && markForsaken(deadlock, look)
    }.map { ConfirmedDeadlock(deadlock: $0, look: look) }
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
