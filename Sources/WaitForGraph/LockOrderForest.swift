/// The trie of held stacks, numbered in preorder, so that 'does this stack hold that lock' is a
/// binary search and no set of held locks is ever copied.
///
/// Space and time to build are linear in the nodes.
struct LockOrderForest {
  let nodes: [LockOrderRecord.Node]
  let locks: [LockOrderRecord.Lock]
  /// A node's number in preorder; its subtree has the numbers `order ..< end`.
  private(set) var order: [Int]
  private(set) var end: [Int]
  private(set) var depth: [Int]
  /// By lock, in preorder: the nodes that hold it with no ancestor that does, and the same for
  /// holding it exclusively. Either list's subtrees are disjoint.
  private(set) var holders: [[Int]]
  private(set) var writers: [[Int]]
  private var isOutermost: [Bool]
  private var isOutermostWriter: [Bool]
  /// A bit for each lock modulo 64 that a node and its ancestors hold, and hold exclusively.
  private var heldBits: [UInt64]
  private var writtenBits: [UInt64]

  init(_ record: LockOrderRecord) {
    (nodes, locks) = (record.nodes, record.locks)
    let zeros = Array(repeating: 0, count: nodes.count)
    (order, end, depth) = (zeros, zeros, zeros)
    isOutermost = Array(repeating: false, count: nodes.count)
    isOutermostWriter = isOutermost
    heldBits = Array(repeating: 0, count: nodes.count)
    writtenBits = heldBits
    holders = Array(repeating: [], count: locks.count)
    writers = holders
    number()
  }

  private mutating func number() {
    var (firstChild, nextSibling) = (Array(repeating: -1, count: nodes.count), [Int]())
    nextSibling = firstChild
    var pending: [Int] = []
    for (node, value) in nodes.enumerated().reversed() {
      guard let parent = value.parent else {
        pending.append(node)
        continue
      }
      nextSibling[node] = firstChild[parent]
      firstChild[parent] = node
    }
    var held = Array(repeating: 0, count: locks.count)
    var written = held
    var count = 0
    // A node is met twice: before its subtree, and, as its complement, after it.
    while let next = pending.popLast() {
      guard next >= 0 else {
        let lock = nodes[~next].lock
        end[~next] = count
        held[lock] -= 1
        if nodes[~next].mode == .exclusive { written[lock] -= 1 }
        continue
      }
      let value = nodes[next]
      order[next] = count
      count += 1
      let bit: UInt64 = 1 << UInt64(value.lock & 63)
      heldBits[next] = bit
      writtenBits[next] = value.mode == .exclusive ? bit : 0
      if let parent = value.parent {
        depth[next] = depth[parent] + 1
        heldBits[next] |= heldBits[parent]
        writtenBits[next] |= writtenBits[parent]
      }
      if held[value.lock] == 0 {
        isOutermost[next] = true
        holders[value.lock].append(next)
      }
      held[value.lock] += 1
      if value.mode == .exclusive {
        if written[value.lock] == 0 {
          isOutermostWriter[next] = true
          writers[value.lock].append(next)
        }
        written[value.lock] += 1
      }
      pending.append(~next)
      var child = firstChild[next]
      while child >= 0 {
        pending.append(child)
        child = nextSibling[child]
      }
    }
  }

  /// The first place in `list`, which stands in preorder, at or after a preorder number.
  func lowerBound(_ list: [Int], _ number: Int) -> Int {
    partition(of: list.count) { order[list[$0]] < number }
  }

  /// The node of `list`, whose subtrees are disjoint, that is `node` or an ancestor of it.
  func ancestor(of node: Int, in list: [Int]) -> Int? {
    let after = lowerBound(list, order[node] + 1)
    guard after > 0, order[node] < end[list[after - 1]] else { return nil }
    return list[after - 1]
  }

  /// Whether a request may be part of a cycle with others: a lock that is already held is taken
  /// again without a wait, or never.
  func isStep(_ node: Int) -> Bool {
    nodes[node].isRequest && nodes[node].parent != nil && isOutermost[node]
  }

  /// A reader that reads the lock once more waits when a writer has come between: where it read
  /// first.
  func firstRead(before node: Int) -> Int? {
    let value = nodes[node]
    guard value.isRequest, value.mode == .shared, locks[value.lock].blocksReaders,
      let held = value.parent, ancestor(of: held, in: writers[value.lock]) == nil
    else { return nil }
    return ancestor(of: held, in: holders[value.lock])
  }

  /// Whether the stacks that end in two nodes can never be held at the same time, by two threads: a
  /// lock is in both, and one of them holds it exclusively (Goodlock's gate locks).
  func areGated(_ a: Int, _ b: Int) -> Bool {
    guard heldBits[a] & writtenBits[b] | writtenBits[a] & heldBits[b] != 0 else { return false }
    let (shallow, deep) = depth[a] <= depth[b] ? (a, b) : (b, a)
    var node: Int? = shallow
    while let held = node {
      let value = nodes[held]
      let others = value.mode == .exclusive ? holders[value.lock] : writers[value.lock]
      if ancestor(of: deep, in: others) != nil { return true }
      node = value.parent
    }
    return false
  }

  /// Whether holding a lock at `node` keeps out who wants it in `mode`, and no ancestor does.
  func isOutermostBlocker(_ node: Int, of mode: Mode) -> Bool {
    mode == .exclusive || locks[nodes[node].lock].blocksReaders
      ? isOutermost[node] : isOutermostWriter[node]
  }
}

/// How many of the first numbers below `count` fulfil a condition that later ones do not.
func partition(of count: Int, isBefore: (Int) -> Bool) -> Int {
  var (low, high) = (0, count)
  while low < high {
    let middle = (low + high) / 2
    if isBefore(middle) { low = middle + 1 } else { high = middle }
  }
  return low
}
