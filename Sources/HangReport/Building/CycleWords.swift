internal import WaitForGraph

/// Says in words what stands between the threads of a cycle.
struct CycleWords {
  /// Why the owner of an edge is in the way.
  enum Relation: Equatable {
    case holds(Mode?)
    /// A writer that waits itself and lets no new reader pass.
    case standsBefore
    case isJoined
    /// It took the resource and no longer runs.
    case isGone
    /// It has to come to its end: a task, an operation, or the thread that runs one.
    case finishes
    /// It would signal, leave or resume what is waited for.
    case wouldGive
    /// It holds the resource and rests, with nothing left that could stir it.
    case rests
    /// Nobody is known who could end the wait.
    case nobody
  }

  let names: Names
  let edges: [Finding.Edge]
  /// What is waited for is out of the reach of all others, who go on.
  var isForsaken = false

  static let forsaken = "nobody else has a reference to any more"

  func relation(_ edge: Finding.Edge) -> Relation {
    guard let owner = edge.ownedBy else { return .nobody }
    let kind = names.resources[edge.waitsFor]?.kind
    switch kind {
    case .thread: return .isJoined
    case .task, .operation, .workItem, .process: return .finishes
    case .pipe, .semaphore, .condition, .continuation, .group, .futex, .barrier, .taskGroup:
      return .wouldGive
    default: break
    }
    // The only edge of a cycle comes back to its own thread, unless nobody is left to come back
    // from.
    if isOpen {
      return names.threads[owner]?.stack.isEmpty == false ? .rests : .isGone
    }
    let hold = hold(owner, edge.waitsFor)
    if hold == nil, names.threads[owner]?.waitsFor?.resource == edge.waitsFor {
      return .standsBefore
    }
    return .holds(hold?.mode)
  }

  /// Edges that do not close: the owner is gone, or nobody is left to wake them.
  var isOpen: Bool {
    edges.contains { $0.ownedBy == nil }
      || (edges.count == 1 && edges[0].ownedBy != edges[0].thread)
  }

  /// Waits that nobody is left to end.
  var isStandstill: Bool { edges.contains { $0.ownedBy == nil } }

  /// What being the owner of a resource means: `holds`, `runs on`, `runs`.
  func holds(_ resource: ResourceID) -> String {
    switch names.resources[resource]?.kind {
    case .queue, .actor, .operationQueue, .pool: "runs on"
    case .once: "runs"
    default: "holds"
    }
  }

  /// What ends a wait for it: `would signal`, `would leave`.
  func gives(_ resource: ResourceID) -> String {
    switch names.resources[resource]?.kind {
    case .group: "would leave"
    case .continuation: "would resume"
    case .taskGroup: "is to finish in"
    case .pipe: names.isFull(resource) ? "would read" : "would write"
    case .barrier: "would reach"
    case .futex: "would wake"
    default: "would signal"
    }
  }

  func hold(_ thread: ThreadID?, _ resource: ResourceID) -> Thread.Hold? {
    thread.flatMap { names.threads[$0] }?.holds.first { $0.resource == resource }
  }

  func wait(_ edge: Finding.Edge) -> Thread.Wait? {
    names.threads[edge.thread]?.waitsFor.flatMap { $0.resource == edge.waitsFor ? $0 : nil }
  }

  /// The edge before: whoever waits for this edge's thread.
  func edge(before index: Int) -> Finding.Edge { edges[(index + edges.count - 1) % edges.count] }

  func isReadWrite(_ resource: ResourceID) -> Bool {
    names.resources[resource]?.kind == .rwlock
  }

  var isUpgrade: Bool {
    edges.count == 1 && !isOpen && edges[0].mode == .exclusive && isReadWrite(edges[0].waitsFor)
      && relation(edges[0]) == .holds(.shared)
  }

  /// `waits for …`, or what it wants to do with a read-write lock.
  func waits(_ edge: Finding.Edge, for what: String) -> String {
    guard isReadWrite(edge.waitsFor) else { return "waits for \(what)" }
    return edge.mode == .shared ? "waits to read \(what)" : "waits to write \(what)"
  }

