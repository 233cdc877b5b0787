/// Finds the blocked threads that nobody can wake: what they wait for is referred to by nothing but
/// themselves.
///
/// Pure: memory comes in as two questions. It is the collector's view of a deadlock: threads that can
/// act, variables, and whatever is unknown are roots; a blocked thread becomes one when something
/// that is reached could wake it. What no root reaches is out of everybody's hands for good.
struct HolderSearch {
  /// A thread that goes on only when another one acts; or work that no thread runs yet.
  struct Blocked {
    enum Wait {
      /// For an object without an owner: whoever has a reference to it may end the wait.
      case object(UInt64)
      /// For what other threads hold: all of them must act.
      case threads([Int])
    }
    var thread: Int
    var wait: Wait
    /// Its stack as far as it is in use: who points into it may reach what lies there. Of work, the
    /// object that it is: what that refers to is reached only when the work is done.
    var frames: Range<UInt64>
    /// Of work: who refers to it from elsewhere may have more in mind than its turn; nil where nobody
    /// could do anything with it.
    var list: [Range<UInt64>]?
    var isWork = false
  }

  /// What an address belongs to.
  enum Place: Equatable {
    /// An object of its own, as far as it reaches.
    case object(Range<UInt64>)
    /// What is one blocked thread's own.
    case thread(Int)
    /// A variable, another thread, memory of which nothing is known.
    case outside
    /// Memory that nobody reads before it is written.
    case unused
  }

  struct Reference {
    /// Where it lies.
    var address: UInt64
    /// What it points at.
    var value: UInt64
  }

  /// More objects, or references, than this: nothing is proved.
  var mostObjects = 4000

  /// The threads, of those that are blocked, that can never go on; nil where the search was given up.
  /// `place` says what an address belongs to. `references` finds all words that point into any of some
  /// ranges, which are sorted by where they begin and may overlap; nil when there are too many.
  func stuck(
    _ blocked: [Blocked], place: (UInt64) -> Place,
    references: ([Range<UInt64>]) -> [Reference]?
  ) -> Set<Int>? {
    var graph = Graph()
    var lists: [Int: [Range<UInt64>]] = [:]
    for one in blocked {
      let node = graph.add(one.frames, thread: one.thread)
      if one.isWork { lists[node] = one.list ?? [0..<UInt64.max] }
    }
    func isListed(_ reference: Reference, _ node: Int) -> Bool {
      lists[node]?.contains { $0.contains(reference.address) } ?? false
    }
    var wanted: [Int: Int] = [:]
    for one in blocked {
      guard case .object(let address) = one.wait else { continue }
      switch place(address) {
      case .object(let range): wanted[one.thread] = graph.add(range)
      case .thread(let thread): wanted[one.thread] = graph.threads[thread]
      case .outside, .unused: break
      }
    }
    var open = Array(graph.nodes.indices)
    while true {
      graph.settle(blocked, wanted)
      // Who refers to what is reached already is of no interest.
      open.removeAll { graph.nodes[$0].isReached }
      if open.isEmpty { break }
      open.sort { graph.nodes[$0].range.lowerBound < graph.nodes[$1].range.lowerBound }
      let ranges = open.map { graph.nodes[$0].range }
      guard let found = references(ranges) else { return nil }
      var next: [Int] = []
      for reference in found {
        let targets = Self.indices(of: reference.value, in: ranges).map { open[$0] }
          .filter { !isListed(reference, $0) }
        switch place(reference.address) {
        case .unused: break
        case .outside: for target in targets { graph.nodes[target].isReached = true }
        case .thread(let thread):
          guard let holder = graph.threads[thread] else { return nil }
          for target in targets where target != holder {
            graph.nodes[target].holders.insert(holder)
          }
        case .object(let range):
          let known = graph.nodes.count
          let holder = graph.add(range)
          if holder == known { next.append(holder) }
          for target in targets where target != holder {
            graph.nodes[target].holders.insert(holder)
          }
        }
      }
      guard graph.nodes.count <= mostObjects else { return nil }
      open = next
    }
    graph.settle(blocked, wanted)
    return Set(blocked.map(\.thread)).subtracting(graph.live)
  }

  /// Which of some ranges an address lies in; of those that overlap only neighbours do.
  private static func indices(of address: UInt64, in ranges: [Range<UInt64>]) -> [Int] {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].lowerBound <= address { low = middle + 1 } else { high = middle }
    }
    return (max(0, low - 2)..<low).filter { ranges[$0].contains(address) }
  }

  private struct Graph {
    struct Node {
      var range: Range<UInt64>
      var holders: Set<Int> = []
      var isReached = false
    }
    private(set) var threads: [Int: Int] = [:]
    private var numbers: [UInt64: Int] = [:]
    var nodes: [Node] = []
    private(set) var live: Set<Int> = []

    @discardableResult
    mutating func add(_ range: Range<UInt64>) -> Int {
      if let known = numbers[range.lowerBound] { return known }
      numbers[range.lowerBound] = nodes.count
      nodes.append(Node(range: range))
      return nodes.count - 1
    }

    mutating func add(_ frames: Range<UInt64>, thread: Int) -> Int {
      let node = add(frames)
      threads[thread] = node
      return node
    }

    /// Spreads what is reached: to what it refers to, and to the threads that it could wake.
    mutating func settle(_ blocked: [Blocked], _ wanted: [Int: Int]) {
      let all = Set(blocked.map(\.thread))
      var changes = true
      while changes {
        changes = false
        for one in blocked where !live.contains(one.thread) {
          let canGoOn =
            switch one.wait {
            case .object: wanted[one.thread].map { nodes[$0].isReached } ?? true
            case .threads(let owners):
              owners.allSatisfy { !all.contains($0) || live.contains($0) }
            }
          guard canGoOn else { continue }
          live.insert(one.thread)
          if let frames = threads[one.thread] { nodes[frames].isReached = true }
          changes = true
        }
        for index in nodes.indices
        where !nodes[index].isReached
          && nodes[index].holders.contains(where: { nodes[$0].isReached })
        {
          nodes[index].isReached = true
          changes = true
        }
      }
    }
  }
}
