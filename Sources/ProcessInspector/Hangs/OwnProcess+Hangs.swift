internal import CHangcheck
package import HangReport
internal import WaitForGraph

extension OwnProcess: HangSource {
  /// Whether a queue has something to do.
  package enum QueueStanding: Equatable, Sendable {
    /// libdispatch's memory is not as it is known.
    case unknown
    case idle
    /// It, or one that it targets, is suspended or was never activated.
    case suspended
    /// It has items, or runs one.
    case busy
    /// It has too much to do, and does it.
    case working
  }

  /// `queue`: the address of libdispatch's object. Costs some microseconds.
  package func standing(ofQueue queue: UInt64) -> QueueStanding {
    guard let dispatch = watch.runtime.dispatch, let seen = dispatch.queue(queue) else {
      return .unknown
    }
    for address in dispatch.targetChain(queue) {
      guard let member = dispatch.queue(address), !member.isRoot else { continue }
      if member.suspendCount > 0 || member.isInactive { return .suspended }
    }
    if seen.hasItems { return .busy }
    // Its owner is the main thread, whatever that does, until `dispatchMain`.
    if seen.isMain && seen.isThreadBound { return .idle }
    let runs = seen.owner != nil || seen.inBarrier || (seen.runningWidth ?? 0) > 0
    return runs ? .busy : .idle
  }

  /// Of the pool that runs Swift's tasks: busy where all its threads are taken and none of them
  /// runs.
  package func standingOfCooperativePool() -> QueueStanding {
    guard let pools = watch.runtime.concurrency?.pools() else { return .unknown }
    guard pools.contains(where: { $0.busy >= $0.width || !$0.pending.isEmpty }) else {
      return .idle
    }
    let threads = cooperativeThreads()
    return threads.isEmpty || threads.contains { reader.state($0) == UInt8(ascii: "R") }
      ? .working : .busy
  }

  private func cooperativeThreads() -> [KernelThreadID] {
    guard let dispatch = watch.runtime.dispatch else { return [] }
    return dispatch.pthreads().filter { _, pthread in
      dispatch.queuesOfThread(pthread: pthread).contains {
        dispatch.queue($0)?.isCooperativePool ?? false
      }
    }.keys.sorted()
  }

  package var tracer: Int32? { reader.tracer }

  package func isAlive(_ tid: KernelThreadID) -> Bool { files.isAlive(tid) }

  /// Finds the runtime's libraries and what lies where in them, before the first hang is looked at.
  package func warmUp(now: UInt64) {
    hck_sanitizer_ignore_begin()
    defer { hck_sanitizer_ignore_end() }
    _ = watch.wholeLook(now: now)
  }

  /// Copies the stack of the thread that should make progress, and asks the kernel what it has had.
  package func sample(_ subject: HangSamples.Subject, into samples: HangSamples, now: UInt64) {
    guard let tid = thread(of: subject), let use = ask(tid, samples, now: now) else { return }
    // A stopped thread would answer the signal later.
    guard use.state != UInt8(ascii: "T"), use.state != UInt8(ascii: "t") else { return }
    let sleeping = SleeperCapture(files: files, memory: memory)
    let isAsleep = sleeping.sleepers(among: [tid])[tid] != nil
    let captured =
      (isAsleep ? nil : capture.capture([tid], files: files)[tid]) ?? sleeping.capture(tid)
    if let captured { samples.add(captured) }
  }

