/// A thread in one snapshot and one report: a small number, valid only there.
public struct ThreadID: Hashable, Sendable, Codable, Comparable {
  public let rawValue: Int
  public init(_ rawValue: Int) { self.rawValue = rawValue }
  public init(from decoder: any Decoder) throws {
    rawValue = try decoder.singleValueContainer().decode(Int.self)
  }
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rawValue)
  }
  public static func < (a: ThreadID, b: ThreadID) -> Bool { a.rawValue < b.rawValue }
}

/// A resource in one snapshot and one report: a small number, valid only there.
public struct ResourceID: Hashable, Sendable, Codable, Comparable {
  public let rawValue: Int
  public init(_ rawValue: Int) { self.rawValue = rawValue }
  public init(from decoder: any Decoder) throws {
    rawValue = try decoder.singleValueContainer().decode(Int.self)
  }
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rawValue)
  }
  public static func < (a: ResourceID, b: ResourceID) -> Bool { a.rawValue < b.rawValue }
}

/// How a resource is held or wanted.
public enum Mode: String, Hashable, Sendable, Codable { case exclusive, shared }

/// What a thread can hold or wait for.
public enum ResourceKind: String, Hashable, Sendable, Codable {
  case mutex, rwlock, spinlock, condition, barrier
  /// A thread, as what a join waits for; its owner is the thread itself.
  case thread
  case semaphore, group, queue, once, operation, operationQueue, workItem
  case task, actor, continuation, taskGroup
  /// The cooperative pool of one priority: so many threads, and jobs queued behind them.
  case pool
  /// A word of memory that a thread sleeps on, of which nothing else is known.
  case futex
}

/// Who holds what and who waits for what at one moment, whichever way it was learned.
///
/// Times are seconds. Nothing here is an address or a handle that the analysis would follow.
public struct Snapshot: Hashable, Sendable {
  public struct Wait: Hashable, Sendable {
    public var resource: ResourceID
    public var mode: Mode
    /// A wait that ends by itself is no part of a deadlock.
    public var isTimed: Bool
    public var seconds: Double?
    /// Counts the waits of its thread, so that a second look tells one long wait from two; 0 where
    /// not known.
    public var episode: UInt64
    public init(
      resource: ResourceID, mode: Mode, isTimed: Bool = false, seconds: Double? = nil,
      episode: UInt64 = 0
    ) {
      self.resource = resource
      self.mode = mode
      self.isTimed = isTimed
      self.seconds = seconds
      self.episode = episode
    }
  }

  public struct Hold: Hashable, Sendable {
    public var resource: ResourceID
    public var mode: Mode
    public var seconds: Double?
    public init(resource: ResourceID, mode: Mode, seconds: Double? = nil) {
      self.resource = resource
      self.mode = mode
      self.seconds = seconds
    }
  }

  public struct Thread: Hashable, Sendable {
    public var id: ThreadID
    public var isMain: Bool
    /// False for a thread that exited, or that lives only in the process that this one was forked
    /// from.
    public var isAlive: Bool
    public var wait: Wait?
    public var holds: [Hold]
    public init(
      id: ThreadID, isMain: Bool = false, isAlive: Bool = true, wait: Wait? = nil,
      holds: [Hold] = []
    ) {
      self.id = id
      self.isMain = isMain
      self.isAlive = isAlive
      self.wait = wait
      self.holds = holds
    }
  }

  public struct Resource: Hashable, Sendable {
    public var id: ResourceID
    public var kind: ResourceKind
    /// The same thread may take it again without waiting (a recursive mutex; a read lock for
    /// reading).
    public var isReentrant: Bool
    /// For a resource of kind `thread`: who must end.
    public var thread: ThreadID?
    public init(
      id: ResourceID, kind: ResourceKind, isReentrant: Bool = false, thread: ThreadID? = nil
    ) {
      self.id = id
      self.kind = kind
      self.isReentrant = isReentrant
      self.thread = thread
    }
  }

  public var threads: [Thread]
  public var resources: [Resource]
  public init(threads: [Thread], resources: [Resource]) {
    self.threads = threads
    self.resources = resources
  }
}
