// What libdispatch allows, close to what it traps on: nothing may be said of it. One scenario, for
// what is checked before each call is looked at by all of them.
import Dispatch
import Foundation

setvbuf(stdout, nil, _IOLBF, 0)
alarm(60)
func note(_ what: Any...) {}

let a = DispatchQueue(label: "a")
let b = DispatchQueue(label: "b")
let d = DispatchQueue(label: "d")
let c = DispatchQueue(label: "c", attributes: .concurrent)
func background(_ body: @escaping @Sendable () -> Void) {
  let t = Thread(block: body)
  t.stackSize = 1 << 20
  t.start()
  while !t.isFinished { RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.01)) }
}
// sync to main from another thread while main runs its loop, and from a queue
background { DispatchQueue.main.sync { note("main from thread", Thread.isMainThread) } }
// (a queue that main itself never syncs onto: that would be two orders)
let e = DispatchQueue(label: "e")
background { e.sync { DispatchQueue.main.sync { note("main from e") } } }
// a block on main that syncs elsewhere and back to itself is not: elsewhere only
background { DispatchQueue.main.sync { d.sync { b.sync { note("main to d to b") } } } }
// readers nested in readers, other queues nested, the same target
c.sync { c.sync { note("reader in reader") } }
let r = DispatchGroup()
c.async(group: r) { c.sync { note("reader in async reader") } }
r.wait()
c.sync(flags: .barrier) { note("barrier") }
c.sync { a.sync { b.sync { note("three deep") } } }
let t1 = DispatchQueue(label: "t1", target: a)
let t2 = DispatchQueue(label: "t2", attributes: .concurrent, target: c)
t1.sync { note("target") }
t2.sync { t2.sync { c.sync { note("concurrent target") } } }
a.sync { note(a.label) }
a.sync { note(b.label) }
DispatchQueue.global().sync { DispatchQueue.global().sync { note("global in global") } }
for _ in 0..<1000 {
  a.async {}
  a.sync {}
}
DispatchQueue.concurrentPerform(iterations: 16) { _ in a.sync { b.sync {} } }
// two threads hand the same queue to and fro
for _ in 0..<4 {
  Thread.detachNewThread {
    for _ in 0..<500 {
      a.sync {}
      c.sync {}
      c.sync(flags: .barrier) {}
    }
  }
}
for _ in 0..<500 {
  a.sync {}
  c.sync(flags: .barrier) {}
}
// groups
func dropped() {
  let g = DispatchGroup()
  for _ in 0..<8 { a.async(group: g) { usleep(1000) } }
  g.notify(queue: b) { note("notified") }
}
dropped()
a.sync {}
b.sync {}
func droppedByHand() {
  let g = DispatchGroup()
  g.enter()
  a.async {
    usleep(1000)
    g.leave()
  }
  g.notify(queue: b) { note("by hand") }
}
droppedByHand()
a.sync {}
b.sync {}
func both() {
  let g = DispatchGroup()
  g.enter()
  a.async(group: g) { usleep(500) }
  a.async { g.leave() }
  g.notify(queue: b) { note("both") }
}
both()
a.sync {}
b.sync {}
for _ in 0..<300 {
  let g = DispatchGroup()
  for _ in 0..<5 {
    g.enter()
    a.async { g.leave() }
    c.async(group: g) {}
  }
  g.wait()
}
let g = DispatchGroup()
g.enter()
note(g.wait(timeout: .now()) == .timedOut, g.wait(timeout: .now() + 0.01) == .timedOut)
g.leave()
note(g.wait(timeout: .now()) == .success)
// semaphores
let zero = DispatchSemaphore(value: 0)
zero.signal()
zero.signal()
zero.signal()
zero.wait()
note("zero")
let limiter = DispatchSemaphore(value: 3)
for _ in 0..<40 {
  limiter.wait()
  DispatchQueue.global().async {
    usleep(200)
    limiter.signal()
  }
}
for _ in 0..<3 { limiter.wait() }
for _ in 0..<3 { limiter.signal() }
let one = DispatchSemaphore(value: 1)
note(
  one.wait(timeout: .now()) == .success, one.wait(timeout: .now()) == .timedOut,
  one.wait(timeout: .now() + 0.02) == .timedOut)
one.signal()
// suspended and resumed, sources, work items
a.suspend()
a.suspend()
a.resume()
a.resume()
let i = DispatchQueue(label: "i", attributes: [.concurrent, .initiallyInactive])
i.activate()
i.activate()
i.sync { note("active") }
let j = DispatchQueue(label: "j", attributes: .initiallyInactive)
j.setTarget(queue: a)
j.suspend()
j.activate()
j.resume()
j.sync { note("j") }
do {
  let s = DispatchSource.makeTimerSource(queue: b)
  s.setEventHandler {}
  s.schedule(deadline: .now() + 5)
  s.resume()
  s.suspend()
  s.resume()
  s.cancel()
}
do {
  let s = DispatchSource.makeTimerSource(queue: b)
  s.activate()
  s.cancel()
}
let w = DispatchWorkItem { usleep(20_000) }
a.async(execute: w)
note(w.wait(timeout: .now() + 0.001) == .timedOut)
w.wait()
note("waited")
for _ in 0..<200 {
  let w = DispatchWorkItem(qos: .utility) {}
  w.notify(queue: b) {}
  a.async(execute: w)
  w.wait()
}
c.async(flags: .barrier) { note("async barrier") }
c.sync {}
let o = OperationQueue()
o.maxConcurrentOperationCount = 2
for _ in 0..<50 { o.addOperation { usleep(100) } }
o.addBarrierBlock { note("operations") }
o.waitUntilAllOperationsAreFinished()
DispatchQueue.global().asyncAfter(deadline: .now() + 0.01) { one.signal() }
one.wait()
one.wait()
one.signal()
print("DONE")
