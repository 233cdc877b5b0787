// Written for DispatchSemaphore and pthread_rwlock_t, like Parity.swift.
import Foundation

final class Limiter: @unchecked Sendable {
  private let semaphore = DispatchSemaphore(value: 2)
  lazy var none: DispatchSemaphore = .init(value: 0)

  func run<R>(_ body: () throws -> R) rethrows -> R {
    semaphore.wait()
    defer { semaphore.signal() }
    return try body()
  }
}

func semaphoreParity() -> Bool {
  let semaphore = DispatchSemaphore(value: 0)
  let sendable: any Sendable = semaphore
  _ = sendable
  let make: (Int) -> DispatchSemaphore = DispatchSemaphore.init(value:)
  var right = semaphore.wait(timeout: .now()) == .timedOut
  right = right && semaphore.wait(timeout: .now() + .milliseconds(10)) == .timedOut
  right = right && semaphore.wait(wallTimeout: .now() + 0.01) == .timedOut
  right = right && semaphore.signal() == 0
  right = right && semaphore.wait(timeout: .distantFuture) == .success
  semaphore.signal()
  right = right && semaphore.wait(wallTimeout: .distantFuture) == .success
  semaphore.signal()
  semaphore.wait()
  let one = make(1)
  one.wait()
  one.signal()
  DispatchQueue.global().async { semaphore.signal() }
  semaphore.wait()
  let limiter = Limiter()
  right = right && limiter.run { limiter.run { 5 } } == 5
  return right && semaphore === semaphore
}

let parities: [(String, @Sendable () -> Bool)] = [
  ("NSLock", parity), ("NSCondition", conditionParity), ("NSConditionLock", conditionLockParity),
  ("Mutex", mutexParity), ("DispatchSemaphore", semaphoreParity),
  ("pthread_rwlock_t", readWriteParity), ("DispatchQueue", { parityOfQueues().isEmpty }),
  ("DispatchGroup", { parityOfGroups().isEmpty }), ("mixtures", { parityOfMixtures().isEmpty }),
  ("OperationQueue", { parityOfOperations().isEmpty }),
]

func allParity() {
  for (name, test) in parities where !test() { say("not like the original:", name) }
  say("compared")
}
