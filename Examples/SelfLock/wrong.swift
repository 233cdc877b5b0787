// A method that locks calls another method that locks the same lock. NSLock is not recursive: the
// thread waits for itself.
import Foundation

final class Inventory: @unchecked Sendable {
  private let lock = NSLock()
  private var counts: [String: Int] = [:]

  func count(of item: String) -> Int {
    lock.lock()
    defer { lock.unlock() }
    return counts[item, default: 0]
  }

  func add(_ amount: Int, of item: String) {
    lock.lock()
    defer { lock.unlock() }
    counts[item] = count(of: item) + amount
  }
}

let inventory = Inventory()
inventory.add(3, of: "bolts")
print(inventory.count(of: "bolts"))
