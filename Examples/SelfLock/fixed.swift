// Public methods lock; private ones expect the lock to be held, and say so in their names.
import Foundation

final class Inventory: @unchecked Sendable {
  private let lock = NSLock()
  private var counts: [String: Int] = [:]

  func count(of item: String) -> Int {
    lock.withLock { lockedCount(of: item) }
  }

  func add(_ amount: Int, of item: String) {
    lock.withLock { counts[item] = lockedCount(of: item) + amount }
  }

  private func lockedCount(of item: String) -> Int { counts[item, default: 0] }
}

let inventory = Inventory()
inventory.add(3, of: "bolts")
print(inventory.count(of: "bolts"))
