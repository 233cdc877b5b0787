// Each figure is the least of several rounds, original and drop-in in turns: the machine's noise
// only ever adds. Where two threads contend it is the median: rounds differ by whoever runs where.
import Foundation
import InstrumentedLocks
import Watchdog

func nanoseconds(_ count: Int, _ body: () -> Void) -> Double {
  let start = DispatchTime.now().uptimeNanoseconds
  body()
  return Double(DispatchTime.now().uptimeNanoseconds - start) / Double(count)
}

func compare(
  _ name: String, rounds: Int = 15, median: Bool = false, _ raw: () -> Double,
  _ dropIn: () -> Double
) {
  var (theirs, ours): ([Double], [Double]) = ([], [])
  for _ in 0..<rounds {
    theirs.append(raw())
    ours.append(dropIn())
  }
  func figure(_ values: [Double]) -> Double { values.sorted()[median ? rounds / 2 : 0] }
  func text(_ value: Double) -> String { String(format: "%8.2f", value) }
  let title = name.padding(toLength: 34, withPad: " ", startingAt: 0)
  let (a, b) = (figure(theirs), figure(ours))
  print(title, text(a), text(b), text(b / a))
}

let count = 1_000_000

// Not generic: what a program's own code compiles to.
@inline(never) func pair(_ lock: NSLock) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      lock.lock()
      lock.unlock()
    }
  }
}
@inline(never) func ourPair(_ lock: InstrumentedLock) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      lock.lock()
      lock.unlock()
    }
  }
}
@inline(never) func pair(_ lock: NSRecursiveLock) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      lock.lock()
      lock.unlock()
    }
  }
}
@inline(never) func ourPair(_ lock: InstrumentedRecursiveLock) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      lock.lock()
      lock.unlock()
    }
  }
}
@inline(never) func nested(_ a: NSLock, _ b: NSLock) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      a.lock()
      b.lock()
      b.unlock()
      a.unlock()
    }
  }
}
@inline(never) func ourNested(_ a: InstrumentedLock, _ b: InstrumentedLock) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      a.lock()
      b.lock()
      b.unlock()
      a.unlock()
    }
  }
}
@inline(never) func closure(_ lock: NSLock) -> Double {
  var sum = 0
  return nanoseconds(count) { for _ in 0..<count { lock.withLock { sum &+= 1 } } }
}
@inline(never) func ourClosure(_ lock: InstrumentedLock) -> Double {
  var sum = 0
  return nanoseconds(count) { for _ in 0..<count { lock.withLock { sum &+= 1 } } }
}

/// Two threads that do a little work inside and outside the lock.
func contended(_ lock: any NSLocking & Sendable) -> Double {
  let (count, ended) = (100_000, DispatchSemaphore(value: 0))
  return nanoseconds(count) {
    for _ in 0..<2 {
      Thread {
        for _ in 0..<count {
          lock.lock()
          work()
          lock.unlock()
          work()
        }
        ended.signal()
      }.start()
    }
    ended.wait()
    ended.wait()
  }
}
@inline(never) func work() { for index in 0..<50 { blackHole(index) } }
@inline(never) @_optimize(none) func blackHole(_ value: Int) {}

print(
  "nanoseconds".padding(toLength: 34, withPad: " ", startingAt: 0), " original  drop-in    ratio")
if CommandLine.arguments.contains("races") {
  compareRaces()
  exit(0)
}
for watched in [false, true] {
  if watched { Watchdog.shared.start() }
  let suffix = watched ? ", watched" : ""
  comparePrimitives(suffix)
  if CommandLine.arguments.contains("primitives") { continue }
  let (raw, ours) = (NSLock(), InstrumentedLock())
  compare("lock + unlock" + suffix, { pair(raw) }, { ourPair(ours) })
  let (rawRecursive, oursRecursive) = (NSRecursiveLock(), InstrumentedRecursiveLock())
  compare("recursive lock + unlock" + suffix, { pair(rawRecursive) }, { ourPair(oursRecursive) })
  let (raw2, ours2) = (NSLock(), InstrumentedLock())
  compare("two nested" + suffix, { nested(raw, raw2) }, { ourNested(ours, ours2) })
  compare("withLock" + suffix, { closure(raw) }, { ourClosure(ours) })
  compare(
    "two threads contending" + suffix, rounds: 41, median: true, { contended(raw) },
    { contended(ours) })
  compareQueues(suffix)
  compare(
    "made and gone" + suffix, rounds: 5,
    { nanoseconds(count / 10) { for _ in 0..<count / 10 { _ = NSLock() } } },
    { nanoseconds(count / 10) { for _ in 0..<count / 10 { _ = InstrumentedLock() } } })
}
if CommandLine.arguments.contains("primitives") { exit(0) }
compareRaces()
Watchdog.shared.stop()
usleep(100_000)
Watchdog.shared.start()
var before = rusage()
var after = rusage()
getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &before)
sleep(5)
getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &after)
func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
let used =
  seconds(after.ru_utime) + seconds(after.ru_stime) - seconds(before.ru_utime)
  - seconds(before.ru_stime)
print(String(format: "idle watchdog: %.3f %% of one processor", used / 5 * 100))
