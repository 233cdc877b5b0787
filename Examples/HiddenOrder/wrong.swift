// A store tells its observer of a change while it holds its lock; the observer, which has a lock of
// its own, asks the store under it. Here the two threads come by at different times.
import Foundation

final class Store: @unchecked Sendable {
  let lock = NSLock()
  var items: [String] = []
  var changed: @Sendable (Int) -> Void = { _ in }

  func add(_ item: String) {
    lock.lock()
    defer { lock.unlock() }
    items.append(item)
    changed(items.count)
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
