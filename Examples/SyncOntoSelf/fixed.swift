// What runs on the queue uses what the queue guards, and not the accessors that lead to the queue.
import Foundation

final class ImageCache: @unchecked Sendable {
  private let queue = DispatchQueue(label: "images.cache")
  private var images: [String: Data] = [:]

  var count: Int { queue.sync { images.count } }

  func store(_ image: Data, as name: String) {
    queue.sync {
      makeRoom()
      images[name] = image
    }
  }

  private func makeRoom() {
    dispatchPrecondition(condition: .onQueue(queue))
    guard images.count >= 2, let oldest = images.keys.min() else { return }
    images[oldest] = nil
  }
}

let cache = ImageCache()
for name in ["one", "two", "three"] { cache.store(Data(name.utf8), as: name) }
print("\(cache.count) images")
