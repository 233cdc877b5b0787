// Times the primitives that hangcheck's agent stands in front of. Prints a name and the nanoseconds of
// one round, the smallest of several slices. Benchmarks/run runs it alone and under the agent.
import Foundation
import Synchronization

func nanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// The smallest mean over slices: what the machine's other work adds is left out.
@inline(__always)
func smallest(slices: Int, rounds: Int, _ body: (Int) -> Void) -> Double {
  body(rounds / 10)
  var best = Double.infinity
  for _ in 0..<slices {
    let begun = nanoseconds()
    body(rounds)
    best = min(best, Double(nanoseconds() - begun) / Double(rounds))
  }
  return best
}

let slices = 10
let rounds = 200_000
let a = NSLock()
let b = NSLock()
let recursive = NSRecursiveLock()
let m = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 2)
pthread_mutex_init(m, nil)
pthread_mutex_init(m + 1, nil)
let rw = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
pthread_rwlock_init(rw, nil)

// Foundation's lock, and the main thread, are slower until a second thread was there.
let warm = Thread { a.withLock {} }
warm.start()
while !warm.isFinished { usleep(1000) }

// Two threads want one lock, from the same moment on: wall-clock time of one round of both. Each works for about 60 ns with
// the lock and 60 ns without it: with empty sections one thread has the lock to itself for thousands of rounds, and what
// is measured is the pair without contention.
let each = 200_000
@inline(never) func work(_ steps: Int) {
  for step in 0..<steps { sink = sink &+ step }
}
nonisolated(unsafe) var sink = 0
let ready = Atomic<Int>(0)
func contended() -> Double {
  var threads: [pthread_t] = []
  ready.store(0, ordering: .sequentiallyConsistent)
  for _ in 0..<2 {
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { _ in
        ready.add(1, ordering: .sequentiallyConsistent)
        while ready.load(ordering: .sequentiallyConsistent) < 3 {}
        for _ in 0..<each {
          pthread_mutex_lock(m)
          work(60)
          pthread_mutex_unlock(m)
          work(60)
        }
        return nil
      }, nil)
    threads.append(thread)
  }
  while ready.load(ordering: .sequentiallyConsistent) < 2 { usleep(100) }
  let begun = nanoseconds()
  ready.store(3, ordering: .sequentiallyConsistent)
  for thread in threads { pthread_join(thread, nil) }
  return Double(nanoseconds() - begun) / Double(each)
}

func show(_ name: String, _ value: Double) { print("\(name)\t\(value)") }

show(
  "NSLock pair",
  smallest(slices: slices, rounds: rounds) {
    for _ in 0..<$0 {
      a.lock()
      a.unlock()
    }
  })
show(
  "NSRecursiveLock pair",
  smallest(slices: slices, rounds: rounds) {
    for _ in 0..<$0 {
      recursive.lock()
      recursive.unlock()
    }
  })
show(
  "pthread mutex pair",
  smallest(slices: slices, rounds: rounds) {
    for _ in 0..<$0 {
      pthread_mutex_lock(m)
      pthread_mutex_unlock(m)
    }
  })
show(
  "rwlock read pair",
  smallest(slices: slices, rounds: rounds) {
    for _ in 0..<$0 {
      pthread_rwlock_rdlock(rw)
      pthread_rwlock_unlock(rw)
    }
  })
show(
  "two nested mutexes",
  smallest(slices: slices, rounds: rounds) {
    for _ in 0..<$0 {
      pthread_mutex_lock(m)
      pthread_mutex_lock(m + 1)
      pthread_mutex_unlock(m + 1)
      pthread_mutex_unlock(m)
    }
  })
show(
  "two nested NSLocks",
  smallest(slices: slices, rounds: rounds) {
    for _ in 0..<$0 {
      a.lock()
      b.lock()
      b.unlock()
      a.unlock()
    }
  })
// The median: when one thread has the lock to itself for a while, a run is quicker than any contention.
show("two threads contend", (0..<9).map { _ in contended() }.sorted()[4])

let permit = DispatchSemaphore(value: 1)
show(
  "semaphore wait+signal",
  smallest(slices: slices, rounds: rounds) {
    for _ in 0..<$0 {
      permit.wait()
      permit.signal()
    }
  })
let serial = DispatchQueue(label: "serial")
show(
  "queue.sync",
  smallest(slices: slices, rounds: rounds) {
    for _ in 0..<$0 { serial.sync { sink = sink &+ 1 } }
  })
let group = DispatchGroup()
show(
  "group enter+leave",
  smallest(slices: slices, rounds: rounds) {
    for _ in 0..<$0 {
      group.enter()
      group.leave()
    }
  })
// The queue's thread sleeps between two rounds, or not, as the machine likes: the median.
let answered = DispatchSemaphore(value: 0)
show(
  "async round trip",
  (0..<9).map { _ in
    smallest(slices: 3, rounds: 5_000) {
      for _ in 0..<$0 {
        serial.async { answered.signal() }
        answered.wait()
      }
    }
  }.sorted()[4])
let modern = Mutex(0)
show(
  "Mutex pair",
  smallest(slices: slices, rounds: rounds) {
    for _ in 0..<$0 { modern.withLock { $0 = $0 &+ 1 } }
  })
