public import WaitForGraph

/// Two accesses to one value, as its finding is made from them.
public struct DataRace: Sendable {
  /// What a thread held while it used the value.
  public struct Hold: Hashable, Sendable {
    public var resource: ResourceID
    public var mode: Mode
    public init(resource: ResourceID, mode: Mode) {
      self.resource = resource
      self.mode = mode
    }
  }

  /// One thread's read or write.
  public struct Access: Sendable {
    public var isWrite: Bool
    /// nil, and without a stack, where only that there was one is known.
    public var thread: ThreadID?
    public var stack: [Frame] = []
    public var holds: [Hold] = []
    public init(isWrite: Bool) { self.isWrite = isWrite }
  }

  /// The lock that is held at most accesses to the value.
  public struct Protector: Sendable {
    public var lock: ResourceID
    /// At so many of so many accesses; repetitions do not count.
    public var uses: UInt64
    public var accesses: UInt64
    public init(lock: ResourceID, uses: UInt64, accesses: UInt64) {
      self.lock = lock
      self.uses = uses
      self.accesses = accesses
    }
  }

  public var value: ResourceID
  /// The access at which it was seen, and the one that nothing orders before it.
  public var now: Access
  public var before: Access
  /// No race, but a write that undoes this one: `before` is what it may have been made from.
  public var between: Access?
  public var protector: Protector?

  public init(value: ResourceID, now: Access, before: Access) {
    self.value = value
    self.now = now
    self.before = before
  }

  /// Where one of the two does not hold it.
  var missingProtector: Protector? {
    guard let protector else { return nil }
    let isHeld = [now, before].allSatisfy { access in
      access.holds.contains {
        $0.resource == protector.lock && ($0.mode == .exclusive || !access.isWrite)
      }
    }
    return isHeld ? nil : protector
  }
}

/// Makes the finding of a data race, or of a write that undoes another: message, evidence,
/// fingerprint.
public struct DataRaceFinding: Sendable {
  private let threads: [Thread]
  private let resources: [Resource]
  private let process: WatchedProcess?

  /// The lists of the report that the finding is for.
  public init(threads: [Thread], resources: [Resource], process: WatchedProcess? = nil) {
    self.threads = threads
    self.resources = resources
    self.process = process
  }

  public func finding(for race: DataRace, time: String = UTCTime.now()) -> Finding {
    let words = DataRaceWords(
      names: Names(threads: threads, resources: resources, process: process), race: race)
    let accesses = [race.now, race.between, race.before].compactMap { $0 }
    var involved: [ThreadID] = []
    for thread in accesses.compactMap(\.thread) where !involved.contains(thread) {
      involved.append(thread)
    }
    var named = [race.value]
    // The lock to take comes right behind the value.
    let locks =
      [race.missingProtector?.lock].compactMap { $0 } + accesses.flatMap(\.holds).map(\.resource)
    for lock in locks where !named.contains(lock) { named.append(lock) }
    // Which of the two comes first is chance.
    let sites = accesses.map { "\($0.isWrite) \(Fingerprint.site($0.stack))" }.sorted()
    return Finding(
      kind: .dataRace, severity: race.between == nil ? .error : .note,
      certainty: race.between == nil ? .certain : .possible, message: words.message,
      threads: involved, resources: named,
      evidence: accesses.filter { !$0.stack.isEmpty }.map {
        Finding.Evidence(label: words.label($0), thread: $0.thread, stack: $0.stack)
      },
      fingerprint: Fingerprint.sites(
        .dataRace, [race.between == nil ? "race" : "stale write"] + sites, stacks: []),
      time: time)
  }
}

/// Says in words who did what to the value.
struct DataRaceWords {
  let names: Names
  let race: DataRace

  private var value: String { names.resource(race.value) }

  var message: String {
    let (now, before) = (race.now, race.before)
    if let between = race.between {
      return "\(names.short(now.thread)) writes \(value), which it has read before, over what"
        + " \(names.short(between.thread)) has written in between: it held \(lock ?? "the lock") at"
        + " the read and at the write, but not from the one to the other"
    }
    let it = now.isWrite == before.isWrite ? "too" : before.isWrite ? "writes it" : "reads it"
    let other = names.short(before.thread)
    var text = "\(names.short(now.thread)) \(verb(now)) \(value), and "
    text += now.isWrite == before.isWrite ? "\(other) does so \(it)" : "\(other) \(it)"
    text += ", and nothing orders the two"
    if let protector = race.missingProtector {
      text +=
        "; \(names.resource(protector.lock)) was held at \(protector.uses) of the"
        + " \(protector.accesses) accesses before"
    }
    return text
  }

  /// `"a" wrote value "hits" at 0x… here, holding mutex "m" at 0x…`.
  func label(_ access: DataRace.Access) -> String {
    let holds = access.holds.map { hold in
      names.resource(hold.resource) + (hold.mode == .shared ? " for reading" : "")
    }
    return "\(names.short(access.thread)) \(access.isWrite ? "wrote" : "read") \(value) here,"
      + " holding \(holds.isEmpty ? "nothing" : joined(holds))"
  }

  private func verb(_ access: DataRace.Access) -> String { access.isWrite ? "writes" : "reads" }

  /// What both the read and the write hold.
  private var lock: String? {
    race.now.holds.first { race.before.holds.contains($0) }.map { names.resource($0.resource) }
  }
}
