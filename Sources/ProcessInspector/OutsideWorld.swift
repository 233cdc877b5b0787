internal import CHangcheck

/// Whether anything but the threads themselves could still set a process in motion: a time-out, a
/// timer, a descriptor that somebody watches, a child, a signal's handler.
///
/// What cannot be found out counts as something that could. It reads /proc and the process's memory
/// and stops nobody: two looks that agree, by threads that have not run in between, are evidence.
/// A look at a thread costs some 10 µs; confined to one thread; one object serves one look.
///
/// It cannot see: what a handler would do, who else holds the other end of a pipe, whether a
/// handler of a crash's signal (SIGSEGV, SIGQUIT and the like) is the runtime's or the program's.
package final class OutsideWorld {
  /// What does not count, since it is known to be ours.
  package struct Exceptions: Sendable {
    package var threads: Set<KernelThreadID> = []
    package var signals: Set<Int32> = []
    package var children: Set<ProcessID> = []
    package init(
      threads: Set<KernelThreadID> = [], signals: Set<Int32> = [], children: Set<ProcessID> = []
    ) {
      self.threads = threads
      self.signals = signals
      self.children = children
    }
  }

  /// What libdispatch's own memory says of its timers.
  package enum DispatchTimers: Equatable, Sendable {
    case unknown
    /// The program's, each in words ("a timer due in 3 s"); libdispatch's own are left out.
    case known([String])
  }

  /// All threads and all openings, from one pass.
  package struct Survey: Sendable {
    package var standings: [KernelThreadID: ThreadStanding] = [:]
    package var openings: [String] = []
    package var isClosed: Bool { openings.isEmpty }
  }

  let files: ProcessFiles
  let memory: ProcessMemory
  let proc: ProcReader
  private let askTimers: () -> DispatchTimers
  private(set) lazy var ranges = MemoryRanges(proc)
  let dispatch: DispatchMemory?
  /// The whole process was stopped by a signal or a debugger: its threads are taken for what they were
  /// in when that happened.
  var isStopped = false
  private(set) lazy var timers = askTimers()
  private(set) lazy var program = ExecutableFacts(proc)
  /// The program brings Swift's runtime along, and is its own libdispatch and Foundation.
  private(set) lazy var hasStaticSwift = !ranges.hasSwift && program.hasSwift()

  /// The folder of its descriptors: the first thread's is empty once that has ended.
  private(set) lazy var descriptors = {
    let first = KernelThreadID(files.pid.rawValue)
    guard proc.state(first) == UInt8(ascii: "Z"), let other = files.threads().last else {
      return "fd"
    }
    return "task/\(other.rawValue)/fd"
  }()

  package init(
    files: ProcessFiles, memory: ProcessMemory,
    timers: @escaping () -> DispatchTimers = { .unknown }
  ) {
    self.files = files
    self.memory = memory
    dispatch = nil
    askTimers = timers
    proc = ProcReader(files)
  }

  /// With libdispatch's memory, which tells its timers, its idle threads and its queued work.
  init(files: ProcessFiles, memory: ProcessMemory, dispatch: DispatchMemory?) {
    self.files = files
    self.memory = memory
    self.dispatch = dispatch
    askTimers = { dispatch?.timersInWords() ?? .unknown }
    proc = ProcReader(files)
  }

  /// What from outside, or by the clock, could still act, each as words for a report; empty where
  /// nothing can. Ends at `limit`.
  package func openings(ignoring exceptions: Exceptions = Exceptions(), limit: Int = .max)
    -> [String]
  {
    survey(ignoring: exceptions, limit: limit).openings
  }

  /// The first of some threads that can go on without another thread of this process. Most processes
  /// that live have one, so that this ends soon.
  package func firstThatCanMove(
    among threads: [KernelThreadID], ignoring exceptions: Exceptions = Exceptions()
  ) -> (KernelThreadID, ThreadStanding)? {
    for tid in threads where !exceptions.threads.contains(tid) {
      let standing = standing(tid)
      if standing.canMove { return (tid, standing) }
    }
    return nil
  }

  /// Looks at everything, and ends at the `limit`th opening.
  package func survey(ignoring exceptions: Exceptions = Exceptions(), limit: Int = .max) -> Survey {
    var survey = Survey()
    func add(_ words: [String]) -> Bool {
      survey.openings += words
      return survey.openings.count >= limit
    }
    guard program.isSupported else {
      survey.openings = ["its system calls cannot be read here"]
      return survey
    }
    // What a core has nothing of makes a finding a possible one.
    let isCore = files.core != nil
    // Threads come first: what they set up before they stood still is then there to be seen. Where
    // few openings are enough, the cheap ones are also asked before.
    if !isCore, limit != .max && signals(exceptions).count + posixTimers().count >= limit {
      survey.openings = signals(exceptions) + posixTimers()
      return survey
    }
    let threads = files.threads()
    if threads.isEmpty && add(["its threads cannot be listed"]) { return survey }
    for tid in threads where !exceptions.threads.contains(tid) {
      let standing = standing(tid)
      survey.standings[tid] = standing
      if standing.canMove, add([words(tid, standing)]) { return survey }
    }
    if isCore {
      _ = add(queuedWork(threads.count))
      return survey
    }
    // One that was seen at rest may have started another before, and after the list was made.
    if !Set(files.threads()).isSubset(of: threads), add(["a thread has just begun"]) {
      return survey
    }
    if add(signals(exceptions)) || add(posixTimers()) || add(machinery())
      || add(queuedWork(threads.count))
    {
      return survey
    }
    _ = add(children(threads, exceptions))
    return survey
  }

  private func words(_ tid: KernelThreadID, _ standing: ThreadStanding) -> String {
    let who = "thread \(tid.rawValue)"
    switch standing.kind {
    case .running: return "\(who) runs"
    case .timed: return "\(who) waits with a time-out"
    case .blocked: return "\(who) waits on memory that other processes may share"
    case .outside(let what): return "\(who): \(what)"
    case .idle(let what): return "\(who) is \(what)"
    case .unknown: return "\(who): what it does is not known"
    }
  }
}
