/// Which thread waits for which, as one snapshot shows it.
///
/// Every thread that blocks a wait must give way before the wait ends, so each cycle is a deadlock.
/// Memory and time are linear in the waits and holds: the nodes are threads and 'resource wanted in
/// a mode', so a thousand waiters behind a thousand readers are two thousand arcs and not a
/// million.
///
/// Waits on conditions and barriers have no owner here, and timed waits end by themselves: neither
/// has arcs.
public struct WaitForGraph: Sendable {
  /// Node numbers: `0 ..< threads.count` are threads by ascending id, the rest are wanted
  /// resources.
  var arcs: [[Int]] = []
  /// The threads in order of id, without duplicates; a node's number is its index.
  var threads: [Snapshot.Thread] = []
  var nodeOfThread: [ThreadID: Int] = [:]
  /// What each node past the threads stands for.
  var wanted: [Want] = []

  struct Want: Hashable, Sendable {
    var resource: ResourceID
    var mode: Mode
    /// The waiter whose own hold does not count: it holds a reentrant lock.
    var except: ThreadID?
  }

  public init(_ snapshot: Snapshot) {
    threads = snapshot.threads.sorted { $0.id < $1.id }
    for (node, thread) in threads.enumerated() where nodeOfThread[thread.id] == nil {
      nodeOfThread[thread.id] = node
    }
    let lines = Queues(threads: threads)
    var resources: [ResourceID: Snapshot.Resource] = [:]
    for resource in snapshot.resources { resources[resource.id] = resource }
    arcs = Array(repeating: [], count: threads.count)

    var nodeOfWant: [Want: Int] = [:]
    for node in threads.indices {
      let thread = threads[node]
      guard nodeOfThread[thread.id] == node, let wait = thread.wait, thread.isAlive, !wait.isTimed
      else { continue }
      let resource = resources[wait.resource]
      let want = Want(
        resource: wait.resource, mode: wait.mode,
        except: Self.ownHoldCounts(resource) || !lines.holds(node, wait.resource)
          ? nil : thread.id)
      if let known = nodeOfWant[want] {
        arcs[node] = [known]
        continue
      }
      let blockers: [Int]
      switch resource?.kind {
      case .condition?, .barrier?: blockers = []
      case .thread?: blockers = joined(resource?.thread)
      default:
        blockers = lines.blockers(of: wait).filter { threads[$0].id != want.except }
      }
      nodeOfWant[want] = arcs.count
      arcs[node] = [arcs.count]
      wanted.append(want)
      arcs.append(blockers)
    }
  }

  /// An unlisted resource may be reentrant for all that is known: its holder is no proof against
  /// itself.
  private static func ownHoldCounts(_ resource: Snapshot.Resource?) -> Bool {
    guard let resource else { return false }
    return resource.kind == .rwlock || !resource.isReentrant
  }

  /// A join of a thread that has ended is about to return.
  private func joined(_ thread: ThreadID?) -> [Int] {
    guard let thread, let node = nodeOfThread[thread], threads[node].isAlive else { return [] }
    return [node]
  }
}

extension WaitForGraph {
  /// What the thread waits for in vain at this moment, one edge for each thread that blocks it, by
  /// ascending owner.
  public func edges(from thread: ThreadID) -> [Edge] {
    guard let node = nodeOfThread[thread], let wait = wait(of: thread) else { return [] }
    return blockers(of: node).map { edge(from: node, wait, to: $0) }
  }

  /// The thread's wait, unless it has ended or ends by itself.
  public func wait(of thread: ThreadID) -> Snapshot.Wait? {
    guard let node = nodeOfThread[thread], threads[node].isAlive, let wait = threads[node].wait
    else { return nil }
    return wait.isTimed ? nil : wait
  }

  /// Whether `thread` cannot go on before `owner` gives way.
  public func isBlocked(_ thread: ThreadID, by owner: ThreadID) -> Bool {
    guard let node = nodeOfThread[thread], let other = nodeOfThread[owner] else { return false }
    return blockers(of: node).contains(other)
  }

  func isAlive(_ thread: ThreadID) -> Bool {
    nodeOfThread[thread].map { threads[$0].isAlive } ?? false
  }

  func blockers(of node: Int) -> [Int] {
    arcs[node].first.map { arcs[$0] } ?? []
  }

  func edge(from node: Int, _ wait: Snapshot.Wait, to owner: Int) -> Edge {
    Edge(
      thread: threads[node].id, resource: wait.resource, mode: wait.mode, owner: threads[owner].id,
      episode: wait.episode)
  }
}

/// Who holds each resource, and which writers stand before it.
private struct Queues {
  private var exclusiveHolders: [ResourceID: [Int]] = [:]
  private var holders: [ResourceID: [Int]] = [:]
  private var pendingWriters: [ResourceID: [Int]] = [:]
  private let threads: [Snapshot.Thread]

  /// Nodes are appended in ascending order, so that every list is sorted.
  init(threads: [Snapshot.Thread]) {
    self.threads = threads
    for (node, thread) in threads.enumerated() {
      for hold in thread.holds {
        Self.append(node, to: &holders[hold.resource, default: []])
        if hold.mode == .exclusive {
          Self.append(node, to: &exclusiveHolders[hold.resource, default: []])
        }
      }
      if let wait = thread.wait, thread.isAlive, !wait.isTimed, wait.mode == .exclusive {
        pendingWriters[wait.resource, default: []].append(node)
      }
    }
  }

  /// A lock held twice is one hold here.
  private static func append(_ node: Int, to list: inout [Int]) {
    if list.last != node { list.append(node) }
  }

  func holds(_ node: Int, _ resource: ResourceID) -> Bool {
    threads[node].holds.contains { $0.resource == resource }
  }

  /// A reader that waits although nobody writes is kept out by the writers before it.
  func blockers(of wait: Snapshot.Wait) -> [Int] {
    switch wait.mode {
    case .exclusive: holders[wait.resource] ?? []
    case .shared: exclusiveHolders[wait.resource] ?? pendingWriters[wait.resource] ?? []
    }
  }
}
