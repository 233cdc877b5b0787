// A command line tool waits for an upload. The upload's completion comes on the main queue, as it
// always does in the app from which the code is taken.
import Foundation

final class Uploader: Sendable {
  func upload(_ text: String, completion: @escaping @Sendable (Int) -> Void) {
    DispatchQueue.global().async {
      usleep(100_000)  // sends it
      DispatchQueue.main.async { completion(text.utf8.count) }
    }
  }
}

let finished = DispatchSemaphore(value: 0)
Uploader().upload("hello") { count in
  print("sent \(count) bytes")
  finished.signal()
}
finished.wait()
print("done")
