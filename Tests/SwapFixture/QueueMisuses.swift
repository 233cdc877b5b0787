// One mistake each with queues, groups and operations, and what looks like one and is none.
import Dispatch
import Foundation

let queueMisuses: [String: @Sendable () -> Void] = [
  // Traps to come.
  "sync self": {
    let queue = DispatchQueue(label: "self")
    queue.sync { again(queue) }
  },
  "sync self through target": {
    let (lower, ended) = (DispatchQueue(label: "lower"), DispatchSemaphore(value: 0))
    let upper = DispatchQueue(label: "upper", target: lower)
    lower.async {
      upper.sync {}
      ended.signal()
    }
    ended.wait()
  },
  "sync main": { DispatchQueue.main.sync {} },
  "left too often": {
    let group = DispatchGroup()
    group.enter()
    group.leave()
    group.leave()
  },
  "resumed too often": {
    let queue = DispatchQueue(label: "resumed")
    queue.suspend()
    queue.resume()
    queue.resume()
  },
  "released suspended": {
    var queue: DispatchQueue? = DispatchQueue(label: "suspended")
    queue?.suspend()
    queue = nil
  },
  "released inactive": {
    var queue: DispatchQueue? = DispatchQueue(label: "inactive", attributes: .initiallyInactive)
    queue = nil
    _ = queue
  },
  "target circle": {
    let first = DispatchQueue(label: "first", attributes: .initiallyInactive)
    let second = DispatchQueue(label: "second", attributes: .initiallyInactive, target: first)
    first.setTarget(queue: second)
    waitForEver()
  },
  // No traps.
  "abandoned group": {
    for _ in 0..<3 { abandon(2) }
    sleep(1)
  },
  "barrier on global": {
    DispatchQueue.global().sync(flags: .barrier) {}
    DispatchQueue.global().async(flags: .barrier) {}
    sleep(1)
  },
  "operation circle": {
    let (queue, circle) = (OperationQueue(), (0..<3).map { _ in BlockOperation {} })
    for index in 0..<3 { circle[index].addDependency(circle[(index + 1) % 3]) }
    queue.addOperations(circle, waitUntilFinished: false)
    queue.waitUntilAllOperationsAreFinished()
  },
  "operation circle, queued before": {
    let (queue, first, second) = (OperationQueue(), BlockOperation {}, BlockOperation {})
    first.addDependency(second)
    queue.addOperation(first)
    second.addDependency(first)
    first.waitUntilFinished()
  },

  // None of these is a mistake.
  "queues in order": {
    let (serial, shared) = (
      DispatchQueue(label: "serial"), DispatchQueue(label: "shared", attributes: .concurrent)
    )
    let (group, raw) = (DispatchGroup(), DispatchQueue.global())
    for _ in 0..<200 {
      serial.async(group: group) { shared.sync { raw.sync {} } }
      shared.async(group: group) { raw.sync { serial.async {} } }
      shared.async(group: group, flags: .barrier) { serial.async {} }
      group.enter()
      raw.async { group.leave() }
    }
    group.wait()
    serial.sync { shared.sync(flags: .barrier) { DispatchQueue.global().sync {} } }
    DispatchQueue.main.suspend()
    DispatchQueue.main.resume()
    DispatchQueue.global().resume()
  },
  "groups that end early": {
    // Blocks that are still to run leave a group that nobody refers to.
    let (queue, ended) = (DispatchQueue(label: "slow"), DispatchSemaphore(value: 0))
    for _ in 0..<100 {
      let group = DispatchGroup()
      queue.async(group: group) { usleep(100) }
      group.enter()
      group.leave()
      group.notify(queue: queue) { ended.signal() }
    }
    for _ in 0..<100 { ended.wait() }
  },
  "queues that come and go": {
    for round in 0..<2000 {
      let queue = DispatchQueue(
        label: "", attributes: round % 3 == 0 ? .initiallyInactive : .concurrent)
      queue.activate()
      queue.suspend()
      queue.async { _ = round }
      queue.resume()
      queue.sync {}
    }
  },
  "operations in order": {
    let (queue, waiting) = (OperationQueue(), (0..<100).map { _ in BlockOperation {} })
    for (first, second) in zip(waiting, waiting.dropFirst()) { second.addDependency(first) }
    // A circle that is opened again, and one of a cancelled operation.
    let (left, right) = (BlockOperation {}, BlockOperation {})
    left.addDependency(right)
    right.addDependency(left)
    left.cancel()
    queue.addOperations(waiting + [left, right], waitUntilFinished: true)
  },
]

@inline(never) private func again(_ queue: DispatchQueue) {
  queue.sync { say("unreachable") }
}

@inline(never) private func abandon(_ enters: Int) {
  let group = DispatchGroup()
  for _ in 0..<enters { group.enter() }
}
