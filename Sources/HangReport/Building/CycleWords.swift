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
  }

  let names: Names
  let edges: [Finding.Edge]

  func relation(_ edge: Finding.Edge) -> Relation {
    if names.resources[edge.waitsFor]?.kind == .thread { return .isJoined }
    // The only edge of a cycle comes back to its own thread, unless nobody is left to come back
    // from.
    if isOpen, edge.ownedBy != nil { return .isGone }
    let hold = hold(edge.ownedBy, edge.waitsFor)
    if hold == nil, let owner = edge.ownedBy.flatMap({ names.threads[$0] }),
      owner.waitsFor?.resource == edge.waitsFor
    {
      return .standsBefore
    }
    return .holds(hold?.mode)
  }

  /// One edge that does not close: its owner is gone, or not known.
  var isOpen: Bool { edges.count == 1 && edges[0].ownedBy != edges[0].thread }

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
    edges.count == 1 && !isOpen && edges[0].mode == .exclusive
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
    return switch relation(edge) {
    case .isJoined where itself: "\(waiter) waits for its own end"
    case .isJoined: "\(waiter) waits for \(owner) to end"
    case .holds where itself: "\(start)\(which) it holds itself\(use(edge))"
    case .holds: "\(start)\(which) \(owner) holds\(use(edge))"
    case .standsBefore: "\(start) behind \(owner), which waits to write it"
    case .isGone: "\(start)\(which) is held by \(gone(edge.ownedBy))"
    }
  }

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
    "\(names.short(edge.ownedBy)) took \(names.resource(edge.waitsFor))\(use(edge)) here"
  }

  func waitsLabel(_ edge: Finding.Edge) -> String {
    relation(edge) == .isJoined
      ? "\(clause(edge)) here"
      : "\(names.short(edge.thread)) \(waits(edge, for: names.resource(edge.waitsFor))) here"
  }

  /// `"late" waits behind them`; of several only whether the main thread is among them.
  func behind(_ victims: [ThreadID]) -> String {
    let them = edges.count == 1 ? "it" : "them"
    guard victims.count != 1 else { return "\(names.short(victims[0])) waits behind \(them)" }
    let main = victims.first { names.threads[$0].map(names.isMain) ?? false }
    let among = main.map { ", \(names.short($0)) among them," } ?? ""
    return victims.isEmpty ? "" : "\(victims.count) more threads\(among) wait behind \(them)"
  }
}
