public import WaitForGraph

/// What a thread that makes no progress does instead.
public struct HangActivity: Sendable, Equatable {
  public enum Kind: Sendable, Equatable {
    /// It runs.
    case computing
    /// It could run, and is given no processor.
    case starved
    /// It waits for one of the report's resources.
    case waiting
    /// It is in a system call: its name, and what that waits for, where it is known.
    case call(String, String?)
    /// It reads pages from a disk.
    case faulting
    case stopped
    /// No thread runs what is waited for. The text says why, where that is known.
    case nobody(String?)
    case unknown
  }
  public var kind: Kind
  /// Of one processor, since the hang began: 0 to 1; nil where the kernel does not tell.
  public var processorShare: Double?
  /// Of the time, that it was ready to run and did not.
  public var delayShare: Double?

  public init(_ kind: Kind, processorShare: Double? = nil, delayShare: Double? = nil) {
    self.kind = kind
    self.processorShare = processorShare
    self.delayShare = delayShare
  }
}

/// Makes the warning that something under watch makes no progress, or made none for a while.
public struct HangFinding: Sendable {
  /// What hangs.
  public struct Subject: Sendable {
    /// `the main run loop`, `queue "work"`; the same in every run, for the fingerprint.
    public var name: String
    /// Who should make progress; nil where nobody is known to.
    public var thread: ThreadID?
    public init(name: String, thread: ThreadID?) {
      self.name = name
      self.thread = thread
    }
  }

  private let names: Names

  public init(threads: [Thread], resources: [Resource], process: WatchedProcess? = nil) {
    names = Names(threads: threads, resources: resources, process: process)
  }

  /// The warning. `began`: ISO 8601 in UTC. `hasEnded`: it goes on again. `fingerprint`: that of an
  /// earlier warning of the same hang.
  public func finding(
    of subject: Subject, seconds: Double, began: String, hasEnded: Bool, activity: HangActivity,
    samples: StackFold, fingerprint: String? = nil, time: String = UTCTime.now()
  ) -> Finding {
    let who = subject.thread.map { names.short($0) }
    let chain = chain(from: subject.thread, activity)
    let clock = began.count > 12 ? String(began.dropFirst(11).dropLast()) : began
    let lasted =
      hasEnded
      ? "made no progress for \(Self.words(seconds)) and goes on again (it began at \(clock) UTC)"
      : "has made no progress for \(Self.words(seconds)) (since \(clock) UTC)"
    let what = doing(activity, chain).map { who == nil ? $0 : "\(who ?? "") \($0)" }
    return Finding(
      kind: .hang, severity: .warning, certainty: .certain,
      message: "\(cleaned(subject.name)) \(lasted)"
        + (what.map { ": " + $0 } ?? "") + place(samples, what == nil ? ": " : ", "),
      threads: ([subject.thread] + chain.map(\.owner)).compactMap { $0 }.unique,
      resources: chain.map(\.resource).unique,
      evidence: evidence(subject, chain, samples),
      fingerprint: fingerprint ?? Self.fingerprint(of: subject.name, samples),
      time: time)
  }

  /// Where something hangs, the same in every run.
  public static func fingerprint(of subject: String, _ samples: StackFold) -> String {
    Fingerprint.sites(.hang, [subject], stacks: samples.heaviest.map { [$0.stack] } ?? [])
  }

  /// What the message ends in when it hung like this `count` times, for so many seconds in all.
  public static func repeated(_ count: Int, seconds: Double) -> String {
    "; it hung there \(count) times, for \(words(seconds)) in all"
  }

  /// `0.3 s`, `3.4 s`, `2 min 5 s`.
  static func words(_ seconds: Double) -> String {
    guard seconds.isFinite, seconds >= 0, seconds < 1e9 else { return "an unknown time" }
    if seconds < 60 {
      let tenths = Int((seconds * 10).rounded())
      return "\(tenths / 10).\(tenths % 10) s"
    }
    return "\(Int(seconds) / 60) min \(Int(seconds) % 60) s"
  }

  private func place(_ samples: StackFold, _ start: String) -> String {
    guard let heaviest = samples.heaviest, let function = heaviest.function else { return "" }
    return start + "\(heaviest.count) of \(counted(samples.total, "sample")) in \(function)"
  }

