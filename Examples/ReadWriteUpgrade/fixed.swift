// The read lock is given back first, and the value looked for once more under the write lock: another
// thread may have put it there in between.
import Foundation

final class Table: @unchecked Sendable {
  private let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
  private var rows: [Int: String] = [:]

  init() { pthread_rwlock_init(lock, nil) }

  func row(_ key: Int) -> String {
    if let row = existing(key) { return row }
    pthread_rwlock_wrlock(lock)
    defer { pthread_rwlock_unlock(lock) }
    if let row = rows[key] { return row }
    rows[key] = "row \(key)"
    return rows[key]!
  }

  private func existing(_ key: Int) -> String? {
    pthread_rwlock_rdlock(lock)
    defer { pthread_rwlock_unlock(lock) }
    return rows[key]
  }
}

let table = Table()
let loader = Thread { print(table.row(1)) }
loader.start()
while !loader.isFinished { Thread.sleep(forTimeInterval: 0.01) }
