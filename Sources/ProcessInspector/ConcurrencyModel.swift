/// A task of Swift Concurrency that has not ended, as its process's memory shows it.
struct SwiftTask: Sendable, Hashable {
  /// Of the task object: what the process calls `UnsafeCurrentTask`, and a `Task` value points to.
  var address: UInt64
  /// 1, 2, 3 … in the order in which tasks were made.
  var id: UInt64
  /// As given to `Task(name:)`.
  var name: String?
  /// As it was made, not as it was raised meanwhile.
  var priority: UInt8
  var kind: Kind
  /// A thread runs it at this moment; it may well be blocked in there.
  var isRunning: Bool
  /// It lies in the queue of an executor.
  var isEnqueued: Bool
  var isCancelled: Bool
  /// It has never run, nor been put into a queue.
  var isUnstarted: Bool
  /// In `Task.sleep`: time alone ends it.
  var isSleeping: Bool
  /// Part of another task's sleep; nothing a program knows of.
  var isHelper: Bool
  /// Of a task in a group, or of `async let`.
  var parent: UInt64?
  /// The group that it is a child of.
  var group: UInt64?
  var wait: TaskWait
  /// The code it goes on with, and the state word: two looks that agree in both saw the same wait.
  var resume: UInt64
  var status: UInt32
  var context: UInt64
  /// The function that asked for a checked continuation which is still held somewhere, so that it
  /// can be resumed yet; nil where the task waits for none, or where nobody holds it any more.
  var checkedContinuation: String?

  enum Kind: Sendable { case task, asyncLet, groupChild }
}

/// What a task that is not running waits for, by the runtime's own record.
enum TaskWait: Sendable, Hashable {
  /// Running, or not started.
  case none
  /// The end of another task.
  case task(UInt64)
  /// That someone resumes a continuation, which has this context.
  case continuation(UInt64, isResumed: Bool)
  /// The next child of a group to end, or the last.
  case taskGroup(UInt64)
  /// Its turn.
  case executor(ExecutorPlace)
  /// The runtime says that it waits, but not in words that are known here.
  case unknown
}

/// Where jobs run.
enum ExecutorPlace: Sendable, Hashable {
  /// The shared pool of threads; each priority has its own width.
  case pool
  /// That of the main actor.
  case main
  /// The queue of an actor.
  case actor(UInt64)
  /// An executor of the program's own: the address of its object.
  case other(UInt64)
}

/// What a thread does for Swift Concurrency at this moment.
struct RunningTask: Sendable, Hashable {
  /// nil where the thread runs a job that is no task, like an actor's own.
  var task: UInt64?
  /// Whom the thread occupies; nil where it runs outside of any executor (a plain thread).
  var place: ExecutorPlace?
}

/// A default actor and its queue.
struct SwiftActor: Sendable, Hashable {
  enum State: UInt32, Sendable { case idle, scheduled, running, ended }
  var address: UInt64
  var state: State
  /// Tasks that wait for their turn, in no particular order.
  var queued: [UInt64]
  /// The walk along the queue came to no end: it changed meanwhile.
  var isCut: Bool
}

/// The jobs of one priority on their way to threads.
struct SwiftPool: Sendable, Hashable {
  /// That of its jobs: 9, 0x11, 0x15, 0x19, 0x21.
  var priority: UInt8
  /// The queue of libdispatch behind it.
  var queue: UInt64
  var label: String
  /// How many of its jobs may run at the same time.
  var width: Int
  /// How many of its jobs run, or are next in line for a thread.
  var busy: Int
  /// Jobs that wait until one of those has ended, first in, first out: tasks, or actors' jobs.
  var pending: [Job]
  /// The walk along the queue came to no end: it changed meanwhile.
  var isCut: Bool

  /// A unit of work in the pool.
  enum Job: Sendable, Hashable {
    case task(UInt64)
    /// An actor's turn to work its queue off.
    case actor(UInt64)
    case other(UInt64)
  }

  /// No job of this priority can start before another one ends or suspends.
  var isExhausted: Bool { width > 0 && busy >= width && !pending.isEmpty }
}

/// A task group's count.
struct SwiftTaskGroup: Sendable, Hashable {
  var address: UInt64
  /// Children that have not ended.
  var pending: Int
  /// The task in `next()` or at the end of the group's body.
  var waiting: UInt64?
}
