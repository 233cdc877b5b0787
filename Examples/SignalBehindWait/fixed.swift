// What is to happen after the write stands in its completion: the queue waits for nothing.
import Foundation

final class Journal: Sendable {
  private let queue = DispatchQueue(label: "journal")
  private let disk = DispatchQueue(label: "disk")

  private func write(_ completion: @escaping @Sendable () -> Void) {
    disk.async {
      usleep(20_000)  // writes it
      self.queue.async { completion() }
    }
  }

  func save() {
    queue.async {
      self.write { print("saved") }
    }
  }
}

let heartbeat = DispatchSource.makeTimerSource(queue: .global())
heartbeat.schedule(deadline: .now(), repeating: .milliseconds(100))
heartbeat.setEventHandler { /* tells the load balancer that all is well */  }
heartbeat.resume()

let journal = Journal()
journal.save()
sleep(1)
print("done")
exit(0)
