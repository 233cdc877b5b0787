// The store tells its observer once it has given its lock back.
import Foundation

final class Store: @unchecked Sendable {
  let lock = NSLock()
  var items: [String] = []
  var changed: @Sendable (Int) -> Void = { _ in }

  func add(_ item: String) {
    let count = lock.withLock {
      items.append(item)
      return items.count
    }
    changed(count)
  }

  func count() -> Int {
    lock.lock()
    defer { lock.unlock() }
    return items.count
  }
}

final class Screen: @unchecked Sendable {
  let lock = NSLock()
  var title = ""

  func show(_ count: Int) {
    lock.lock()
    defer { lock.unlock() }
    title = "\(count) items"
  }

  func refresh(_ store: Store) {
    lock.lock()
    defer { lock.unlock() }
    title = "\(store.count()) items"
  }
}

let store = Store()
let screen = Screen()
store.changed = { screen.show($0) }

let writer = Thread { store.add("bread") }
let painter = Thread {
  Thread.sleep(forTimeInterval: 0.3)
  screen.refresh(store)
}
writer.start()
painter.start()
while !writer.isFinished || !painter.isFinished { Thread.sleep(forTimeInterval: 0.01) }
print(screen.title)
