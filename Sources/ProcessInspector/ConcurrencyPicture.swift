/// Swift Concurrency of a process at one look: what has to happen before each task goes on, and who
/// occupies what it waits for.
///
/// A value, made from memory that was not stopped: whatever is concluded from it holds if a second
/// one agrees.
struct ConcurrencyPicture: Sendable {
  /// All that have not ended, in the order in which they were made; parts of sleeps are left out.
  var tasks: [SwiftTask] = []
  /// Not all tasks were found within the limits.
  var isCut = false
  /// What each thread runs, of those that run anything.
  var running: [KernelThreadID: RunningTask] = [:]
  /// By address: those that tasks wait for.
  var actors: [UInt64: SwiftActor] = [:]
  /// By address: those that tasks wait for.
  var groups: [UInt64: SwiftTaskGroup] = [:]
  /// nil where the runtime does not tell.
  var pools: [SwiftPool]?

  private var indices: [UInt64: Int] = [:]
  private var children: [UInt64: [UInt64]] = [:]
  /// The pool in whose queue a job lies.
  private var poolOfJob: [SwiftPool.Job: Int] = [:]

  init() {}

  init(
    tasks: [SwiftTask], isCut: Bool, running: [KernelThreadID: RunningTask],
    actors: [UInt64: SwiftActor], groups: [UInt64: SwiftTaskGroup], pools: [SwiftPool]?
  ) {
    self.tasks = tasks
    self.isCut = isCut
    self.running = running
    self.actors = actors
    self.groups = groups
    self.pools = pools
    for (index, task) in tasks.enumerated() {
      indices[task.address] = index
      if let group = task.group { children[group, default: []].append(task.address) }
    }
    for (index, pool) in (pools ?? []).enumerated() {
      for job in pool.pending { poolOfJob[job] = index }
    }
  }

  /// What a task cannot go on without.
  enum Need: Sendable, Hashable {
    /// It runs: what its thread does is what counts.
    case thread(KernelThreadID)
    /// Time will wake it.
    case time
    /// The end of tasks: of all, or of any one of them.
    case end(of: [UInt64], all: Bool)
    /// That someone resumes the continuation with this context.
    case resumption(UInt64)
    /// Its turn on an executor.
    case turn(Turn)
    /// Nothing: it was woken, or is about to run.
    case nothing
    /// Cannot be told; never conclude anything from it.
    case unknown
  }

  /// A place in the queue of an executor.
  struct Turn: Sendable, Hashable {
    var place: ExecutorPlace
    /// Threads that occupy it: one for an actor, several for the pool, all of which count until one
    /// of them goes on.
    var occupants: [KernelThreadID]
    /// Whether nobody's turn comes before an occupant goes on; nil where that cannot be told.
    var isTaken: Bool?
  }

  func task(_ address: UInt64) -> SwiftTask? { indices[address].map { tasks[$0] } }

  /// The thread that runs a task.
  func thread(running task: UInt64) -> KernelThreadID? {
    running.first { $0.value.task == task }?.key
  }

  /// The children of a group that have not ended.
  func children(ofGroup group: UInt64) -> [UInt64] { children[group] ?? [] }

  /// What a task cannot go on without.
  func need(of task: SwiftTask) -> Need {
    if task.isRunning { return thread(running: task.address).map { .thread($0) } ?? .unknown }
    switch task.wait {
    case .none: return task.isUnstarted ? .unknown : .nothing
    case .unknown: return .unknown
    case .task(let other):
      // Its end was already there, and the waiter is on its way; or it could not be read.
      return self.task(other) == nil ? .unknown : .end(of: [other], all: true)
    case .continuation(_, isResumed: true): return .nothing
    case .continuation(let context, isResumed: false):
      return task.isSleeping ? .time : .resumption(context)
    case .taskGroup(let group):
      let children = children(ofGroup: group)
      guard let pending = groups[group]?.pending, pending == children.count, pending > 0 else {
        return .unknown
      }
      return .end(of: children, all: task.waitsForAllChildren)
    case .executor(let place): return turn(of: .task(task.address), at: place, task)
    }
  }

  private func turn(of job: SwiftPool.Job, at place: ExecutorPlace, _ task: SwiftTask) -> Need {
    switch place {
    case .pool: return poolTurn(of: job, task.priority)
    case .main, .other:
      let threads = occupants(of: place)
      return .turn(Turn(place: place, occupants: threads, isTaken: threads.isEmpty ? nil : true))
    case .actor(let address):
      let threads = occupants(of: place)
      if !threads.isEmpty { return .turn(Turn(place: place, occupants: threads, isTaken: true)) }
      guard let actor = actors[address] else { return .unknown }
      // Nobody works on it yet: its own job waits for a thread of the pool.
      if actor.state == .scheduled { return poolTurn(of: .actor(address), task.priority) }
      return actor.state == .idle ? .nothing : .unknown
    }
  }

  private func poolTurn(of job: SwiftPool.Job, _ priority: UInt8) -> Need {
    guard let pools else {
      return .turn(Turn(place: .pool, occupants: occupants(of: .pool), isTaken: nil))
    }
    let pool = poolOfJob[job].map { pools[$0] } ?? pools.first { $0.priority == priority }
    guard let pool else { return .unknown }
    // On its way, though not in the queue: to a thread, or to libdispatch's own list of jobs.
    let isTaken = poolOfJob[job] == nil ? nil : pool.isExhausted
    return .turn(Turn(place: .pool, occupants: occupants(of: pool), isTaken: isTaken))
  }

  /// The threads on an executor; of the pool all, whatever their priority.
  func occupants(of place: ExecutorPlace) -> [KernelThreadID] {
    running.filter { place == .pool ? isInPool($0.value) : $0.value.place == place }.keys.sorted()
  }

  /// The threads that jobs of one priority run on, where that can be told, or else all of the pool.
  func occupants(of pool: SwiftPool) -> [KernelThreadID] {
    let all = running.filter { isInPool($0.value) }
    let own = all.filter { entry in
      entry.value.task.flatMap { task($0) }?.priority == pool.priority
    }
    return (own.count >= pool.busy ? own : all).keys.sorted()
  }

  /// Default actors have no threads of their own.
  private func isInPool(_ running: RunningTask) -> Bool {
    switch running.place {
    case .pool, .actor: true
    default: false
    }
  }
}

extension ConcurrencyMemory {
  /// One look at everything. `pthreads`: each thread's own handle, its pthread_t.
  func picture(
    pthreads: [KernelThreadID: UInt64], milliseconds: UInt64 = 1000
  ) -> ConcurrencyPicture {
    let found = tasks(milliseconds: milliseconds)
    var running: [KernelThreadID: RunningTask] = [:]
    for (tid, pthread) in pthreads { running[tid] = self.running(pthread: pthread) }
    var actors: [UInt64: SwiftActor] = [:]
    var groups: [UInt64: SwiftTaskGroup] = [:]
    for task in found.tasks {
      switch task.wait {
      case .executor(.actor(let address)) where actors[address] == nil:
        actors[address] = actor(address)
      case .taskGroup(let address) where groups[address] == nil:
        groups[address] = taskGroup(address)
      default: break
      }
    }
    return ConcurrencyPicture(
      tasks: found.tasks.filter { !$0.isHelper }, isCut: found.isCut, running: running,
      actors: actors, groups: groups, pools: pools())
  }
}
