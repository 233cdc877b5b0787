// A service that writes a snapshot now and then. All state belongs to one queue, and so does the
// completion of the write; `save()` waits for it, on that queue. The heartbeat goes on.
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
      let written = DispatchSemaphore(value: 0)
      self.write { written.signal() }
      written.wait()
      print("saved")
    }
  }
}

let heartbeat = DispatchSource.makeTimerSource(queue: .global())
heartbeat.schedule(deadline: .now(), repeating: .milliseconds(100))
heartbeat.setEventHandler { /* tells the load balancer that all is well */  }
heartbeat.resume()

let journal = Journal()
journal.save()
sleep(12)
print("done")
exit(0)
