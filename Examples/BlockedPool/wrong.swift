// A synchronous function is kept for old callers: it starts a task and blocks until that has ended.
// The new callers are tasks themselves.
import Foundation

func fetch(_ page: Int) async -> Int {
  await Task.yield()
  return page * 100
}

func fetchAndWait(_ page: Int) -> Int {
  let ended = DispatchSemaphore(value: 0)
  nonisolated(unsafe) var result = 0
  Task.detached {
    usleep(50_000)  // connects
    result = await fetch(page)
    ended.signal()
  }
  ended.wait()
  return result
}

func fetchAll(_ count: Int) async -> Int {
  await withTaskGroup(of: Int.self) { group in
    for page in 1...count { group.addTask { fetchAndWait(page) } }
    var total = 0
    for await size in group { total += size }
    return total
  }
}

let count = ProcessInfo.processInfo.activeProcessorCount + 1
print(await fetchAll(count) > 0 ? "all pages" : "no page")
