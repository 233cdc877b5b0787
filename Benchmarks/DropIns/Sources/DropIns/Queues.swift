// Queues and groups: original and drop-in.
import Dispatch
import InstrumentedLocks

@inline(never) func sync(_ queue: DispatchQueue) -> Double {
  var sum = 0
  return nanoseconds(count / 4) { for _ in 0..<count / 4 { queue.sync { sum &+= 1 } } }
}
@inline(never) func ourSync(_ queue: InstrumentedQueue) -> Double {
  var sum = 0
  return nanoseconds(count / 4) { for _ in 0..<count / 4 { queue.sync { sum &+= 1 } } }
}
@inline(never) func result(_ queue: DispatchQueue) -> Double {
  var sum = 0
  return nanoseconds(count / 4) { for index in 0..<count / 4 { sum &+= queue.sync { index } } }
}
@inline(never) func ourResult(_ queue: InstrumentedQueue) -> Double {
  var sum = 0
  return nanoseconds(count / 4) { for index in 0..<count / 4 { sum &+= queue.sync { index } } }
}
@inline(never) func roundTrip(_ queue: DispatchQueue) -> Double {
  let ended = DispatchSemaphore(value: 0)
  return nanoseconds(10_000) {
    for _ in 0..<10_000 {
      queue.async { ended.signal() }
      ended.wait()
    }
  }
}
@inline(never) func ourRoundTrip(_ queue: InstrumentedQueue) -> Double {
  let ended = DispatchSemaphore(value: 0)
  return nanoseconds(10_000) {
    for _ in 0..<10_000 {
      queue.async { ended.signal() }
      ended.wait()
    }
  }
}
@inline(never) func enterAndLeave(_ group: DispatchGroup) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      group.enter()
      group.leave()
    }
  }
}
@inline(never) func ourEnterAndLeave(_ group: InstrumentedGroup) -> Double {
  nanoseconds(count) {
    for _ in 0..<count {
      group.enter()
      group.leave()
    }
  }
}

func compareQueues(_ suffix: String) {
  let (queue, ours) = (DispatchQueue(label: "original"), InstrumentedQueue(label: "drop-in"))
  compare("queue.sync" + suffix, { sync(queue) }, { ourSync(ours) })
  compare("queue.sync, a result" + suffix, { result(queue) }, { ourResult(ours) })
  compare(
    "queue.async round trip" + suffix, median: true, { roundTrip(queue) }, { ourRoundTrip(ours) })
  let (group, ourGroup) = (DispatchGroup(), InstrumentedGroup())
  compare("group enter + leave" + suffix, { enterAndLeave(group) }, { ourEnterAndLeave(ourGroup) })
}
