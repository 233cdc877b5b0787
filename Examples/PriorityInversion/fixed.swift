// The lock is held for what needs it: the files are looked for before.
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
    let names = Array(pages.keys)
    lock.unlock()
    for name in names {
      Thread.sleep(forTimeInterval: 0.3)  // looks for the file
      guard name == "old" else { continue }
      lock.lock()
      pages[name] = nil
      lock.unlock()
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
