// Whether there is anything to wait for is asked under the lock, before each wait.
import Foundation

final class Loader: @unchecked Sendable {
  let loaded = NSCondition()
  private(set) var items: [Int] = []

  func load() {
    loaded.lock()
    items = [1, 2, 3]
    loaded.signal()
    loaded.unlock()
  }
}

let loader = Loader()
let thread = Thread { loader.load() }
thread.start()
usleep(200_000)  // draws the window
loader.loaded.lock()
while loader.items.isEmpty { loader.loaded.wait() }
print("\(loader.items.count) items")
loader.loaded.unlock()
