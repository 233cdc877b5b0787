// Written for Synchronization.Mutex, like Parity.swift.
import Foundation
import Synchronization

struct Token: ~Copyable { var value: Int }
enum Refused: Error { case yes }
final class Boxed { var value = 0 }

let globalCount = Mutex(0)

final class Counters: Sendable {
  static let shared = Mutex<[String: Int]>([:])
  let one: Mutex<Int>
  let two = Mutex<(Int, String)>((0, ""))
  private let text: Mutex<String?> = .init(nil)

  init(_ start: Int) { one = Mutex(start) }

  func say(_ words: String) -> String? {
    text.withLock { text in
      defer { text = words }
      return text
    }
  }
}

struct Guarded<Value: ~Copyable>: ~Copyable {
  let mutex: Mutex<Value>
  init(_ value: consuming sending Value) { mutex = Mutex(value) }
}

func increase(_ mutex: borrowing Mutex<Int>) throws(Refused) -> Int {
  try mutex.withLock { (value: inout Int) throws(Refused) in
    if value > 100 { throw .yes }
    value += 1
    return value
  }
}

func mutexParity() -> Bool {
  let counters = Counters(5)
  var right = counters.one.withLock { $0 } == 5
  counters.two.withLock { $0.0 += 1 }
  Counters.shared.withLock { $0["a", default: 0] += 1 }
  right = right && Counters.shared.withLockIfAvailable { $0["a"] } == 1
  right = right && counters.say("one") == nil && counters.say("two") == "one"
  globalCount.withLock { $0 += 1 }
  let local = Mutex(99)
  do throws(Refused) {
    let (first, second) = (try increase(local), try increase(local))
    right = right && first == 100 && second == 101
    _ = try increase(local)
    right = false
  } catch { right = right && error == .yes }
  let token = Guarded(Token(value: 3))
  let other: Token = token.mutex.withLock {
    $0.value += 1
    return Token(value: $0.value)
  }
  right = right && other.value == 4
  let boxed = Mutex(Boxed())
  let fresh: Boxed = boxed.withLock { box in
    box = Boxed()
    return Boxed()
  }
  fresh.value = boxed.withLock { $0.value }
  let optional: Int?? = local.withLockIfAvailable { _ in Int?.none }
  right = right && optional != nil
  let ended = Meeting(3)
  for _ in 0..<2 {
    thread("count") {
      for _ in 0..<50_000 { counters.one.withLock { $0 += 1 } }
      ended.arrive()
    }
  }
  ended.arrive()
  right = right && counters.one.withLock { $0 } == 100_005
  let (held, tried) = (Meeting(2), Meeting(2))
  thread("holder") {
    globalCount.withLock { _ in
      held.arrive()
      tried.arrive()
    }
  }
  held.arrive()
  right = right && globalCount.withLockIfAvailable { $0 } == nil
  tried.arrive()
  let bare = Mutex(())
  bare._unsafeLock()
  bare._unsafeUnlock()
  right = right && bare._unsafeTryLock()
  bare._unsafeUnlock()
  return right && MemoryLayout<Mutex<Int>>.alignment == 8
}
