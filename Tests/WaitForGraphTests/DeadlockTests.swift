import Testing
import WaitForGraph

private let cycles = [
  Situation("1 holds a waits b; 2 holds b waits a", "1-b>2 2-a>1"),
  Situation("7 holds a waits b; 2 holds b waits a", "2-a>7 7-b>2"),
  Situation("1 holds a waits b; 2 holds b waits c; 3 holds c waits a", "1-b>2 2-c>3 3-a>1"),
  Situation("1 holds a waits a", "1-a>1"),
  Situation("1 holds a, waits a; 2 waits a; 3 holds x, waits a; 4 waits x", "1-a>1 | 2 3 4"),
  Situation("1 holds r waits s; 2 holds s waits r", "1-s>2 2-r>1"),
  // Disjoint circles, and one that another waits behind.
  Situation(
    "1 holds a waits b; 2 holds b waits a; 3 holds d waits e; 4 holds e waits d",
    "1-b>2 2-a>1", "3-e>4 4-d>3"),
  Situation(
    "1 holds a waits b; 2 holds b waits a; 5 waits a; 6 holds f waits b; 7 waits f; 8 holds g",
    "1-b>2 2-a>1 | 5 6 7"),
  // Joins.
  Situation("1 joins 2; 2 joins 1", "1-j2>2 2-j1>1"),
  Situation("1 joins 1", "1-j1>1"),
  Situation("1 holds a joins 2; 2 waits a", "1-j2>2 2-a>1"),
  Situation("1 holds w joins 2; 2 wantsRead w; 3 joins 2", "1-j2>2 2-w>1 | 3"),
]

private let readersAndWriters = [
  // An upgrade in place; two of them; beside another reader.
  Situation("1 reads w waits w", "1-w>1"),
  Situation("1 reads w reads w waits w", "1-w>1"),
  Situation("1 reads w waits w; 2 reads w waits w", "1-w>1 | 2"),
  Situation("1 reads w waits w; 2 reads w", "1-w>1"),
  Situation("1 holds w waits w", "1-w>1"),
  Situation("1 holds w wantsRead w", "1-w>1"),
  // Reading crosswise is fine; a writer in between is not.
  Situation("1 reads w wantsRead w2; 2 reads w2 wantsRead w"),
  Situation("1 reads w wantsRead w2; 2 holds w2 wantsRead w"),
  Situation("1 reads w waits w2; 2 reads w2 waits w", "1-w2>2 2-w>1"),
  Situation("1 holds w wantsRead w2; 2 holds w2 wantsRead w", "1-w2>2 2-w>1"),
  Situation("1 reads w wantsRead w; 2 waits w", "1-w>2 2-w>1"),
  Situation(
    "1 reads w wantsRead w2; 2 reads w2 wantsRead w; 3 waits w; 4 waits w2",
    "1-w2>4 2-w>3 3-w>1 4-w2>2".sortedAsCycle),
  Situation("1 reads w wantsRead w; 2 timed w"),
  Situation("1 reads w waits b; 2 waits w; 3 holds b wantsRead w", "1-b>3 3-w>2 2-w>1"),
  // One of several readers is enough to keep a writer out.
  Situation("1 reads w; 2 reads w waits a; 3 holds a waits w", "2-a>3 3-w>2"),
  // The shortest circle is told; the other threads of the knot wait with it.
  Situation(
    "1 reads w waits a; 2 holds a waits b; 3 holds b waits c; 4 holds c, reads w, waits d; "
      + "5 holds d waits w; 6 reads w waits d", "4-d>5 5-w>4 | 1 2 3 6"),
]

private let silent = [
  Situation(""),
  Situation("1 holds a; 2 waits a"),
  Situation("1 holds a waits b; 2 holds b timed a"),
  Situation("1 holds a timed a"),
  Situation("1 holds a waits b; 2 holds b waits c; 3 holds c timed a; 4 waits a"),
  Situation("1 holds r waits r"),
  Situation("1 holds a waits k; 2 waits a"),
  Situation("1 holds y waits y"),
  Situation("1 waits a; 2 waits a"),
  Situation("1 joins 2; 2 gone"),
  Situation("1 joins 9"),
  Situation("1 wantsRead w; 2 wantsRead w"),
  Situation("1 holds a; 2 gone waits a"),
]

private let gone = [
  Situation("1 waits a; 2 holds a gone", "1-a>2 gone"),
  Situation(
    "5 waits a; 4 waits a; 2 holds a gone; 3 holds x waits a; 6 waits x",
    "3-a>2 gone | 4 5 6"),
  Situation("1 timed a; 2 holds a gone"),
  Situation("1 wantsRead w; 2 reads w gone"),
  Situation("1 waits w; 2 reads w gone", "1-w>2 gone"),
  Situation("1 wantsRead w; 3 waits w; 2 reads w gone", "3-w>2 gone | 1"),
  Situation("1 waits a; 2 waits b; 3 holds a holds b gone", "1-a>3 gone", "2-b>3 gone"),
  Situation(
    "1 holds a waits b; 2 holds b waits a; 3 holds c gone; 4 waits c; 5 waits a",
    "1-b>2 2-a>1 | 5", "4-c>3 gone"),
]

