// A concurrent queue as a read-write lock: readers sync, writers send a barrier. One reader reads within
// a read, and a writer comes in between.
import Foundation

final class Directory: @unchecked Sendable {
  private let queue = DispatchQueue(label: "directory", attributes: .concurrent)
  private var names = ["ann": 1, "ben": 2]

  func number(of name: String) -> Int? { queue.sync { names[name] } }

  func add(_ name: String, _ number: Int) {
    queue.async(flags: .barrier) { self.names[name] = number }
  }

  func sum(of wanted: [String]) -> Int {
    queue.sync {
      usleep(200_000)  // checks who may ask
      return wanted.compactMap { number(of: $0) }.reduce(0, +)
    }
  }
}

let directory = Directory()
let reader = Thread { print(directory.sum(of: ["ann", "ben"])) }
reader.start()
usleep(100_000)
reader.name = "reader"
directory.add("cat", 3)
while !reader.isFinished { usleep(10_000) }
