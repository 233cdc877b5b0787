public import WaitForGraph

/// Makes the finding of a deadlock that was seen: message, cycle, evidence, fingerprint.
public struct DeadlockFinding: Sendable {
  private let threads: [Thread]
  private let resources: [Resource]
  private let process: WatchedProcess?
  private let history: [ResourceID: [ResourceEvent]]

  /// The lists of the report that the finding is for. A thread that has ended may be among them,
  /// with what it held. `history`: what was done to the resources that have no owners.
  public init(
    threads: [Thread], resources: [Resource], process: WatchedProcess? = nil,
    history: [ResourceID: [ResourceEvent]] = [:]
  ) {
    self.threads = threads
    self.resources = resources
    self.process = process
    self.history = history
  }

  /// What is not known of a deadlock that rests on a guess at who would end its waits.
  public func doubt(_ deadlock: Deadlock) -> String {
    let names = Names(threads: threads, resources: resources, process: process)
    let words = CycleWords(names: names, edges: deadlock.reportEdges)
    let edge = words.edges.first { words.relation($0) == .wouldGive } ?? words.edges[0]
    return "whether somebody else would \(words.end(edge)) \(names.resource(edge.waitsFor)) too,"
      + " which is why the deadlock is called possible"
  }

  /// The finding for a deadlock whose second look has confirmed it. `isGuess`: it rests on a guess at
  /// who would end its waits.
  public func finding(
    for deadlock: Deadlock, isGuess: Bool = false, time: String = UTCTime.now()
  ) -> Finding {
    let names = Names(threads: threads, resources: resources, process: process)
    let words = CycleWords(
      names: names, edges: deadlock.reportEdges, isForsaken: deadlock.cause == .forsaken)
    var evidence: [Finding.Evidence] = []
    var steps: [Fingerprint.Step] = []
    for edge in words.edges {
      let taken = words.hold(edge.ownedBy, edge.waitsFor)?.stack ?? []
      let waits = words.wait(edge)?.stack ?? []
      if !taken.isEmpty {
        evidence.append(
          .init(label: words.tookLabel(edge), thread: edge.ownedBy, stack: taken))
      }
      if !waits.isEmpty {
        evidence.append(.init(label: words.waitsLabel(edge), thread: edge.thread, stack: waits))
      }
      if ![.holds(nil), .isJoined].contains(words.relation(edge)) {
        for event in history[edge.waitsFor] ?? [] {
          let label = event.label(edge.waitsFor, names)
          if !evidence.contains(where: { $0.label == label && $0.stack == event.stack }) {
            evidence.append(.init(label: label, thread: nil, stack: event.stack))
          }
        }
      }
      steps.append(
        .init(
          resource: names.resources[edge.waitsFor]?.kind ?? .mutex, mode: edge.mode, wait: waits,
          acquisition: taken))
    }
    var seen: Set<ResourceID> = []
    let resources = words.edges.map(\.waitsFor).filter { seen.insert($0).inserted }
    return Finding(
      kind: .deadlock, severity: isGuess ? .warning : .error,
      certainty: isGuess ? .possible : .certain,
      message: MessageBuilder.message(words, victims: deadlock.victims), cycle: words.edges,
      threads: words.edges.map(\.thread) + deadlock.victims, resources: resources,
      evidence: evidence, fingerprint: Fingerprint.cycle(.deadlock, steps), time: time)
  }
}
