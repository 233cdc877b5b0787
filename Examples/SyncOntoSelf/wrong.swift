// An image cache keeps its entries on a serial queue. Storing makes room when the cache is full, with
// the accessor that everybody else uses.
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
    guard count >= 2, let oldest = images.keys.min() else { return }
    images[oldest] = nil
  }
}

let cache = ImageCache()
for name in ["one", "two", "three"] { cache.store(Data(name.utf8), as: name) }
print("\(cache.count) images")
