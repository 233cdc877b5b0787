// WITH(support.swift)
// What other lock checkers get wrong, one scenario for each: rows that are about Swift's primitives
// and libdispatch. The others are in peers.c.
import Foundation

@main enum Peers {
  static func main() {
    play([
      "nslock": nslock, "queues": queues, "queue-lock": queueLock, "recursive-sync": recursiveSync,
      "extra-leave": extraLeave, "freed-low": freedLow,
    ])
  }
}

let a = NSLock()
let b = NSLock()
let first = Flag()

func nslock() {
  let one = start("one") {
    a.lock()  // HOLDS(one)
    b.lock()  // WAITS(one)
    b.unlock()
    a.unlock()
    first.set()
  }
  let two = start("two") {
    first.poll()
    b.lock()  // HOLDS(two)
    a.lock()  // WAITS(two)
    a.unlock()
    b.unlock()
  }
  watch(one, two)
}

func queues() {
  let left = DispatchQueue(label: "left")
  let right = DispatchQueue(label: "right")
  let one = start("left-first") {
    left.sync {  // HOLDS(left-first)
      right.sync {}  // WAITS(left-first)
    }
    first.set()
  }
  let two = start("right-first") {
    first.poll()
    right.sync {  // HOLDS(right-first)
      left.sync {}  // WAITS(right-first)
    }
  }
  watch(one, two)
}

func queueLock() {
  let queue = DispatchQueue(label: "cache")
  let one = start("on-queue") {
    queue.sync {  // HOLDS(on-queue)
      a.lock()  // WAITS(on-queue)
      a.unlock()
    }
    first.set()
  }
  let two = start("under-lock") {
    first.poll()
    a.lock()  // HOLDS(under-lock)
    queue.sync {}  // WAITS(under-lock)
    a.unlock()
  }
  watch(one, two)
}

// These three trap, elsewhere with nothing but 'Illegal instruction'.
func recursiveSync() {
  let queue = DispatchQueue(label: "cache")
  let one = start("caller") {
    queue.sync {  // HOLDS(caller)
      queue.sync {}  // WAITS(caller)
    }
  }
  watch(one)
}
func extraLeave() {
  let group = DispatchGroup()
  group.enter()
  group.leave()
  group.leave()
}
func freedLow() {
  let semaphore = DispatchSemaphore(value: 1)
  semaphore.wait()
}
