// The source copies its listeners under its lock and calls them without it.
import Foundation

final class Source: @unchecked Sendable {
  private let lock = NSLock()
  private var listeners: [(Int) -> Void] = []
  private var latest = 0

  func listen(_ listener: @escaping (Int) -> Void) { lock.withLock { listeners.append(listener) } }
  func current() -> Int {
    lock.lock()
    defer { lock.unlock() }
    return latest
  }
  func publish(_ value: Int) {
    let called = lock.withLock {
      latest = value
      return listeners
    }
    for listener in called { listener(value) }
  }
}

final class Chart: @unchecked Sendable {
  private let lock = NSLock()
  private var points: [Int] = []
  private let source: Source
  init(_ source: Source) { self.source = source }

  func add(_ value: Int) {
    Thread.sleep(forTimeInterval: 0.4)  // scales the value
    lock.lock()
    defer { lock.unlock() }
    points.append(value)
  }
  func redraw() {
    lock.lock()
    defer { lock.unlock() }
    Thread.sleep(forTimeInterval: 0.5)  // draws
    print("latest \(source.current())")
  }
}

let source = Source()
let chart = Chart(source)
source.listen { chart.add($0) }
let feed = Thread { source.publish(7) }
let screen = Thread { chart.redraw() }
feed.start()
screen.start()
usleep(50_000)  // Foundation forgets a name that comes too early
feed.name = "feed"
screen.name = "screen"
while !feed.isFinished || !screen.isFinished { Thread.sleep(forTimeInterval: 0.01) }
print("drawn")
