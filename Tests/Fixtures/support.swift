// What every Swift fixture that says WITH(support.swift) shares: it is compiled beside them. With
// SWAPPED, everything that a drop-in replaces is one, as in a module whose one file says so, and the
// watchdog looks from within.
import Foundation
import Synchronization

#if SWAPPED
  import InstrumentedLocks
  import Watchdog

  typealias NSLock = InstrumentedLock
  typealias NSRecursiveLock = InstrumentedRecursiveLock
  typealias NSCondition = InstrumentedCondition
  typealias NSConditionLock = InstrumentedConditionLock
  typealias Mutex = InstrumentedMutex
  typealias DispatchSemaphore = InstrumentedSemaphore
  typealias DispatchGroup = InstrumentedGroup
  typealias DispatchQueue = InstrumentedQueue
  typealias Operation = InstrumentedOperation
  typealias BlockOperation = InstrumentedBlockOperation
  typealias OperationQueue = InstrumentedOperationQueue
#endif

/// Where threads meet without any call that is watched, so that each deadlock closes on every run.
final class Meeting: Sendable {
  private let arrived = Atomic<Int>(0)
  func callAsFunction(_ all: Int) {
    arrived.add(1, ordering: .sequentiallyConsistent)
    while arrived.load(ordering: .sequentiallyConsistent) < all { usleep(1000) }
  }
}
let meet = Meeting()

func pause(_ milliseconds: UInt32) { usleep(milliseconds * 1000) }

// Swift's Glibc leaves it out.
@_silgen_name("pthread_setname_np")
private func setName(_ thread: pthread_t, _ name: UnsafePointer<CChar>) -> Int32

/// Names the thread that runs this, be it one of a pool.
func call(_ name: String) { _ = setName(pthread_self(), name) }

@discardableResult
func start(_ name: String, _ body: @escaping () -> Void) -> Thread {
  let thread = Thread {
    call(name)
    body()
  }
  thread.start()
  return thread
}

/// Looks again and again, as a program with something else to do would.
func watch(_ threads: Thread...) {
  while !threads.allSatisfy({ $0.isFinished }) { usleep(5000) }
}

/// A flag that is seen without any call that is watched.
final class Flag: Sendable {
  private let value = Atomic<Bool>(false)
  var isSet: Bool { value.load(ordering: .sequentiallyConsistent) }
  func set() { value.store(true, ordering: .sequentiallyConsistent) }
  func poll() { while !isSet { usleep(5000) } }
}

/// Adds up without a lock.
final class Tally: Sendable {
  private let sum = Atomic<Int>(0)
  var value: Int { sum.load(ordering: .sequentiallyConsistent) }
  func add(_ number: Int) { sum.add(number, ordering: .sequentiallyConsistent) }
}

func done() -> Never {
  print("DONE")
  exit(0)
}

/// Runs the scenario that the first argument names; an alarm ends it when nobody else does.
func play(_ scenarios: KeyValuePairs<String, () -> Void>) -> Never {
  setvbuf(stdout, nil, _IOLBF, 0)
  alarm(60)
  #if SWAPPED
    Watchdog.shared.start()
  #endif
  let wanted = CommandLine.arguments.dropFirst().first
  guard let scenario = scenarios.first(where: { $0.key == wanted }) else {
    fputs(scenarios.map(\.key).joined(separator: "\n") + "\n", stderr)
    exit(2)
  }
  scenario.value()
  done()
}
