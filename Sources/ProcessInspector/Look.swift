internal import CHangcheck
internal import WaitForGraph

/// A thread as one look found it: a live one, one that exited with something in hand, or an owner
/// of whom only the id is known. Or work that no thread runs.
struct SeenThread {
  var id: ThreadID
  var kind: Snapshot.Thread.Kind = .thread
  /// 0 for what is no thread.
  var tid: KernelThreadID
  /// Of what is no thread: the task, queued block or operation.
  var subject: UInt64 = 0
  /// What that is called, and the queue that it is on.
  var name: String?
  var queue: String?
  /// Where its code is, the innermost function first.
  var code: [UInt64] = []
  /// The queued block, where it is one.
  var block: UInt64?
  var isAlive: Bool
  var isIdle = false
  var standing: ThreadStanding?
  var record: RecordedThread?
  /// Its `pthread_t`; 0 where it is not known.
  var pthread: UInt64 = 0
  /// What it really holds, in the order of the snapshot's holds.
  var holds: [RecordedHold] = []
}

/// One look at a process: the recorder's word, checked against the memory of the locks and, where
/// asked for, the kernel's.
///
/// The record alone is not believed: a thread that has just taken a lock still looks as if it
/// waited (I3 of hck_layout.h), and memory is used again for other locks. The lock's own memory
/// names its owner.
struct Look {
  var snapshot: Snapshot
  var threads: [SeenThread]
  var resources: [ResourceKey]
  /// How often each live thread that waits was given a processor.
  var timesRun: [ThreadID: UInt64]
  /// What resources are called where the program gave them no name of its own.
  var names: [ResourceKey: String] = [:]
  /// A semaphore's value, a group's count.
  var values: [ResourceKey: Int] = [:]
  /// Of whom it is guessed who would end a wait for them: see `LookBuilder.addGivers`.
  var givers: Set<ResourceKey> = []

  func thread(_ id: ThreadID) -> SeenThread { threads[id.rawValue - 1] }
  func resource(_ id: ResourceID) -> ResourceKey { resources[id.rawValue - 1] }
}

/// A deadlock that two looks agree on.
struct ConfirmedDeadlock {
  var deadlock: Deadlock
  var look: Look
  /// Whoever would end the waits without an owner is a guess: see `LookBuilder.addGivers`.
  var isGuess = false
}

extension Deadlock {
  /// It rests on a guess at who would end a wait: see `LookBuilder.addGivers`.
  func isGuess(_ look: Look) -> Bool {
    edges.contains { look.givers.contains(look.resource($0.resource)) }
  }
}

/// Kinds of resources that no record names, since only the process's memory knows of them; they
/// follow those of `hck_kind`.
enum DerivedKind {
  static let task: UInt32 = 32
  static let actor: UInt32 = 33
  static let continuation: UInt32 = 34
  static let pool: UInt32 = 35
  static let taskGroup: UInt32 = 36
  static let futex: UInt32 = 37
}

extension ResourceKind {
  init(recorded kind: UInt32) {
    switch kind {
    case HCK_RWLOCK.rawValue: self = .rwlock
    case HCK_SPIN.rawValue: self = .spinlock
    case HCK_CONDITION.rawValue: self = .condition
    case HCK_BARRIER.rawValue: self = .barrier
    case HCK_JOIN.rawValue: self = .thread
    case HCK_SEMAPHORE.rawValue, HCK_POSIX_SEMAPHORE.rawValue: self = .semaphore
    case HCK_GROUP.rawValue: self = .group
    case HCK_QUEUE.rawValue: self = .queue
    case HCK_ONCE.rawValue: self = .once
    case HCK_OPERATION.rawValue: self = .operation
    case HCK_OPERATION_QUEUE.rawValue: self = .operationQueue
    case HCK_WORK_ITEM.rawValue: self = .workItem
    case DerivedKind.task: self = .task
    case DerivedKind.actor: self = .actor
    case DerivedKind.continuation: self = .continuation
    case DerivedKind.pool: self = .pool
    case DerivedKind.taskGroup: self = .taskGroup
    case DerivedKind.futex: self = .futex
    default: self = .mutex
    }
  }
}
