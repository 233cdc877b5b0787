// A hung process of as many threads as the first argument says: two in a deadlock, the others in all
// kinds of waits, most of them behind it. Writes "ready" when all of them wait; lives until it is killed.
import Dispatch
import Foundation
import Synchronization

final class Waits: Sendable {
  let first = NSLock()
  let second = NSLock()
  let condition = NSCondition()
  let semaphore = DispatchSemaphore(value: 0)
  let group = DispatchGroup()
  let queue = DispatchQueue(label: "stuck")
  let mutex = Mutex(0)
  let pipe = Pipe()
}

let waits = Waits()
let threads = max(4, CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 10)

@discardableResult
func start(_ name: String, _ body: @escaping @Sendable () -> Void) -> Thread {
  let thread = Thread(block: body)
  thread.name = name
  thread.stackSize = 256 << 10
  thread.start()
  return thread
}

@inline(never) func descend(_ depth: Int, _ body: () -> Void) {
  if depth == 0 { body() } else { descend(depth - 1, body) }
  withExtendedLifetime(depth) {}
}

waits.group.enter()
start("alice") {
  waits.first.lock()
  usleep(50_000)
  waits.mutex.withLock { _ in waits.queue.sync { waits.second.lock() } }
}
start("bob") {
  waits.second.lock()
  usleep(50_000)
  waits.first.lock()
}
usleep(200_000)
for index in 2..<threads - 1 {
  start("waiter-\(index)") {
    descend(index % 16) {
      switch index % 8 {
      case 0: waits.first.lock()
      case 1: waits.semaphore.wait()
      case 2:
        waits.condition.lock()
        waits.condition.wait()
      case 3:
        var joined = pthread_t()
        pthread_create(&joined, nil, { _ in nil }, nil)
        pthread_join(joined, nil)
        waits.group.wait()
      case 4: while true { sleep(1000) }
      case 5: waits.queue.sync {}
      case 6: _ = waits.pipe.fileHandleForReading.availableData
      default: waits.mutex.withLock { $0 += 1 }
      }
    }
  }
}
usleep(300_000)
print("ready")
fflush(stdout)
waits.first.lock()
