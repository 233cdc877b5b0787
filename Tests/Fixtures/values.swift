// WITH(support.swift)
// Synchronization.Mutex, whose free path calls nothing; the first argument says which scenario. The
// mutex inherits priority: where waits would make a circle the kernel refuses the last of them, and
// the library stops the program. It must be spoken of all the same.
import Foundation
import Synchronization

@main enum Values {
  static func main() {
    play([
      "abba": abba, "three": three, "self": itself, "self-main": selfMain, "nslock": nslock,
      "queue": queue, "semaphore": semaphore, "group": group, "main": onMain, "cache": cache,
      "victims": victims,
    ])
  }
}

final class Box: Sendable {
  let a = Mutex(0), b = Mutex(0), c = Mutex(0)
}
let box = Box()

func abba() {
  watch(
    start("hopper") {
      box.a.withLock { a in  // HOLDS(hopper)
        meet(2)
        box.b.withLock { $0 += a }  // WAITS(hopper)
      }
    },
    start("skipper") {
      box.b.withLock { b in  // HOLDS(skipper)
        meet(2)
        box.a.withLock { $0 += b }  // WAITS(skipper)
      }
    })
}

func three() {
  watch(
    start("one") {
      box.a.withLock { a in
        meet(3)
        box.b.withLock { $0 += a }  // WAITS(one)
      }
    },
    start("two") {
      box.b.withLock { b in
        meet(3)
        box.c.withLock { $0 += b }  // WAITS(two)
      }
    },
    start("three") {
      box.c.withLock { c in
        meet(3)
        box.a.withLock { $0 += c }  // WAITS(three)
      }
    })
}

/// A counter whose description takes its own lock, printed under it.
final class Counter: Sendable, CustomStringConvertible {
  private let value = Mutex(0)
  var description: String {
    value.withLock { "\($0)" }  // WAITS(printer)
  }
  func bump() {
    value.withLock {  // HOLDS(printer)
      $0 += 1
      print("now \(self)")
    }
  }
}
func itself() {
  let counter = Counter()
  watch(start("printer") { counter.bump() })
}

func selfMain() {
  box.a.withLock { a in  // HOLDS(self-main:main)
    box.a.withLock { $0 += a }  // WAITS(self-main:main)
  }
}

/// One of the two is pthread's: the kernel knows nothing of that, and nobody is refused.
func nslock() {
  let lock = NSLock()
  watch(
    start("saver") {
      lock.lock()  // HOLDS(nslock:saver)
      meet(2)
      box.a.withLock { $0 += 1 }  // WAITS(nslock:saver)
      lock.unlock()
    },
    start("loader") {
      box.a.withLock { _ in
        meet(2)
        lock.lock()  // WAITS(nslock:loader)
        lock.unlock()
      }
    })
}

func queue() {
  let queue = DispatchQueue(label: "history")
  watch(
    start("undo") {
      box.a.withLock { _ in
        meet(2)
        queue.sync {}  // WAITS(undo)
      }
    },
    start("redo") {
      queue.sync {  // HOLDS(redo)
        meet(2)
        box.a.withLock { $0 += 1 }  // WAITS(redo)
      }
    })
}

/// Who waits for the signal holds what the signaller needs first.
func semaphore() {
  let ready = DispatchSemaphore(value: 0)
  start("preparer") {
    meet(2)
    box.b.withLock { $0 += 1 }  // WAITS(preparer)
    ready.signal()
  }
  box.b.withLock { _ in
    meet(2)
    ready.wait()  // WAITS(semaphore:main)
  }
}

func group() {
  let group = DispatchGroup()
  let merger = start("merger") {
    box.c.withLock { _ in
      for i in 0..<3 {
        DispatchQueue.global().async(group: group) {
          call("part-\(i)")
          box.c.withLock { $0 += i }  // WAITS(part-*)
        }
      }
      group.wait()  // WAITS(merger)
    }
  }
  watch(merger)
}

func onMain() {
  start("painter") {
    box.a.withLock { _ in
      meet(2)
      DispatchQueue.main.sync {}  // WAITS(painter)
    }
  }
  DispatchQueue.main.async {
    meet(2)
    box.a.withLock { $0 += 1 }  // WAITS(main:main)
    done()
  }
  RunLoop.main.run()
}

/// A cache makes its entries under its lock; making one asks another cache, and that one this.
final class Memo: Sendable {
  private let entries = Mutex<[Int: Int]>([:])
  private let make: @Sendable (Int) -> Int
  init(_ make: @escaping @Sendable (Int) -> Int) { self.make = make }
  func value(_ key: Int) -> Int {
    entries.withLock { entries in  // WAITS(even,odd)
      if let value = entries[key] { return value }
      meet(2)
      let value = make(key)
      entries[key] = value
      return value
    }
  }
}
let even: Memo = Memo { $0 == 0 ? 0 : odd.value($0 - 1) + 1 }
let odd: Memo = Memo { even.value($0 - 1) + 1 }
func cache() {
  watch(start("even") { print(even.value(6)) }, start("odd") { print(odd.value(7)) })
}

func victims() {
  let lock = NSLock()
  start("saver") {
    lock.lock()  // HOLDS(victims:saver)
    meet(2)
    box.a.withLock { $0 += 1 }  // WAITS(victims:saver)
    lock.unlock()
  }
  start("loader") {
    box.a.withLock { _ in
      meet(2)
      lock.lock()  // WAITS(victims:loader)
      lock.unlock()
    }
  }
  pause(150)
  for i in 0..<3 { start("victim-\(i)") { box.a.withLock { $0 += i } } }
  pause(100)
  lock.lock()
  lock.unlock()
}
