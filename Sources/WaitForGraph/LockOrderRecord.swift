/// What a program's threads were seen to lock inside what.
///
/// A plain value, written by a recorder and read by `LockOrderAnalysis`. All numbers are indices
/// into its own arrays, or ids that the recorder gave out; they are trusted to be in range.
public struct LockOrderRecord: Sendable {
  public struct Lock: Sendable {
    public var kind: ResourceKind
    /// One reader can hold up another, for a writer may stand between: the lock prefers writers (or
    /// is fair), and was seen to be written.
    public var blocksReaders: Bool
    /// Where locks like this one are created; unique where that is not known.
    public var classID: Int
    public init(kind: ResourceKind, blocksReaders: Bool = false, classID: Int) {
      self.kind = kind
      self.blocksReaders = blocksReaders
      self.classID = classID
    }
  }

  /// One stack of held locks, as a node of a trie: a lock that was taken while all the locks of the
  /// node's ancestors were held, the outermost at the root.
  public struct Node: Sendable {
    public var parent: Int?
    public var lock: Int
    public var mode: Mode
    /// False where it is held but was not waited for without end: a trylock, a lock with a time
    /// limit, the queue that an asynchronous block runs on.
    public var isRequest: Bool
    /// The code site that took it.
    public var site: Int
    public init(parent: Int?, lock: Int, mode: Mode, isRequest: Bool = true, site: Int) {
      self.parent = parent
      self.lock = lock
      self.mode = mode
      self.isRequest = isRequest
      self.site = site
    }
  }

  /// A node as one context met it: the moment before it began to wait.
  ///
  /// A context is a thread, or one asynchronous block. It has a component of the clocks to itself
  /// from the epoch `start` on, and its occurrences stand in the order of time. Only nodes that are
  /// requests and have a parent need to occur.
  public struct Occurrence: Sendable {
    public var node: Int
    /// Occurrences with the same number can never wait at the same time.
    public var thread: Int
    public var component: Int
    public var start: UInt32
    public var epoch: UInt32
    /// What its context knew of the others then: an index into `clocks`.
    public var clock: Int?
    public init(
      node: Int, thread: Int, component: Int, start: UInt32, epoch: UInt32, clock: Int? = nil
    ) {
      self.node = node
      self.thread = thread
      self.component = component
      self.start = start
      self.epoch = epoch
      self.clock = clock
    }
  }

  public var locks: [Lock]
  public var nodes: [Node]
  public var occurrences: [Occurrence]
  /// Epochs by component; 0, or absent: nothing is known of it.
  public var clocks: [[UInt32]]
  public init(
    locks: [Lock] = [], nodes: [Node] = [], occurrences: [Occurrence] = [],
    clocks: [[UInt32]] = []
  ) {
    self.locks = locks
    self.nodes = nodes
    self.occurrences = occurrences
    self.clocks = clocks
  }
}

/// A cycle of lock orders: requests that would wait for each other for ever, were they made at the
/// same time.
public struct PotentialDeadlock: Sendable, Hashable {
  /// One request inside the cycle.
  public struct Step: Sendable, Hashable {
    /// Step i waits for the lock of this occurrence's node, which step i + 1 holds; the last step
    /// waits for what the first one holds.
    public var occurrence: Int
    /// The ancestor of the occurrence's node whose lock the step before waits for: the outermost
    /// one that is in its way.
    public var held: Int
    public init(occurrence: Int, held: Int) {
      self.occurrence = occurrence
      self.held = held
    }
  }
  public var steps: [Step]
  /// One thread took every order: it can meet itself only if the program is changed, or, where
  /// there is one step alone, when a writer comes between its two read locks.
  public var isOfOneThread: Bool
  public init(steps: [Step], isOfOneThread: Bool) {
    self.steps = steps
    self.isOfOneThread = isOfOneThread
  }
}
