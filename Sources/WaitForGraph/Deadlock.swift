/// One wait inside a cycle: `thread` waits for `resource`, which `owner` holds (or will hold
/// first).
public struct Edge: Hashable, Sendable {
  public var thread: ThreadID
  public var resource: ResourceID
  public var mode: Mode
  public var owner: ThreadID?
  /// Which of its waits the thread is in, as in `Snapshot.Wait`; 0 where not known.
  public var episode: UInt64
  public init(
    thread: ThreadID, resource: ResourceID, mode: Mode, owner: ThreadID?, episode: UInt64 = 0
  ) {
    self.thread = thread
    self.resource = resource
    self.mode = mode
    self.owner = owner
    self.episode = episode
  }
}

/// A set of threads that can never go on.
public struct Deadlock: Hashable, Sendable {
  public enum Cause: Hashable, Sendable {
    /// Each waits for the next; the last edge closes the circle. One edge alone: a thread waits for
    /// itself.
    case cycle
    /// The owner no longer runs in this process, so nobody is left to give the resource back.
    case ownerGone
  }
  public var cause: Cause
  /// The circle in order, beginning with the lowest thread; for `ownerGone` the one wait.
  public var edges: [Edge]
  /// Threads that merely queue behind the edges, in order of id.
  public var victims: [ThreadID]
  public init(cause: Cause, edges: [Edge], victims: [ThreadID]) {
    self.cause = cause
    self.edges = edges
    self.victims = victims
  }
}

extension Deadlock {
  /// The waits that make the deadlock: its identity, whoever queues behind it meanwhile.
  public var waits: Set<Edge> { Set(edges) }

  /// Whether a later snapshot, whose ids mean the same, shows the same threads in the same waits
  /// behind the same owners.
  ///
  /// A thread that stays in one wait can neither take nor release a lock. So where episodes are
  /// known, two looks that agree prove the deadlock even if each look read one thread after the
  /// other.
  public func isStillThere(in later: Snapshot) -> Bool {
    isStillThere(in: WaitForGraph(later))
  }

  /// The same for a graph that has been built already; several deadlocks share its cost.
  public func isStillThere(in later: WaitForGraph) -> Bool {
    edges.allSatisfy { edge in
      guard let owner = edge.owner, later.isBlocked(edge.thread, by: owner),
        later.isAlive(owner) == (cause == .cycle)
      else { return false }
      return later.wait(of: edge.thread).map {
        $0.resource == edge.resource && $0.mode == edge.mode && $0.episode == edge.episode
      } ?? false
    }
  }
}
