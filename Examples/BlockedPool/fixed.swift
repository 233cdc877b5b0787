// A task awaits; only a thread that is none of the pool's may block for a task.
import Foundation

func fetch(_ page: Int) async -> Int {
  await Task.yield()
  return page * 100
}

func fetchAll(_ count: Int) async -> Int {
  await withTaskGroup(of: Int.self) { group in
    for page in 1...count { group.addTask { await fetch(page) } }
    var total = 0
    for await size in group { total += size }
    return total
  }
}

let count = ProcessInfo.processInfo.activeProcessorCount + 1
print(await fetchAll(count) > 0 ? "all pages" : "no page")
