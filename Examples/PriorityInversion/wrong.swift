// What the user asked for waits for what nobody waits for: the nightly tidying of the cache holds its
// lock while it looks through the files.
import Foundation

final class Cache: @unchecked Sendable {
  private let lock = NSLock()
  private var pages: [String: Int] = ["index": 1, "old": 2]

  func page(_ name: String) -> Int? {
    lock.lock()
    defer { lock.unlock() }
    return pages[name]
  }

  func tidy() {
    lock.lock()
    defer { lock.unlock() }
    for name in pages.keys {
      Thread.sleep(forTimeInterval: 0.3)  // looks for the file
      if name == "old" { pages[name] = nil }
    }
  }
}

let cache = Cache()
let work = DispatchGroup()
DispatchQueue.global(qos: .background).async(group: work) { cache.tidy() }
Thread.sleep(forTimeInterval: 0.1)
DispatchQueue.global(qos: .userInitiated).async(group: work) {
  print("page", cache.page("index") ?? 0)
}
work.wait()
