// WITH(support.swift)
// Long waits for a holder that sleeps, or behind readers, as the drop-ins see them.
import Foundation
import Synchronization

#if SWAPPED
  import InstrumentedLocks
#endif

@main enum Waits {
  static func main() {
    play(["sleeper": sleeper, "mutex": mutex, "readers": readers, "brief": brief])
  }
}

let held = Flag()

/// One holds for so long what the other one wants.
func hold(_ milliseconds: UInt32, _ holding: @escaping (() -> Void) -> Void) {
  let holder = start("holder") {
    holding {
      held.set()
      pause(milliseconds)
    }
  }
  let waiter = start("waiter") {
    held.poll()
    holding {}
  }
  watch(holder, waiter)
}

func sleeper() {
  let lock = NSLock()
  hold(2500) { body in
    lock.lock()
    body()
    lock.unlock()
  }
}

func brief() {
  let lock = NSLock()
  hold(300) { body in
    lock.lock()
    body()
    lock.unlock()
  }
}

final class Value: Sendable { let number = Mutex(0) }
func mutex() {
  let value = Value()
  hold(2500) { body in value.number.withLock { _ in body() } }
}

/// One of the two always reads.
func readers() {
  #if SWAPPED
    let lock = InstrumentedReadWriteLock()
    let reading = [Tally(), Tally()]
    let end = Date(timeIntervalSinceNow: 2.5)
    func read(_ own: Int) {
      while Date() < end {
        lock.readLock()
        reading[own].add(1)
        held.set()
        for round in 0..<200 where round < 20 || reading[1 - own].value == 0 { pause(1) }
        reading[own].add(-1)
        lock.unlock()
        pause(2)
      }
    }
    let first = start("reader-0") { read(0) }
    let second = start("reader-1") { read(1) }
    let writer = start("waiter") {
      held.poll()
      lock.writeLock()
      lock.unlock()
    }
    watch(first, second, writer)
  #endif
}