  /// Participles, since it is told while it lasts and afterwards.
  private func doing(_ activity: HangActivity, _ chain: [Link]) -> String? {
    switch activity.kind {
    case .computing:
      return "computing"
        + (activity.processorShare.map { " (\(percent($0)) of a processor)" } ?? "")
    case .starved:
      return "ready to run, and without a processor"
        + (activity.delayShare.map { " for \(percent($0)) of the time" } ?? "")
    case .waiting: return waiting(chain)
    case .call(let name, let what): return "in \(name)" + (what.map { " (\($0))" } ?? "")
    case .faulting: return "reading pages from a disk"
    case .stopped: return "stopped"
    case .nobody(let why): return "no thread runs it" + (why.map { ": \($0)" } ?? "")
    case .unknown: return nil
    }
  }

  private func percent(_ share: Double) -> String {
    "\(Int((min(max(share, 0), 1) * 100).rounded())) %"
  }

  // MARK: - Who is at fault

  private struct Link {
    var waiter: ThreadID
    var resource: ResourceID
    var owner: ThreadID?
  }

  /// From the thread that hangs to the one that waits for nobody, over whoever holds what the one
  /// before waits for.
  private func chain(from thread: ThreadID?, _ activity: HangActivity) -> [Link] {
    guard activity.kind == .waiting else { return [] }
    var links: [Link] = []
    var seen: Set<ThreadID> = []
    var next = thread
    while let waiter = next, seen.insert(waiter).inserted, links.count < 16,
      let wait = names.threads[waiter]?.waitsFor
    {
      let owners = (names.resources[wait.resource]?.owners ?? []).filter { $0 != waiter }
      // Of several holders one that waits itself leads further.
      let owner = owners.first { names.threads[$0]?.waitsFor != nil } ?? owners.first
      links.append(Link(waiter: waiter, resource: wait.resource, owner: owner))
      next = owner
    }
    return links
  }

  private func waiting(_ chain: [Link]) -> String? {
    guard !chain.isEmpty else { return nil }
    var words = chain.enumerated().map { index, link in
      let held =
        link.owner.map { ", \(holds(link.resource)) \(names.short($0))" }
        ?? "; nobody is known to hold it"
      return (index == 0 ? "waiting for " : "which waits for ") + names.resource(link.resource)
        + held
    }
    if let last = chain.last?.owner, let thread = names.threads[last] {
      let isCircle = chain.contains { $0.waiter == last }
      if isCircle {
        words.append("which waits itself")
      } else if let state = state(of: thread) {
        words.append(state)
      }
    }
    return words.joined(separator: ", ")
  }

  private func holds(_ resource: ResourceID) -> String {
    switch names.resources[resource]?.kind {
    case .queue, .actor, .operationQueue, .pool: "on which runs"
    case .once: "run by"
    case .thread, .task, .operation, .workItem: "that is,"
    default: "held by"
    }
  }

  private func state(of thread: Thread) -> String? {
    let call = thread.stack.first.flatMap { $0.runtime ? $0.symbol : nil }.map { " in \($0)" } ?? ""
    // A call that a look has interrupted is made anew, and looks like any other wait.
    if thread.state == .blocked, call.contains("nanosleep") { return "which sleeps" + call }
    switch thread.state {
    case .running: return "which runs"
    case .sleeping: return "which sleeps" + call
    case .io: return "which is in the kernel" + call
    case .blocked: return "which is blocked" + call
    case .idle: return nil
    }
  }

  private func evidence(
    _ subject: Subject, _ chain: [Link], _ samples: StackFold
  ) -> [Finding.Evidence] {
    let who = subject.thread.map { names.short($0) } ?? "a thread"
    var evidence = samples.groups.prefix(4).map { group in
      let place = group.function.map { "in \($0)" } ?? "here"
      return Finding.Evidence(
        label: "\(who) was \(place) in \(group.count) of \(counted(samples.total, "sample"))",
        thread: subject.thread, stack: group.stack)
    }
    for link in chain {
      guard let owner = link.owner, let thread = names.threads[owner] else { continue }
      let what = names.resource(link.resource)
      if let hold = thread.holds.last(where: { $0.resource == link.resource }), !hold.stack.isEmpty
      {
        evidence.append(
          .init(label: "\(names.short(owner)) took \(what) here", thread: owner, stack: hold.stack))
      }
      if !thread.stack.isEmpty, owner != subject.thread {
        evidence.append(
          .init(label: "\(names.short(owner)) stands here", thread: owner, stack: thread.stack))
      }
    }
    return evidence
  }
}

extension Array where Element: Hashable {
  /// Each once, where it came first.
  fileprivate var unique: [Element] {
    var seen: Set<Element> = []
    return filter { seen.insert($0).inserted }
  }
}
