// WITH(support.swift)
// Lock orders that could deadlock and, left to themselves, do not: here each thread is done long before
// the next one begins, and nothing but time orders them. And near misses.
import Foundation

private func after(_ milliseconds: UInt32, _ name: String, _ body: @escaping () -> Void) -> Thread {
  start(name) {
    pause(milliseconds)
    body()
  }
}

private func both(_ outer: NSLock, _ inner: NSLock) {
  outer.lock()
  pause(1)
  inner.lock()
  inner.unlock()
  outer.unlock()
}

func philosophers() {
  let forks = (0..<5).map { _ in NSLock() }
  let threads = (0..<5).map { seat in
    after(UInt32(20 * seat), "philosopher \(seat)") {
      for _ in 0..<2 { both(forks[seat], forks[(seat + 1) % 5]) }
    }
  }
  for thread in threads { watch(thread) }
}

func lockAndQueue() {
  let lock = NSLock()
  let queue = DispatchQueue(label: "ledger")
  let finished = Flag()
  let caller = after(0, "caller") {
    lock.lock()
    queue.sync { pause(1) }
    lock.unlock()
  }
  let submitter = after(50, "submitter") {
    queue.async {
      lock.lock()
      pause(1)
      lock.unlock()
      finished.set()
    }
  }
  watch(caller, submitter)
  finished.poll()
}

func threeLocks() {
  let (first, second, third) = (NSLock(), NSLock(), NSLock())
  watch(
    after(0, "one") { both(first, second) },
    after(30, "two") { both(second, third) },
    after(60, "three") { both(third, first) })
}

func writerAndMutex() {
  var file = pthread_rwlock_t()
  pthread_rwlock_init(&file, nil)
  let lock = NSLock()
  withUnsafeMutablePointer(to: &file) { file in
    // Borrowed for as long as the threads live.
    nonisolated(unsafe) let file = file
    watch(
      after(0, "writer") {
        pthread_rwlock_wrlock(file)
        pause(1)
        lock.lock()
        lock.unlock()
        pthread_rwlock_unlock(file)
      },
      after(40, "reader") {
        lock.lock()
        pause(1)
        pthread_rwlock_rdlock(file)
        pthread_rwlock_unlock(file)
        lock.unlock()
      })
  }
}

func twoQueues() {
  let (a, b) = (DispatchQueue(label: "a"), DispatchQueue(label: "b"))
  let (one, two) = (Flag(), Flag())
  func cross(_ outer: DispatchQueue, _ inner: DispatchQueue, _ end: Flag) {
    outer.async {
      inner.sync { pause(1) }
      end.set()
    }
  }
  watch(after(0, "one") { cross(a, b, one) }, after(50, "two") { cross(b, a, two) })
  one.poll()
  two.poll()
}

/// What runs on a concurrent queue has no owner that its memory names.
func barrier() {
  let lock = NSLock()
  let queue = DispatchQueue(label: "cache", attributes: .concurrent)
  let finished = Flag()
  let writer = after(0, "writer") {
    lock.lock()
    queue.sync(flags: .barrier) { pause(1) }
    lock.unlock()
  }
  let submitter = after(50, "submitter") {
    queue.async {
      lock.lock()
      pause(1)
      lock.unlock()
      finished.set()
    }
  }
  watch(writer, submitter)
  finished.poll()
}

/// The second thread takes the first one's lock once before it takes both in its own order: the first
/// one, held back early, stands in its way.
func inTheWay() {
  let (a, b) = (NSLock(), NSLock())
  watch(
    after(0, "early") { both(a, b) },
    after(50, "late") {
      a.lock()
      pause(1)
      a.unlock()
      both(b, a)
    })
}

func underGate() {
  let (gate, a, b) = (NSLock(), NSLock(), NSLock())
  watch(
    after(0, "one") {
      gate.lock()
      both(a, b)
      gate.unlock()
    },
    after(30, "two") {
      gate.lock()
      both(b, a)
      gate.unlock()
    })
}

func handOverHand() {
  let locks = (0..<6).map { _ in NSLock() }
  func walk() {
    locks[0].lock()
    for next in 1..<6 {
      locks[next].lock()
      locks[next - 1].unlock()
    }
    locks[5].unlock()
  }
  watch(after(0, "one", walk), after(30, "two", walk))
}

func joined() {
  let (a, b) = (NSLock(), NSLock())
  // Foundation's threads cannot be joined.
  func run(_ outer: NSLock, _ inner: NSLock) {
    var thread = pthread_t()
    let locks = Unmanaged.passRetained([outer, inner] as NSArray)
    pthread_create(
      &thread, nil,
      { argument in
        guard let argument,
          let locks = Unmanaged<NSArray>.fromOpaque(argument).takeRetainedValue() as? [NSLock]
        else { return nil }
        both(locks[0], locks[1])
        return nil
      }, locks.toOpaque())
    pthread_join(thread, nil)
  }
  run(a, b)
  run(b, a)
}

/// Ordered by a flag that nobody can see: predicted, and never happens.
func unreachable() {
  let (a, b) = (NSLock(), NSLock())
  let done = Flag()
  watch(
    start("first") {
      both(a, b)
      done.set()
    },
    start("second") {
      done.poll()
      both(b, a)
    })
}

@main struct Predicted {
  static func main() {
    play([
      "philosophers": philosophers, "queue": lockAndQueue, "three": threeLocks,
      "writer": writerAndMutex, "queues": twoQueues, "barrier": barrier, "in-the-way": inTheWay,
      "gate": underGate,
      "hand-over-hand": handOverHand, "joined": joined, "unreachable": unreachable,
    ])
  }
}
