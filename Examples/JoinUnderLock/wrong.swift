// stop() waits for the worker to end while it holds the lock that the worker needs to end.
import Foundation

final class Service: @unchecked Sendable {
  private let lock = NSLock()
  private var stopping = false
  private var worker = pthread_t()

  func start() {
    let own = Unmanaged.passUnretained(self).toOpaque()
    pthread_create(
      &worker, nil,
      { own in
        Unmanaged<Service>.fromOpaque(own!).takeUnretainedValue().work()
        return nil
      }, own)
  }

  private func work() {
    while true {
      usleep(20_000)
      lock.lock()
      let isOver = stopping
      lock.unlock()
      if isOver { return }
    }
  }

  func stop() {
    lock.lock()
    defer { lock.unlock() }
    stopping = true
    pthread_join(worker, nil)
  }
}

let service = Service()
service.start()
service.stop()
print("stopped")
