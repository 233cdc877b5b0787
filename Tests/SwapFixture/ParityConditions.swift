// Written for NSCondition and NSConditionLock, like Parity.swift.
import Foundation

final class Mailbox: @unchecked Sendable {
  private let condition = NSCondition()
  private var letters: [Int] = []

  func put(_ letter: Int) {
    condition.lock()
    defer { condition.unlock() }
    letters.append(letter)
    condition.signal()
  }

  func take() -> Int {
    condition.withLock {
      while letters.isEmpty { condition.wait() }
      return letters.removeFirst()
    }
  }

  func take(until limit: Date) -> Int? {
    condition.withLock {
      while letters.isEmpty { if !condition.wait(until: limit) { return nil } }
      return letters.removeFirst()
    }
  }

  func wakeAll() { condition.broadcast() }
}

func conditionParity() -> Bool {
  let condition = NSCondition()
  let any: any NSLocking = condition
  let object: NSObject = NamedCondition()
  let sendable: any Sendable = condition
  let make: () -> NSCondition = NSCondition.init
  _ = (object, sendable)
  any.lock()
  any.unlock()
  condition.name = "a name"
  var right = condition.name == "a name" && make().name == nil && condition != make()
  condition.name = nil
  for condition in [condition, make(), NamedCondition()] {
    condition.lock()
    right = right && !condition.wait(until: Date(timeIntervalSinceNow: 0.01))
    right = right && !condition.wait(until: .distantPast)
    condition.signal()
    condition.broadcast()
    condition.unlock()
  }
  do {
    try condition.withLock { throw CocoaError(.featureUnsupported) }
    right = false
  } catch {}
  let (mailbox, back) = (Mailbox(), Mailbox())
  Thread { for _ in 0..<1000 { back.put(mailbox.take() + 1) } }.start()
  for number in 0..<1000 {
    mailbox.put(number)
    right = right && back.take() == number + 1
  }
  mailbox.wakeAll()
  return right && mailbox.take(until: Date(timeIntervalSinceNow: 0.01)) == nil
}

func conditionLockParity() -> Bool {
  var right = true
  let make: () -> NSConditionLock = NSConditionLock.init
  for lock in [
    NSConditionLock(), make(), NSConditionLock(condition: 0), NamedConditionLock(condition: 0),
  ] {
    let any: any NSLocking & Sendable = lock
    any.lock()
    right = right && !lock.try() && !lock.lock(before: Date(timeIntervalSinceNow: 0.01))
    right = right && !lock.tryLock(whenCondition: 0)
    any.unlock()
    right = right && !lock.tryLock(whenCondition: 1) && lock.condition == 0
    right = right && !lock.lock(whenCondition: 1, before: Date(timeIntervalSinceNow: 0.01))
    right = right && lock.tryLock(whenCondition: 0)
    lock.unlock(withCondition: 3)
    right = right && lock.lock(whenCondition: 3, before: Date(timeIntervalSinceNow: 1))
    lock.unlock()
    lock.lock(whenCondition: 3)
    lock.unlock(withCondition: 0)
    right = right && lock.try()
    lock.unlock()
    right = right && lock.lock(before: .distantPast)
    lock.unlock()
    right = right && lock.withLock { lock.condition } == 0
    lock.name = "a name"
    right = right && lock.name == "a name"
  }
  // With limits: the original's calls without one trap when they have to wait.
  let turn = NSConditionLock(condition: 0)
  Thread {
    for _ in 0..<500 {
      while !turn.lock(whenCondition: 1, before: Date(timeIntervalSinceNow: 1)) {}
      turn.unlock(withCondition: 0)
    }
    while !turn.lock(whenCondition: 0, before: Date(timeIntervalSinceNow: 1)) {}
    turn.unlock(withCondition: 2)
  }.start()
  for _ in 0..<500 {
    while !turn.lock(whenCondition: 0, before: Date(timeIntervalSinceNow: 1)) {}
    turn.unlock(withCondition: 1)
  }
  right = right && turn.lock(whenCondition: 2, before: Date(timeIntervalSinceNow: 10))
  turn.unlock()
  return right
}
