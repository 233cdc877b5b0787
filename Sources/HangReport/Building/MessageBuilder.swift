public import WaitForGraph

/// Puts a deadlock into one sentence that names the threads, the resources and what waits for what.
public struct MessageBuilder: Sendable {
  private let threads: [Thread]
  private let resources: [Resource]
  private let process: WatchedProcess?

  /// The lists of the report that the sentence is for; the process tells which thread is the main
  /// one.
  public init(threads: [Thread], resources: [Resource], process: WatchedProcess? = nil) {
    self.threads = threads
    self.resources = resources
    self.process = process
  }

  /// `"a" waits for mutex 0x1, which "b" holds; "b" waits for mutex 0x2, which "a" holds`; long
  /// cycles lose their middle.
  public func message(for deadlock: Deadlock) -> String {
    let names = Names(threads: threads, resources: resources, process: process)
    let words = CycleWords(
      names: names, edges: deadlock.reportEdges, isForsaken: deadlock.cause == .forsaken)
    return Self.message(words, victims: deadlock.victims)
  }

  static func message(_ words: CycleWords, victims: [ThreadID]) -> String {
    var clauses: [String] = []
    let elided = Elision(words.edges.count)
    for index in words.edges.indices {
      if index == elided.hidden.lowerBound, !elided.hidden.isEmpty {
        clauses.append("\(elided.hidden.count) more threads each wait for the next")
      }
      if !elided.hidden.contains(index) { clauses.append(words.clause(words.edges[index])) }
    }
    if !victims.isEmpty { clauses.append(words.behind(victims)) }
    return clauses.joined(separator: "; ")
  }
}

extension Deadlock {
  /// The graph's edges, as the report writes them.
  var reportEdges: [Finding.Edge] {
    edges.map {
      Finding.Edge(thread: $0.thread, waitsFor: $0.resource, mode: $0.mode, ownedBy: $0.owner)
    }
  }
}

/// Which members of a long cycle are not shown one by one.
struct Elision {
  static let most = 8
  var hidden: Range<Int>
  init(_ count: Int) {
    hidden = count > Self.most ? (Self.most / 2)..<(count - Self.most / 2 + 1) : count..<count
  }
}
