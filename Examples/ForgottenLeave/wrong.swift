// Four feeds are loaded at once, and a group says when all of them are there. One feed cannot be read.
import Foundation

struct Unreadable: Error {}

func load(_ feed: Int, completion: @escaping @Sendable (Result<Int, Unreadable>) -> Void) {
  DispatchQueue.global().async {
    usleep(50_000)  // reads it
    completion(feed == 2 ? .failure(Unreadable()) : .success(feed * 10))
  }
}

func loadAll() {
  let group = DispatchGroup()
  for feed in 0..<4 {
    group.enter()
    load(feed) { result in
      guard case .success(let items) = result else { return }
      print(items > 30 ? "many items" : "some items")
      group.leave()
    }
  }
  group.wait()
}

loadAll()
print("all are there")
