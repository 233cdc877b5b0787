// The window that does not freeze: what is written is a copy, and the lock is held while that is made.
import Foundation

final class Document: @unchecked Sendable {
  private let lock = NSLock()
  private var lines = ["first", "second"]

  func save() {
    let copy = lock.withLock { lines }
    for _ in copy { Thread.sleep(forTimeInterval: 1) }  // writes the line
  }

  func draw() {
    lock.lock()
    defer { lock.unlock() }
    print(lines.count, "lines")
  }
}

let document = Document()
Thread.detachNewThread { document.save() }
let timer = Timer.scheduledTimer(withTimeInterval: 0.2, repeats: false) { _ in document.draw() }
RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.5))
RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.1))
