// Written for NSLock and NSRecursiveLock: it compiles against the drop-ins (see Swap.swift) or they
// have lost something.
import Foundation

final class Cache: @unchecked Sendable {
  static let shared = NSLock()
  private let lock = NSLock()
  private var values: [String: Int] = [:]
  lazy var recursive: NSRecursiveLock = .init()

  func value(_ key: String, _ make: () throws -> Int) rethrows -> Int {
    try lock.withLock {
      if let value = values[key] { return value }
      let value = try make()
      values[key] = value
      return value
    }
  }
}

func parity() -> Bool {
  let lock = NSLock()
  let recursive = NSRecursiveLock()
  let any: any NSLocking = lock
  let object: NSObject = recursive
  let sendable: any Sendable = lock
  _ = (object, sendable)
  any.lock()
  any.unlock()
  let make: () -> NSLock = NSLock.init
  let locks =
    [NSLock(), make(), NamedLock(purpose: "test"), NamedLock()] + (0..<2).map { _ in NSLock() }
  var right = true
  for lock in locks {
    lock.lock()
    right = right && !lock.try() && !lock.lock(before: Date(timeIntervalSinceNow: 0.01))
    lock.unlock()
    right = right && lock.try()
    lock.unlock()
    right = right && lock.lock(before: Date(timeIntervalSinceNow: -1))
    lock.unlock()
    let result: Int = lock.withLock { 5 }
    right = right && result == 5
  }
  lock.name = "a name"
  recursive.name = "another"
  right = right && lock.name == "a name" && recursive.name == "another" && locks[0].name == nil
  lock.name = nil
  right = right && recursive.lock(before: .distantFuture) && recursive.try()
  recursive.unlock()
  recursive.unlock()
  do {
    try recursive.withLock { throw CocoaError(.featureUnsupported) }
    right = false
  } catch {}
  let isFree = lock.try()
  if isFree { lock.unlock() }
  let shared = [lock: 1, NSLock(): 2]
  right = right && isFree && shared[lock] == 1 && lock == lock && lock.isEqual(lock)
  return right && Cache().value("one") { 1 } == 1
}