extension String {
  /// The edges in the order of a circle that begins with the lowest thread.
  fileprivate var sortedAsCycle: String {
    var next: [Substring: Substring] = [:]
    let edges = split(separator: " ")
    for edge in edges { next[edge.prefix { $0 != "-" }] = edge }
    var circle = [edges[0]]
    while let edge = next[circle.last!.split(separator: ">").last!], edge != circle[0] {
      circle.append(edge)
    }
    return circle.joined(separator: " ")
  }
}

@Suite struct DeadlockTests {
  @Test("cycles", arguments: cycles + readersAndWriters + silent + gone)
  func cases(_ situation: Situation) {
    #expect(situation.found == situation.expected)
  }

  @Test("the order of the lists does not matter", arguments: cycles + readersAndWriters + gone)
  func deterministic(_ situation: Situation) {
    let straight = situation.snapshot
    let reversed = Snapshot(
      threads: straight.threads.reversed(), resources: straight.resources.reversed())
    #expect(WaitForGraph(straight).deadlocks() == WaitForGraph(reversed).deadlocks())
  }

  @Test("an unlisted resource proves nothing against its own holder")
  func unlisted() {
    let thread = Snapshot.Thread(
      id: ThreadID(1), wait: .init(resource: ResourceID(9), mode: .exclusive),
      holds: [.init(resource: ResourceID(9), mode: .exclusive)])
    #expect(WaitForGraph(Snapshot(threads: [thread], resources: [])).deadlocks().isEmpty)
  }

  static let open: [Situation] = [
    Situation("closed; 1 waits s", "1-s>-1 nobody"),
    Situation("1 waits s"),
    Situation("closed; 1 waits s; 2 waits k", "1-s>-1 2-k>-1 nobody"),
    // One that runs could signal; one that rests could not.
    Situation("closed; 1 waits s; 2 holds a"),
    Situation("closed; 1 waits s; 2 idle", "1-s>-1 nobody"),
    Situation("closed; 1 idle; 2 idle"),
    Situation("closed; 1 waits s; 2 timed s"),
    Situation("closed; 1 gone; 2 waits s", "2-s>-1 nobody"),
    // Behind what nobody wakes.
    Situation("closed; 1 holds a waits s; 2 waits a; 3 waits a", "1-s>-1 nobody | 2 3"),
    Situation(
      "closed; 1 waits s; 2 holds a waits b; 3 holds b waits a", "2-b>3 3-a>2 | 1"),
    // Whoever would end it is known: a circle.
    Situation("closed; 1 waits s holds a; 2 waits a wakes s", "1-s>2 2-a>1"),
    Situation("closed; 1 waits s wakes t; 2 waits t wakes s", "1-s>2 2-t>1"),
    Situation("1 waits s wakes t; 2 waits t wakes s"),
    // Nobody refers to it any more, while others live on.
    Situation("1 waits u; 2 waits s; 3 holds a", "1-u>-1 forsaken"),
    Situation("1 waits u holds a; 2 waits a; 3 waits u", "1-u>-1 3-u>-1 forsaken | 2"),
    Situation("1 timed u; 2 holds a"),
    Situation("closed; 1 waits u; 2 waits s", "1-u>-1 forsaken | 2"),
    // Who would signal is taken to be known; one of them is enough.
    Situation("1 waits o holds a; 2 wakes o waits a; 3 holds b", "1-o>2 2-a>1"),
    Situation("1 waits o holds a; 2 wakes o waits a; 3 wakes o"),
    Situation("1 waits o holds a; 2 wakes o waits a; 3 wakes o timed a"),
    Situation("1 waits o; 2 wakes o gone"),
    Situation("1 waits ou holds a; 2 wakes ou waits a; 3 holds b", "1-ou>2 2-a>1"),
    // A waker that is live ends it, for all that is known.
    Situation("closed; 1 waits s; 2 holds a wakes s"),
    // A pool needs one of its holders only.
    Situation("1 holds p waits a; 2 holds p holds a waits b; 3 holds b; 4 waits p"),
    Situation("1 holds p waits a; 2 holds p; 3 holds a waits p"),
    Situation(
      "1 holds p waits a; 2 holds p waits a; 3 holds a waits p", "1-a>3 3-p>1 | 2"),
    // An open group is also held by what must leave it.
    Situation("1 waits g holds q; 2 holds g waits q", "1-g>2 2-q>1"),
    Situation("closed; 1 waits g; 2 holds g"),
    // All of several waits must end.
    Situation(
      "1 waits a andWaits b; 2 holds a; 3 holds b waits c; 4 holds c waits b", "3-c>4 4-b>3 | 1"),
  ]

  @Test("waits without an owner, pools, and several waits at once", arguments: open)
  func openWaits(_ situation: Situation) {
    #expect(situation.found == situation.expected)
  }
}
