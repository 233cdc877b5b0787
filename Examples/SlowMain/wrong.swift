// The window that freezes: the handler of the main run loop draws from a document that a background
// thread saves, and waits until it has been saved.
import Foundation

final class Document: @unchecked Sendable {
  private let lock = NSLock()
  private var lines = ["first", "second"]

  func save() {
    lock.lock()
    defer { lock.unlock() }
    for _ in lines { Thread.sleep(forTimeInterval: 1) }  // writes the line
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
