// The main thread starts a loader and waits for its signal. The loader is sometimes faster.
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
loader.loaded.wait()
print("\(loader.items.count) items")
loader.loaded.unlock()
