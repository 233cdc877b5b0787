internal import Synchronization

/// The lock of an object while somebody uses it, in its table's list.
struct MonitorNode {
  let monitor = Monitor()
  /// The object's address, while there are users.
  fileprivate var object: UInt = 0
  fileprivate var users = 0
  fileprivate var next: UnsafeMutablePointer<MonitorNode>?
}

/// The locks of objects that are synchronized on just now: some tables by address, each with a
/// short list of those in use and those to be used again.
///
/// A table's own lock is held for moments and never while anybody waits for an object's.
final class MonitorTable: Sendable {
  typealias Node = UnsafeMutablePointer<MonitorNode>

  private struct Table: ~Copyable {
    var first: Node?
    var free = 0
  }
  // A line of the cache each.
  private struct Shard: ~Copyable {
    let table = Mutex(Table())
    private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0)
  }
  // Written by the initializer alone; the tables have locks, and live as long as the process.
  nonisolated(unsafe) private let shards: UnsafeMutablePointer<Shard>
  private static let count = 32
  /// More go back to the system.
  private static let kept = 8

  static let shared = MonitorTable()

  private init() {
    shards = .allocate(capacity: Self.count)
    for index in 0..<Self.count { (shards + index).initialize(to: Shard()) }
  }

  private func shard(_ address: UInt) -> UnsafeMutablePointer<Shard> {
    // The lowest bits of a heap address are always 0.
    shards + Int((address >> 4 ^ address >> 9) % UInt(Self.count))
  }

  /// The lock of the object at `address`, with one user more.
  func enter(_ address: UInt, _ fileID: StaticString, _ line: UInt) -> Node {
    shard(address).pointee.table.withLock { table in
      var unused: Node?
      var next = table.first
      while let node = next {
        if node.pointee.users == 0 {
          unused = node
        } else if node.pointee.object == address {
          node.pointee.users += 1
          return Handed(node: node)
        }
        next = node.pointee.next
      }
      let node = unused ?? Self.append(to: &table)
      table.free -= 1
      node.pointee.object = address
      node.pointee.users = 1
      node.pointee.monitor.beginUse(fileID, line)
      return Handed(node: node)
    }.node
  }

  /// One user less; the last one leaves the lock to others.
  func leave(_ node: Node) {
    let handed = Handed(node: node)
    // Its user keeps it from changing hands.
    shard(node.pointee.object).pointee.table.withLock { table in
      let node = handed.node
      node.pointee.users -= 1
      if node.pointee.users > 0 { return }
      table.free += 1
      if table.free > Self.kept { Self.remove(node, from: &table) }
    }
  }

  /// A node that leaves its table's lock: what it is in use for keeps it.
  private struct Handed: @unchecked Sendable { let node: Node }

  private static func append(to table: inout Table) -> Node {
    let node = Node.allocate(capacity: 1)
    node.initialize(to: MonitorNode(next: table.first))
    table.first = node
    table.free += 1
    return node
  }

  private static func remove(_ node: Node, from table: inout Table) {
    if table.first == node {
      table.first = node.pointee.next
    } else {
      var before = table.first
      while let this = before, this.pointee.next != node { before = this.pointee.next }
      before?.pointee.next = node.pointee.next
    }
    table.free -= 1
    node.deinitialize(count: 1)
    node.deallocate()
  }
}
