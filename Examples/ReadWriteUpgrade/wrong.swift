// A reader that finds its value missing asks for the write lock without giving the read lock back. A
// writer waits until all readers have gone, and this reader does not go.
import Foundation

final class Table: @unchecked Sendable {
  private let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
  private var rows: [Int: String] = [:]

  init() { pthread_rwlock_init(lock, nil) }

  func row(_ key: Int) -> String {
    pthread_rwlock_rdlock(lock)
    defer { pthread_rwlock_unlock(lock) }
    if let row = rows[key] { return row }
    pthread_rwlock_wrlock(lock)
    defer { pthread_rwlock_unlock(lock) }
    rows[key] = "row \(key)"
    return rows[key]!
  }
}

let table = Table()
let loader = Thread { print(table.row(1)) }
loader.start()
while !loader.isFinished { Thread.sleep(forTimeInterval: 0.01) }