  /// `"a" waits for mutex 0x1, which "b" holds`; with an article of its own: `… a mutex that "b"
  /// holds`.
  func clause(_ edge: Finding.Edge, what: String? = nil) -> String {
    let (waiter, owner) = (names.short(edge.thread), names.short(edge.ownedBy))
    let itself = edge.thread == edge.ownedBy
    let which = what == nil ? ", which" : " that"
    let start = "\(waiter) \(waits(edge, for: what ?? names.resource(edge.waitsFor)))"
    let holds = holds(edge.waitsFor)
    return switch relation(edge) {
    case .isJoined where itself: "\(waiter) waits for its own end"
    case .isJoined: "\(waiter) waits for \(owner) to end"
    case .holds where itself: "\(start)\(which) it \(holds) itself\(use(edge))"
    case .holds: "\(start)\(which) \(owner) \(holds)\(use(edge))"
    case .standsBefore where itself: "\(start) behind itself"
    case .standsBefore:
      "\(start) behind \(owner), which waits to \(isQueue(edge) ? "run there alone" : "write it")"
    case .isGone: "\(start)\(which) is held by \(gone(edge.ownedBy))"
    case .finishes where itself: "\(waiter) waits for its own end"
    case .finishes where names.resources[edge.waitsFor]?.kind == .process:
      "\(start)\(which) has not ended"
    case .finishes: "\(start)\(which) \(isRunner(edge) ? "\(owner) runs" : "has not finished")"
    case .wouldGive where itself: "\(start)\(which) only it \(gives(edge.waitsFor)) itself"
    case .wouldGive: "\(start)\(which) \(owner) \(gives(edge.waitsFor))"
    case .rests: "\(start)\(which) \(owner) \(holds) while it rests"
    case .nobody where isForsaken: "\(start)\(which) \(Self.forsaken)"
    case .nobody: "\(start)\(which) nobody is left to \(end(edge))"
    }
  }

  /// What nobody is left to do: `signal`, `leave`, `resume`.
  func end(_ edge: Finding.Edge) -> String {
    switch names.resources[edge.waitsFor]?.kind {
    case .semaphore, .condition: "signal"
    case .group: "leave"
    case .continuation, .queue: "resume"
    case .barrier: "reach"
    case .futex: "wake"
    case .operation: "finish"
    case .operationQueue: "resume"
    case .workItem: "run"
    case .pipe: names.isFull(edge.waitsFor) ? "read" : "write"
    case .process: "end"
    default: "give"
    }
  }

  /// The owner is a thread that runs the task or operation, not that itself.
  private func isRunner(_ edge: Finding.Edge) -> Bool {
    edge.ownedBy.flatMap { names.threads[$0] }.map { $0.kind ?? .thread == .thread } ?? false
  }

  func isQueue(_ edge: Finding.Edge) -> Bool { names.resources[edge.waitsFor]?.kind == .queue }

  /// An owner that ended, or that stayed behind when the process was forked: a report cannot tell.
  func gone(_ owner: ThreadID?) -> String {
    let nowhere = "thread that no longer exists in this process"
    guard let owner, names.threads[owner] != nil else { return "a \(nowhere)" }
    return "\(names.short(owner)), a \(nowhere)"
  }

  /// ` for reading` where the owner of a read-write lock holds it so.
  func use(_ edge: Finding.Edge) -> String {
    guard isReadWrite(edge.waitsFor), case .holds(let mode?) = relation(edge) else { return "" }
    return Self.use(mode)
  }

  static func use(_ mode: Mode) -> String { mode == .shared ? " for reading" : " for writing" }

  /// The labels of the evidence; they also find it again.
  func tookLabel(_ edge: Finding.Edge) -> String {
    let took =
      switch names.resources[edge.waitsFor]?.kind {
      case .queue: "got onto"
      case .once: "began"
      default: "took"
      }
    return "\(names.short(edge.ownedBy)) \(took) \(names.resource(edge.waitsFor))\(use(edge)) here"
  }

  func waitsLabel(_ edge: Finding.Edge) -> String {
    names.threads[edge.thread]?.kind == .block
      ? "\(names.short(edge.thread)) will run this"
      : relation(edge) == .isJoined
        ? "\(clause(edge)) here"
        : "\(names.short(edge.thread)) \(waits(edge, for: names.resource(edge.waitsFor))) here"
  }

  /// `"late" waits behind them`; of several only whether the main thread is among them.
  func behind(_ victims: [ThreadID]) -> String {
    let them = edges.count == 1 ? "it" : "them"
    guard victims.count != 1 else { return "\(names.short(victims[0])) waits behind \(them)" }
    let main = victims.first { names.threads[$0].map(names.isMain) ?? false }
    let among = main.map { ", \(names.short($0)) among them," } ?? ""
    let areThreads = victims.allSatisfy { names.threads[$0]?.kind ?? .thread == .thread }
    let more = areThreads ? "more threads" : "more"
    return victims.isEmpty ? "" : "\(victims.count) \(more)\(among) wait behind \(them)"
  }
}
