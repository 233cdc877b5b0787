public import WaitForGraph

/// One thing that is wrong, with the evidence to mend it.
public struct Finding: Codable, Sendable, Equatable {
  public enum Kind: String, Codable, Sendable, CaseIterable {
    case deadlock, potentialDeadlock, hang, longWait, priorityInversion, unbalancedGroup
    case semaphoreMisuse, lockMisuse, queueMisuse, conditionMisuse, continuationMisuse
    case poolExhaustion, livelock, dataRace
  }
  public enum Severity: String, Codable, Sendable, CaseIterable { case note, warning, error }
  public enum Certainty: String, Codable, Sendable { case certain, confirmed, possible }

  public struct Edge: Codable, Sendable, Equatable {
    public var thread: ThreadID
    public var waitsFor: ResourceID
    public var mode: Mode
    public var ownedBy: ThreadID?
    public init(
      thread: ThreadID, waitsFor: ResourceID, mode: Mode, ownedBy: ThreadID?
    ) {
      self.thread = thread
      self.waitsFor = waitsFor
      self.mode = mode
      self.ownedBy = ownedBy
    }
    /// An unknown owner is written as null.
    public func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(thread, forKey: .thread)
      try container.encode(waitsFor, forKey: .waitsFor)
      try container.encode(mode, forKey: .mode)
      try container.encode(ownedBy, forKey: .ownedBy)
    }
  }

  /// One site that a reader needs to mend it.
  public struct Evidence: Codable, Sendable, Equatable {
    public var label: String
    public var thread: ThreadID?
    public var stack: [Frame]
    public init(label: String, thread: ThreadID?, stack: [Frame]) {
      self.label = label
      self.thread = thread
      self.stack = stack
    }
  }

  public var kind: Kind
  public var severity: Severity
  public var certainty: Certainty
  /// One sentence that names the threads, the resources and what waits for what.
  public var message: String
  public var cycle: [Edge]
  public var threads: [ThreadID]
  public var resources: [ResourceID]
  public var evidence: [Evidence]
  /// Stable over runs, addresses, thread ids and unrelated code motion.
  public var fingerprint: String
  /// ISO 8601, UTC.
  public var time: String

  public init(
    kind: Kind, severity: Severity, certainty: Certainty, message: String, cycle: [Edge] = [],
    threads: [ThreadID] = [], resources: [ResourceID] = [], evidence: [Evidence] = [],
    fingerprint: String = "", time: String = ""
  ) {
    self.kind = kind
    self.severity = severity
    self.certainty = certainty
    self.message = message
    self.cycle = cycle
    self.threads = threads
    self.resources = resources
    self.evidence = evidence
    self.fingerprint = fingerprint
    self.time = time
  }
}

/// A thread as it stood; or a task, a queued block or an operation that no thread ran at that
/// moment, where a finding needs it.
public struct Thread: Codable, Sendable, Equatable {
  public enum State: String, Codable, Sendable { case running, blocked, sleeping, io, idle }
  public struct Wait: Codable, Sendable, Equatable {
    public var resource: ResourceID
    public var mode: Mode
    public var seconds: Double?
    public var stack: [Frame]
    public init(
      resource: ResourceID, mode: Mode, seconds: Double?, stack: [Frame]
    ) {
      self.resource = resource
      self.mode = mode
      self.seconds = seconds
      self.stack = stack
    }
  }
  /// What it holds, where and since when it was acquired.
  public struct Hold: Codable, Sendable, Equatable {
    public var resource: ResourceID
    public var mode: Mode
    public var seconds: Double?
    public var stack: [Frame]
    public init(
      resource: ResourceID, mode: Mode, seconds: Double?, stack: [Frame]
    ) {
      self.resource = resource
      self.mode = mode
      self.seconds = seconds
      self.stack = stack
    }
  }
  public var id: ThreadID
  /// Absent for a thread.
  public var kind: Snapshot.Thread.Kind?
  /// 0 for what is no thread.
  public var tid: Int32
  /// Of the task, block or operation; absent for a thread.
  public var address: Address?
  /// Of a child process that was followed; absent for the process itself.
  public var pid: Int32?
  public var name: String
  public var queue: String?
  public var qos: String?
  public var state: State
  public var waitsFor: Wait?
  public var holds: [Hold]
  public var stack: [Frame]
  public init(
    id: ThreadID, kind: Snapshot.Thread.Kind? = nil, tid: Int32, address: Address? = nil,
    pid: Int32? = nil, name: String, queue: String? = nil, qos: String? = nil, state: State,
    waitsFor: Wait? = nil, holds: [Hold] = [], stack: [Frame] = []
  ) {
    self.id = id
    self.kind = kind
    self.tid = tid
    self.address = address
    self.pid = pid
    self.name = name
    self.queue = queue
    self.qos = qos
    self.state = state
    self.waitsFor = waitsFor
    self.holds = holds
    self.stack = stack
  }
  /// A thread that waits for nothing says so with null.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(id, forKey: .id)
    try container.encodeIfPresent(kind, forKey: .kind)
    try container.encode(tid, forKey: .tid)
    try container.encodeIfPresent(address, forKey: .address)
    try container.encodeIfPresent(pid, forKey: .pid)
    try container.encode(name, forKey: .name)
    try container.encodeIfPresent(queue, forKey: .queue)
    try container.encodeIfPresent(qos, forKey: .qos)
    try container.encode(state, forKey: .state)
    try container.encode(waitsFor, forKey: .waitsFor)
    try container.encode(holds, forKey: .holds)
    try container.encode(stack, forKey: .stack)
  }
}

/// Something that a thread can hold or wait for.
public struct Resource: Codable, Sendable, Equatable {
  public var id: ResourceID
  public var kind: ResourceKind
  public var name: String?
  public var address: Address
  public var owners: [ThreadID]
  public var waiters: [ThreadID]
  public var value: Int?
  public var created: [Frame]?
  public init(
    id: ResourceID, kind: ResourceKind, name: String? = nil, address: Address,
    owners: [ThreadID] = [], waiters: [ThreadID] = [], value: Int? = nil, created: [Frame]? = nil
  ) {
    self.id = id
    self.kind = kind
    self.name = name
    self.address = address
    self.owners = owners
    self.waiters = waiters
    self.value = value
    self.created = created
  }
}
