import Foundation
import InstrumentedLocks
import Synchronization

/// Lock orders, one thread after the other: found by the orders alone, for nothing but time keeps them
/// apart. Run with predictions.
let predicted: [String: @Sendable () -> Void] = [
  "predicted: a queue after a value's mutex": {
    // Each `sync` makes what hands over to its block, at addresses that are used again.
    let (lock, prices) = (kept(NSLock(name: "stock")), kept(Prices()))
    let queue = kept(DispatchQueue(label: "shop.journal"))
    oneByOne(
      {
        for _ in 0..<10 {
          lock.withLock {
            prices.all.withLock { $0 += 1 }
            queue.sync {}
          }
        }
      },
      { prices.all.withLock { _ in lock.withLock {} } },
      {
        for _ in 0..<100 { queue.sync {} }
        queue.sync { lock.withLock {} }
      })
  },
  "predicted: a value's mutex": {
    let (lock, prices) = (kept(NSLock(name: "stock")), kept(Prices()))
    oneByOne(
      { lock.withLock { prices.all.withLock { $0 += 1 } } },
      { prices.all.withLock { _ in lock.withLock {} } })
  },
  "predicted: a value's mutex that somebody has": {
    let (lock, prices) = (kept(NSLock(name: "stock")), kept(Prices()))
    let (held, ended) = (Meeting(2), Meeting(2))
    racer("has it") {
      prices.all.withLock { _ in
        held.arrive()
        usleep(200_000)
      }
      ended.arrive()
    }
    held.arrive()
    oneByOne(
      { lock.withLock { prices.all.withLock { $0 += 1 } } },
      { prices.all.withLock { _ in lock.withLock {} } })
    ended.arrive()
  },
  "predicted: names of what is gone": {
    let (lock, prices) = (NSLock(name: "stock"), Prices())
    oneByOne(
      { lock.withLock { prices.all.withLock { $0 += 1 } } },
      { prices.all.withLock { _ in lock.withLock {} } })
  },
  "predicted: told to what is gone": {
    let (first, second) = (kept(NSLock(name: "first")), kept(NSLock(name: "second")))
    let count = 1000
    oneByOne(
      {
        first.withLock { second.withLock {} }
        for order in (0..<count).map({ _ in HappensBefore() }) { order.release() }
      },
      {
        // Nobody has released any of these.
        for order in (0..<count).map({ _ in HappensBefore() }) { order.acquire() }
        second.withLock { first.withLock {} }
      })
  },
  "unpredicted: told to another at the same address": {
    let (first, second) = (NSLock(name: "first"), NSLock(name: "second"))
    let handed = Handed()
    oneByOne(
      {
        first.withLock { second.withLock {} }
        for _ in 0..<9 { HappensBefore().release() }
        let order = HappensBefore()
        order.release()
        handed.order = order
      },
      {
        for _ in 0..<9 { HappensBefore().acquire() }
        handed.order?.acquire()
        second.withLock { first.withLock {} }
      })
  },
  "unpredicted: other mutexes at the same addresses": {
    for round in 0..<60 {
      oneByOne({
        let pair = [Prices(), Prices()].sorted { address($0) < address($1) }
        // Memory is used again in a rhythm, over two rounds mostly: the order has another one.
        let first = round / 2 % 2
        let (outer, inner) = (pair[first], pair[1 - first])
        outer.all.withLock { _ in inner.all.withLock { $0 += 1 } }
      })
    }
  },
  "a value's mutex, taken again": {
    let prices = kept(Prices())
    prices.all.withLock { _ in prices.all.withLock { $0 += 1 } }
  },
]

private func address(_ object: AnyObject) -> UInt {
  UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
}

/// From one thread to another, whose order `oneByOne` makes and nobody sees.
private final class Handed: @unchecked Sendable { var order: HappensBefore? }

private final class Flag: Sendable { let isSet = Atomic(false) }

final class Prices: Sendable { let all = Mutex(0, name: "prices") }

/// Threads of which each begins its work when the one before is done with its own; only time orders
/// them, and a flag that nobody sees.
func oneByOne(_ bodies: (@Sendable () -> Void)...) {
  for (index, body) in bodies.enumerated() {
    let ended = Flag()
    racer("number \(index)") {
      body()
      ended.isSet.store(true, ordering: .releasing)
    }
    while !ended.isSet.load(ordering: .acquiring) { usleep(1000) }
  }
}
