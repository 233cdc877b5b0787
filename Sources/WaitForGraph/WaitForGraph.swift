/// Which thread waits for which, as one snapshot shows it: an AND/OR graph.
///
/// A wait for a lock ends when all who hold it give way; one for a pool when any of its threads
/// does; one for an open resource, such as a semaphore, when anybody acts who can. So a thread is
/// live when it does not wait, or when what it waits for can be given by those that are live; all
/// others that wait are stuck, for good.
///
/// Memory and time are linear in the waits and holds: the nodes are threads and 'resource wanted in
/// a mode', so a thousand waiters behind a thousand readers are two thousand arcs and not a
/// million. Timed waits end by themselves and have no arcs.
public struct WaitForGraph: Sendable {
  /// Node numbers: `0 ..< threads.count` are threads by ascending id, the rest are wanted
  /// resources. Arcs lead from a thread to what it wants, and from there to who is in the way.
  var arcs: [[Int]] = []
  /// The threads in order of id, without duplicates; a node's number is its index.
  var threads: [Snapshot.Thread] = []
  var nodeOfThread: [ThreadID: Int] = [:]
  /// What each node past the threads stands for.
  var wanted: [Want] = []
  /// The nodes that can never go on; idle threads are not among them.
  private(set) var isStuck: [Bool] = []
  /// Nothing can act any more, but for those that are stuck.
  private(set) var standsStill = false

  struct Want: Hashable, Sendable {
    var resource: ResourceID
    var mode: Mode
    /// The waiter whose own hold does not count: it holds a reentrant lock.
    var except: ThreadID?
    var isOpen = false
    var needsOne = false
    var isForsaken = false
    var hasOnlyWakers = false
    /// Nodes of those that would end the wait, as far as is known.
    var wakers: [Int] = []
  }

  public init(_ snapshot: Snapshot) {
    for thread in snapshot.threads.sorted(by: { $0.id < $1.id })
    where nodeOfThread[thread.id] == nil {
      nodeOfThread[thread.id] = threads.count
      threads.append(thread)
    }
    let lines = Queues(threads: threads)
    var resources: [ResourceID: Snapshot.Resource] = [:]
    for resource in snapshot.resources { resources[resource.id] = resource }
    arcs = Array(repeating: [], count: threads.count)

    var nodeOfWant: [Want: Int] = [:]
    for node in threads.indices where threads[node].isAlive {
      for wait in threads[node].untimedWaits {
        let resource = resources[wait.resource]
        var want = Want(
          resource: wait.resource, mode: wait.mode,
          except: Self.ownHoldCounts(resource) || !lines.holds(node, wait.resource)
            ? nil : threads[node].id)
        if let known = nodeOfWant[want] {
          arcs[node].append(known)
          continue
        }
        nodeOfWant[want] = arcs.count
        arcs[node].append(arcs.count)
        arcs.append(blockers(want, resource, lines))
        want.isOpen = resource?.isOpen ?? false
        want.needsOne = resource?.needsOne ?? false
        want.isForsaken = resource?.isForsaken ?? false
        want.hasOnlyWakers = resource?.hasOnlyWakers ?? false
        want.wakers = (resource?.wakers ?? []).compactMap { nodeOfThread[$0] }.sorted()
        wanted.append(want)
      }
    }
    settle(hasOpenings: snapshot.hasOpenings)
  }

  private func blockers(
    _ want: Want, _ resource: Snapshot.Resource?, _ lines: Queues
  ) -> [Int] {
    if let resource, resource.hasOnlyWakers {
      return resource.wakers.compactMap { nodeOfThread[$0] }.filter { threads[$0].isAlive }.sorted()
    }
    return switch resource?.kind {
    // Nobody holds these, but some may be the only ones who could act.
    case .condition?, .barrier?: resource?.isOpen == false ? others(want, lines) : []
    case .thread?: joined(resource?.thread)
    default: others(want, lines)
    }
  }

  private func others(_ want: Want, _ lines: Queues) -> [Int] {
    lines.blockers(want.resource, want.mode).filter { threads[$0].id != want.except }
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

  /// Finds who is live, from those that do not wait; the others that wait are stuck.
  private mutating func settle(hasOpenings: Bool) {
    var isLive = Array(repeating: false, count: arcs.count)
    // What each node still lacks before it is live: a thread its wants, a want its blockers, and an
    // open one somebody who can act at all.
    var missing = arcs.map(\.count)
    var dependents: [[Int]] = Array(repeating: [], count: arcs.count)
    for (node, targets) in arcs.enumerated() {
      for target in targets { dependents[target].append(node) }
    }
    var anybody = hasOpenings
    var openNodes: [Int] = []
    var ready: [Int] = []
    for node in arcs.indices {
      if node < threads.count {
        guard threads[node].isAlive else { continue }
        // An idle one goes on when somebody gives it something to do.
        if threads[node].isIdle {
          missing[node] += 1
          openNodes.append(node)
        } else if missing[node] == 0 {
          ready.append(node)
        }
        continue
      }
      let want = wanted[node - threads.count]
      if want.needsOne { missing[node] = min(missing[node], 1) }
      if want.isForsaken {
        missing[node] += 1
        continue
      }
      if want.isOpen {
        missing[node] += 1
        openNodes.append(node)
      } else if missing[node] == 0 {
        ready.append(node)
      }
    }
    func supply(_ node: Int) {
      missing[node] -= 1
      if missing[node] == 0 { ready.append(node) }
    }
    if anybody { openNodes.forEach(supply) }
    while let node = ready.popLast() {
      guard !isLive[node] else { continue }
      isLive[node] = true
      if node < threads.count && !anybody {
        anybody = true
        openNodes.forEach(supply)
      }
      for dependent in dependents[node] where !isLive[dependent] { supply(dependent) }
    }
    standsStill = !anybody
    isStuck = arcs.indices.map { !isLive[$0] && ($0 >= threads.count || !arcs[$0].isEmpty) }
  }

  func edge(from node: Int, _ want: Want, to owner: Int?) -> Edge {
    Edge(
      thread: threads[node].id, resource: want.resource, mode: want.mode,
      owner: owner.map { threads[$0].id })
  }
}

extension Snapshot.Thread {
  /// What must be given before it goes on.
  var untimedWaits: [Snapshot.Wait] {
    ((wait.map { [$0] } ?? []) + moreWaits).filter { !$0.isTimed }
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
      guard thread.isAlive else { continue }
      for wait in thread.untimedWaits where wait.mode == .exclusive {
        Self.append(node, to: &pendingWriters[wait.resource, default: []])
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
  func blockers(_ resource: ResourceID, _ mode: Mode) -> [Int] {
    switch mode {
    case .exclusive: holders[resource] ?? []
    case .shared: exclusiveHolders[resource] ?? pendingWriters[resource] ?? []
    }
  }
}
