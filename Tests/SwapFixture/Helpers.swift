import Foundation

/// Threads that all begin when the last is there.
final class Meeting: @unchecked Sendable {
  // No drop-in: what is looked at are the scenarios' own locks.
  private let condition = Foundation.NSCondition()
  private var missing: Int
  init(_ count: Int) { missing = count }
  func arrive() {
    condition.lock()
    missing -= 1
    if missing == 0 { condition.broadcast() }
    while missing > 0 { condition.wait() }
    condition.unlock()
  }
}

@discardableResult
func thread(_ name: String, _ body: @escaping @Sendable () -> Void) -> Thread {
  let thread = Thread {
    Thread.current.name = name
    // Foundation's own may come too early.
    try? name.write(toFile: "/proc/thread-self/comm", atomically: false, encoding: .utf8)
    body()
  }
  thread.start()
  return thread
}

/// Says something at once, also into a pipe.
func say(_ words: Any...) {
  print(words.map { "\($0)" }.joined(separator: " "))
  fflush(nil)
}

/// The main thread of a program that hangs elsewhere; the test ends it.
func waitForEver() -> Never { while true { sleep(1) } }

/// The same of a program in which nobody else acts either: a main thread that wakes now and then
/// might signal what others wait for.
func standForEver() -> Never {
  Meeting(2).arrive()
  exit(1)
}

/// Takes `first`, then `second`, once all others have taken theirs.
@inline(never)
func takeBoth(_ first: some NSLocking, _ second: some NSLocking, _ meeting: Meeting) {
  first.lock()
  meeting.arrive()
  second.lock()
  second.unlock()
  first.unlock()
}
