import WaitForGraph

/// Makes a `LockOrderRecord` as a recorder in a program would: a held stack and a vector clock for
/// each context, components used again when a context has ended, and epochs that advance only when
/// something is handed over.
///
/// A component is used again at once, or, where it is `exact`, only by a context that knows of the
/// former one's end.
struct OrderRecorder {
  /// What one hand-over tells its receiver.
  typealias Clock = [UInt32]

  private struct Context {
    var thread: Int
    var component: Int
    var start: UInt32
    var clock: Clock
    /// Its clock's place in the record, until it learns something.
    var clockIndex: Int?
    var held: [LockOrderRecord.Node] = []
    var heldNodes: [Int] = []
  }
  private struct NodeKey: Hashable {
    var parent: Int?
    var lock: Int
    var mode: Mode
    var isRequest: Bool
    var site: Int
  }
  private struct Meeting: Hashable {
    var context: Int
    var node: Int
    var epoch: UInt32
    var clock: Int?
  }

  private(set) var record = LockOrderRecord()
  private var contexts: [Int: Context] = [:]
  private var nodes: [NodeKey: Int] = [:]
  private var met: Set<Meeting> = []
  /// By component: the epoch that its present or next owner has.
  private var epochs: [UInt32] = []
  private var unused: [Int] = []
  private let isExact: Bool

  init(locks: [LockOrderRecord.Lock], exact: Bool = false) {
    record.locks = locks
    isExact = exact
  }

  mutating func start(_ context: Int, thread: Int? = nil, knowing clock: Clock = []) {
    let component: Int
    let old = unused.lastIndex { old in
      !isExact || old < clock.count && clock[old] == epochs[old] - 1
    }
    if let old {
      component = unused.remove(at: old)
    } else {
      component = epochs.count
      epochs.append(1)
    }
    contexts[context] = Context(
      thread: thread ?? context, component: component, start: epochs[component], clock: clock)
  }

  /// Ends a context, and says what a join learns.
  mutating func end(_ context: Int) -> Clock {
    let clock = handOver(context)
    if let ended = contexts.removeValue(forKey: context) { unused.append(ended.component) }
    return clock
  }

  /// What the receiver of a hand-over learns; what the context does next is not part of it.
  mutating func handOver(_ context: Int) -> Clock {
    guard let value = contexts[context] else { return [] }
    var clock = value.clock
    while clock.count <= value.component { clock.append(0) }
    clock[value.component] = epochs[value.component]
    epochs[value.component] += 1
    return clock
  }

  mutating func learn(_ context: Int, _ clock: Clock) {
    guard var value = contexts[context] else { return }
    let joined = joinOf(value.clock, clock)
    guard joined != value.clock else { return }
    value.clock = joined
    value.clockIndex = nil
    contexts[context] = value
  }

  /// The context is about to take a lock, and will get it.
  mutating func take(
    _ context: Int, _ lock: Int, _ mode: Mode = .exclusive, isRequest: Bool = true, site: Int
  ) {
    guard var value = contexts[context] else { return }
    let held = LockOrderRecord.Node(
      parent: value.heldNodes.last, lock: lock, mode: mode, isRequest: isRequest, site: site)
    let node = node(held)
    if isRequest, held.parent != nil {
      if value.clockIndex == nil, !value.clock.isEmpty {
        value.clockIndex = record.clocks.count
        record.clocks.append(value.clock)
      }
      let epoch = epochs[value.component]
      let meeting = Meeting(
        context: context, node: node, epoch: epoch, clock: value.clockIndex)
      if met.insert(meeting).inserted {
        record.occurrences.append(
          .init(
            node: node, thread: value.thread, component: value.component, start: value.start,
            epoch: epoch, clock: value.clockIndex))
      }
    }
    value.held.append(held)
    value.heldNodes.append(node)
    contexts[context] = value
  }

  /// Gives back the innermost hold of a lock; what was taken later is held still.
  mutating func give(_ context: Int, _ lock: Int) {
    guard var value = contexts[context],
      let place = value.held.lastIndex(where: { $0.lock == lock })
    else { return }
    let inner = value.held[(place + 1)...]
    value.held.removeSubrange(place...)
    value.heldNodes.removeSubrange(place...)
    for var hold in inner {
      hold.parent = value.heldNodes.last
      value.held.append(hold)
      value.heldNodes.append(node(hold))
    }
    contexts[context] = value
  }

  private mutating func node(_ node: LockOrderRecord.Node) -> Int {
    let key = NodeKey(
      parent: node.parent, lock: node.lock, mode: node.mode, isRequest: node.isRequest,
      site: node.site)
    if let known = nodes[key] { return known }
    nodes[key] = record.nodes.count
    record.nodes.append(node)
    return record.nodes.count - 1
  }
}

func joinOf(_ a: OrderRecorder.Clock, _ b: OrderRecorder.Clock) -> OrderRecorder.Clock {
  (0..<max(a.count, b.count)).map { index in
    max(index < a.count ? a[index] : 0, index < b.count ? b[index] : 0)
  }
}
