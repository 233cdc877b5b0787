// The main thread serves the main queue until the completion says that all is done.
import Foundation

final class Uploader: Sendable {
  func upload(_ text: String, completion: @escaping @Sendable (Int) -> Void) {
    DispatchQueue.global().async {
      usleep(100_000)  // sends it
      DispatchQueue.main.async { completion(text.utf8.count) }
    }
  }
}

Uploader().upload("hello") { count in
  print("sent \(count) bytes")
  print("done")
  exit(0)
}
dispatchMain()
