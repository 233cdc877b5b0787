internal import Synchronization

/// The locks of objects that are synchronized on just now: some tables by address, each with the
/// locks in use and those to be used again.
///
/// A table's own lock is held for moments and never while anybody waits for an object's.
final class MonitorTable: @unchecked Sendable {
  private struct Table {
    var used: [ObjectIdentifier: (monitor: Monitor, users: Int)] = [:]
    var free: [Monitor] = []
  }
  // A line of the cache each.
  private struct Shard: ~Copyable {
    let table = Mutex(Table())
    private let padding: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
  }
  // Lives as long as the process.
  private let shards: UnsafeMutablePointer<Shard>
  private static let count = 32
  /// More are given back to the system.
  private static let kept = 16

  static let shared = MonitorTable()

  private init() {
    shards = .allocate(capacity: Self.count)
    for index in 0..<Self.count { (shards + index).initialize(to: Shard()) }
  }

  private func shard(_ object: AnyObject) -> UnsafeMutablePointer<Shard> {
    // The lowest bits of a heap address are always 0.
    let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
    return shards + Int((address >> 4 ^ address >> 9) % UInt(Self.count))
  }

  /// The lock of `object`, with one user more.
  func enter(_ object: AnyObject, _ fileID: StaticString, _ line: UInt) -> Monitor {
    shard(object).pointee.table.withLock { table in
      let key = ObjectIdentifier(object)
      if let there = table.used[key] {
        table.used[key] = (there.monitor, there.users + 1)
        return there.monitor
      }
      let monitor = table.free.popLast() ?? Monitor()
      monitor.beginUse(fileID, line)
      table.used[key] = (monitor, 1)
      return monitor
    }
  }

  /// One user less; the last one leaves the lock to others.
  func leave(_ object: AnyObject) {
    shard(object).pointee.table.withLock { table in
      let key = ObjectIdentifier(object)
      guard let there = table.used[key] else { return }
      if there.users > 1 {
        table.used[key] = (there.monitor, there.users - 1)
      } else {
        table.used[key] = nil
        if table.free.count < Self.kept { table.free.append(there.monitor) }
      }
    }
  }
}
