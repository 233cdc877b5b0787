/// One wait inside a deadlock: `thread` waits for `resource`, which `owner` holds (or will hold
/// first, or would have to give).
public struct Edge: Hashable, Sendable {
  public var thread: ThreadID
  public var resource: ResourceID
  public var mode: Mode
  public var owner: ThreadID?
  public init(thread: ThreadID, resource: ResourceID, mode: Mode, owner: ThreadID?) {
    self.thread = thread
    self.resource = resource
    self.mode = mode
    self.owner = owner
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
    /// Whoever could end these waits is stuck or gone, and nothing from outside can act: the edges
    /// have no owners, or ones that rest with nothing to do.
    case nobodyCanWake
    /// Nobody but those who are stuck refers to what they wait for any more: the rest of the program
    /// lives on and can never end these waits. The edges have no owners.
    case forsaken
  }
  public var cause: Cause
  /// The circle in order, beginning with the lowest thread; for `ownerGone` the one wait; for
  /// `nobodyCanWake` and `forsaken` every wait that nobody is known to end, by ascending thread.
  public var edges: [Edge]
  /// Those that merely queue behind the edges, in order of id.
  public var victims: [ThreadID]
  /// It is one only because nothing else in the process can act any more.
  public var needsStandstill: Bool
  public init(
    cause: Cause, edges: [Edge], victims: [ThreadID], needsStandstill: Bool = false
  ) {
    self.cause = cause
    self.edges = edges
    self.victims = victims
    self.needsStandstill = needsStandstill
  }
}
