/// A thread, task or pending piece of work in one snapshot and one report: a small number, valid only
/// there.
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
  /// A pipe or a pair of sockets whose other end has to be read or written.
  case pipe
  /// A process, as what a wait for a child waits for.
  case process
  /// A lock on a file, of the kernel.
  case fileLock
  /// A checked value: nobody waits for it or holds it, but threads race on it.
  case value

  /// Whether anybody at all may end a wait for it, not only who holds it.
  public var isOpenByNature: Bool {
    switch self {
    case .condition, .barrier, .semaphore, .continuation, .futex: true
    default: false
    }
  }
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
    public init(
      resource: ResourceID, mode: Mode, isTimed: Bool = false, seconds: Double? = nil
    ) {
      self.resource = resource
      self.mode = mode
      self.isTimed = isTimed
      self.seconds = seconds
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

  /// Whoever can hold and wait: a thread, or work that no thread runs at the moment.
  public struct Thread: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, Codable {
      case thread
      /// A Swift task that is suspended or queued.
      case task
      /// A block that a queue has not run yet.
      case block
      /// An operation that its queue has not started yet.
      case operation
    }
    public var id: ThreadID
    public var kind: Kind
    public var isMain: Bool
    /// False for a thread that exited, or that lives only in the process that this one was forked
    /// from.
    public var isAlive: Bool
    /// It rests, with nothing to do: it is not stuck, and wakes nobody by itself.
    public var isIdle: Bool
    public var wait: Wait?
    /// What it waits for as well; all must end before it goes on.
    public var moreWaits: [Wait]
    public var holds: [Hold]
    public init(
      id: ThreadID, kind: Kind = .thread, isMain: Bool = false, isAlive: Bool = true,
      isIdle: Bool = false, wait: Wait? = nil, moreWaits: [Wait] = [], holds: [Hold] = []
    ) {
      self.id = id
      self.kind = kind
      self.isMain = isMain
      self.isAlive = isAlive
      self.isIdle = isIdle
      self.wait = wait
      self.moreWaits = moreWaits
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
    /// Others than those who hold it may have to act before a wait ends, and anybody may: a wait
    /// for it is in vain once nobody at all can act any more.
    public var isOpen: Bool
    /// One of its holders is enough (a pool of several threads); else all must give way.
    public var needsOne: Bool
    /// Who would end a wait for an open resource, as far as is known: they explain, and prove
    /// nothing.
    public var wakers: [ThreadID]
    /// The wakers are taken to be the only ones: a guess, unless it is known that nobody else could.
    /// One of them is enough where `needsOne`.
    public var hasOnlyWakers: Bool
    /// Nobody but those who are stuck refers to it any more, so that nobody can ever give it.
    public var isForsaken: Bool
    public init(
      id: ResourceID, kind: ResourceKind, isReentrant: Bool = false, thread: ThreadID? = nil,
      isOpen: Bool? = nil, needsOne: Bool = false, wakers: [ThreadID] = [],
      hasOnlyWakers: Bool = false, isForsaken: Bool = false
    ) {
      self.hasOnlyWakers = hasOnlyWakers
      self.isForsaken = isForsaken
      self.id = id
      self.kind = kind
      self.isReentrant = isReentrant
      self.thread = thread
      self.isOpen = isOpen ?? (kind.isOpenByNature && !hasOnlyWakers)
      self.needsOne = needsOne
      self.wakers = wakers
    }
  }

  public var threads: [Thread]
  public var resources: [Resource]
  /// Something from outside could still act: a timer, a descriptor, a signal, a thread that is not
  /// listed. Where that is not known it must be taken for granted.
  public var hasOpenings: Bool
  public init(threads: [Thread], resources: [Resource], hasOpenings: Bool = true) {
    self.threads = threads
    self.resources = resources
    self.hasOpenings = hasOpenings
  }
}