  /// The report of a hang: the first, a later one while it lasts, or the last. `began`: ISO 8601 in
  /// UTC. `goesOn`: asked after all that is seen. Nil for a later one that is too late.
  package func report(
    _ subject: HangSamples.Subject, _ samples: HangSamples, seconds: Double, began: String,
    hasEnded: Bool, now: UInt64, goesOn: () -> Bool
  ) -> HangReport? {
    hck_sanitizer_ignore_begin()
    defer { hck_sanitizer_ignore_end() }
    let time = UTCTime.now()
    // Names take long to find: what the threads do comes first.
    var tid = hasEnded ? samples.thread : thread(of: subject)
    if !hasEnded, let tid { _ = ask(tid, samples, now: now) }
    let look = hasEnded ? nil : watch.wholeLook(now: now)
    let owners = look.map(unrecordedOwners) ?? [:]
    let stacks = look.map { look in
      captureStacks(look.threads.filter { $0.isAlive && $0.kind == .thread }.map(\.tid), look)
    }
    let known = look.map(names) ?? [:]
    // Between the first question and the last one it may have come to its end.
    let isPast = !hasEnded && !goesOn()
    if isPast && samples.fingerprint != nil { return nil }
    let assembler = ReportAssembler(files: files, memory: memory, arena: arena, isRoot: true)
    let process = WatchedProcess(
      pid: files.pid.rawValue, executable: files.executable(), arguments: files.arguments())
    var report = HangReport(tool: .current, mode: .inProcess, process: process)
    if let look, let stacks {
      if !isPast, let tid, let captured = stacks[tid] { samples.add(captured) }
      samples.threads = assembler.threads(look, stacks: stacks)
      samples.resources = ReportAssembler.named(assembler.resources(look), by: samples.threads)
      tid = tid ?? runner(of: subject, look)
      samples.thread = tid
      name(owners, samples)
      for index in samples.resources.indices where samples.resources[index].name == nil {
        samples.resources[index].name = known[samples.resources[index].address.rawValue]
      }
    }
    // As the last look found it: a hang that has ended is not looked at any more.
    let thread = samples.threads.first { $0.kind ?? .thread == .thread && $0.tid == tid?.rawValue }
    if !hasEnded { samples.activity = activity(tid, isPast ? nil : thread, subject, samples) }
    let maker = HangFinding(
      threads: samples.threads, resources: samples.resources, process: process)
    let finding = maker.finding(
      of: .init(name: subject.name, thread: thread?.id), seconds: seconds,
      began: began, hasEnded: hasEnded, activity: samples.activity,
      samples: samples.fold(assembler),
      fingerprint: samples.fingerprint, time: time)
    samples.fingerprint = finding.fingerprint
    report.findings = [finding]
    let named = Set(finding.threads)
    // Of what has ended only those that it names are still of interest.
    report.threads = samples.threads.filter { thread in
      named.contains(thread.id) || (!hasEnded && thread.kind ?? .thread == .thread)
    }
    report.resources = samples.resources.filter { resource in
      !hasEnded || finding.resources.contains(resource.id)
    }
    let limits = assembler.limits + (hasEnded ? [] : capture.limits)
    report.limits = limits.isEmpty ? nil : limits
    return report
  }

  /// Who should make progress.
  private func thread(of subject: HangSamples.Subject) -> KernelThreadID? {
    if let thread = subject.thread { return thread }
    if subject.isPool { return cooperativeThreads().first }
    guard let address = subject.queue, let dispatch = watch.runtime.dispatch else { return nil }
    return dispatch.targetChain(address).lazy.compactMap { dispatch.queue($0)?.owner }.first
  }

  /// Of a concurrent queue, any thread that runs one of its items.
  private func runner(of subject: HangSamples.Subject, _ look: Look) -> KernelThreadID? {
    guard let address = subject.queue else { return nil }
    let key = ResourceKey(address: address, kind: HCK_QUEUE.rawValue)
    return look.threads.first { seen in
      seen.kind == .thread && seen.isAlive && seen.holds.contains { $0.key == key }
    }?.tid
  }

  /// A lock that is no drop-in is only a word that somebody sleeps on; where that is the first one of
  /// a mutex of glibc's, the third is its owner's id.
  private func unrecordedOwners(_ look: Look) -> [UInt64: KernelThreadID] {
    let alive = Set(look.threads.filter { $0.isAlive && $0.kind == .thread }.map(\.tid))
    var result: [UInt64: KernelThreadID] = [:]
    for key in look.resources where key.kind == DerivedKind.futex {
      guard memory.word32(key.address) ?? 0 != 0, let word = memory.word32(key.address &+ 8)
      else { continue }
      let owner = KernelThreadID(Int32(bitPattern: word))
      if alive.contains(owner) { result[key.address] = owner }
    }
    return result
  }

  /// What the program called the resources, which may be gone when a report is written.
  private func names(_ look: Look) -> [UInt64: String] {
    var result: [UInt64: String] = [:]
    for key in look.resources { result[key.address] = arena.name(of: key.address) }
    return result
  }

  private func name(_ owners: [UInt64: KernelThreadID], _ samples: HangSamples) {
    for (index, resource) in samples.resources.enumerated()
    where resource.kind == .futex && resource.owners.isEmpty {
      guard let tid = owners[resource.address.rawValue],
        let owner = samples.threads.first(where: {
          $0.kind ?? .thread == .thread && $0.tid == tid.rawValue
        })
      else { continue }
      samples.resources[index].kind = .mutex
      samples.resources[index].owners = [owner.id]
    }
  }
}
