// WITH(support.swift)
// Queues that wait for themselves or for each other; the first argument says which. What libdispatch
// recognises it traps on: such a program must be spoken of before it is gone.
import Foundation

@main enum Queues {
  static func main() {
    play([
      "cache": cache, "async-sync": asyncSync, "through": through, "third": third,
      "main-main": mainMain, "target": target, "targets": targets, "account": account,
      "ring": ring, "upgrade": upgrade, "quiet-upgrade": quietUpgrade, "reader": reader,
      "writers": writers, "event-bus": eventBus, "delegate": delegate, "main-hop": mainHop,
      "lock-in-sync": lockInSync, "perform": perform, "item-wait": itemWait,
      "item-behind": itemBehind, "barrier-wait": barrierWait, "victims": victims,
      "suspended": suspended, "inactive": inactive, "crowd": crowd, "nested-reads": nestedReads,
    ])
  }
}

// MARK: one thread alone: a trap to come

/// A cache whose eviction uses the same accessor as everybody else.
final class Cache {
  private let queue = DispatchQueue(label: "cache.entries")
  private var entries: [String: Int] = [:]
  func count() -> Int {
    queue.sync { entries.count }  // WAITS(evictor)
  }
  func insert(_ key: String) {
    queue.sync {  // HOLDS(evictor)
      entries[key] = 1
      if count() > 1 { entries.removeAll() }
    }
  }
}
func cache() {
  let cache = Cache()
  watch(start("evictor") { cache.insert("a") })
}

/// The socket's write fails on the queue on which it was submitted; closing syncs onto it.
func asyncSync() {
  let queue = DispatchQueue(label: "socket.send")
  let closed = Flag()
  func close() {
    queue.sync { closed.set() }  // WAITS(sender)
  }
  queue.async {
    call("sender")
    close()
  }
  closed.poll()
}

/// A → B → A in nested calls of one thread.
func through() {
  let (store, log) = (DispatchQueue(label: "store"), DispatchQueue(label: "log"))
  watch(
    start("saver") {
      store.sync {  // HOLDS(saver)
        log.sync {
          store.sync {}  // WAITS(saver)
        }
      }
    })
}

/// A → B → A where B works on a thread of its own: nobody traps, both stand still.
func third() {
  let (model, disk) = (DispatchQueue(label: "model"), DispatchQueue(label: "disk"))
  let flushed = DispatchSemaphore(value: 0)
  watch(
    start("editor") {
      model.sync {  // HOLDS(editor)
        disk.async {
          call("flusher")
          model.sync {}  // WAITS(flusher)
          flushed.signal()
        }
        pause(100)
        disk.sync {}  // WAITS(editor)
      }
    })
}

/// Under dispatchMain the main thread is gone: a worker serves the main queue.
func mainMain() {
  DispatchQueue.main.async {
    call("main-queue")
    DispatchQueue.main.sync { print("uploaded") }  // WAITS(main-queue)
    done()
  }
  dispatchMain()
}

/// Two queues with one target are one queue.
func target() {
  let network = DispatchQueue(label: "network")
  let requests = DispatchQueue(label: "requests", target: network)
  let responses = DispatchQueue(label: "responses", target: network)
  watch(
    start("client") {
      requests.sync {  // HOLDS(client)
        responses.sync { print("received") }  // WAITS(client)
      }
    })
}

/// The same where what holds the target is another thread, which waits for the first.
func targets() {
  let root = DispatchQueue(label: "root")
  let left = DispatchQueue(label: "left", target: root)
  let other = DispatchQueue(label: "other")
  watch(
    start("lefty") {
      left.sync {  // HOLDS(lefty)
        meet(2)
        other.sync {}  // WAITS(lefty)
      }
    },
    start("rooty") {
      other.sync {  // HOLDS(rooty)
        meet(2)
        root.sync {}  // WAITS(rooty)
      }
    })
}

// MARK: threads that wait for each other

final class Account {
  let queue: DispatchQueue
  var balance = 100
  init(_ name: String) { queue = DispatchQueue(label: "account.\(name)") }
  func deposit(_ amount: Int) { balance += amount }
}
func account() {
  let (savings, checking) = (Account("savings"), Account("checking"))
  watch(
    start("salary") {
      savings.queue.sync {  // HOLDS(salary)
        meet(2)
        checking.queue.sync { checking.deposit(5) }  // WAITS(salary)
      }
    },
    start("rent") {
      checking.queue.sync {  // HOLDS(rent)
        meet(2)
        savings.queue.sync { savings.deposit(5) }  // WAITS(rent)
      }
    })
}

func ring() {
  let queues = (0..<5).map { DispatchQueue(label: "stage.\($0)") }
  for i in 0..<5 {
    start("stage-\(i)") {
      queues[i].sync {  // HOLDS(stage-*)
        meet(5)
        queues[(i + 1) % 5].sync {}  // WAITS(stage-*)
      }
    }
  }
  while true { pause(50) }
}

/// A reader that becomes a writer while it reads: silent, since no owner is noted for readers.
func upgrade() {
  let settings = DispatchQueue(label: "settings", attributes: .concurrent)
  watch(
    start("settler") {
      settings.sync {  // HOLDS(settler)
        settings.sync(flags: .barrier) { print("written") }  // WAITS(settler)
      }
    })
}

func quietUpgrade() {
  let images = DispatchQueue(label: "images", attributes: .concurrent)
  let stored = Flag()
  images.async {
    call("decoder")
    images.sync(flags: .barrier) { stored.set() }  // WAITS(decoder)
  }
  stored.poll()
}

/// A nested read behind a writer that came in between.
func reader() {
  let table = DispatchQueue(label: "table", attributes: .concurrent)
  var rows = ["a": 1]
  func row(_ key: String) -> Int? {
    table.sync { rows[key] }  // WAITS(browser)
  }
  let isReading = Flag()
  let browser = start("browser") {
    table.sync {  // HOLDS(browser)
      isReading.set()
      pause(150)
      print(row("a") ?? 0)
    }
  }
  isReading.poll()
  table.async(flags: .barrier) { rows["b"] = 2 }
  watch(browser)
}

/// Two rwlocks made of queues, read in one order and written in the other.
func writers() {
  let users = DispatchQueue(label: "users", attributes: .concurrent)
  let rooms = DispatchQueue(label: "rooms", attributes: .concurrent)
  watch(
    start("joiner") {
      users.sync(flags: .barrier) {  // HOLDS(joiner)
        meet(2)
        rooms.sync {}  // WAITS(joiner)
      }
    },
    start("leaver") {
      rooms.sync(flags: .barrier) {  // HOLDS(leaver)
        meet(2)
        users.sync {}  // WAITS(leaver)
      }
    })
}

/// A bus that calls its subscribers on its queue; one of them asks the bus from the queue it owns,
/// onto which the publisher syncs.
func eventBus() {
  let (bus, screen) = (DispatchQueue(label: "bus"), DispatchQueue(label: "screen"))
  let publisher = start("publisher") {
    bus.sync {  // HOLDS(publisher)
      meet(2)
      screen.sync { print("drawn") }  // WAITS(publisher)
    }
  }
  screen.async {
    call("subscriber")
    meet(2)
    bus.sync { print("asked") }  // WAITS(subscriber)
  }
  watch(publisher)
}

/// A delegate is called under the manager's lock and syncs onto the queue that wants that lock.
final class Manager {
  let lock = NSLock()
  let queue = DispatchQueue(label: "manager.work")
  var delegate: () -> Void = {}
  func finish() {
    lock.lock()  // HOLDS(finisher)
    meet(2)
    delegate()
    lock.unlock()
  }
  func cancel() {
    queue.async {
      call("canceller")
      meet(2)
      self.lock.lock()  // WAITS(canceller)
      self.lock.unlock()
    }
  }
}
func delegate() {
  let manager = Manager()
  manager.delegate = {
    manager.queue.sync { print("told") }  // WAITS(finisher)
  }
  manager.cancel()
  watch(start("finisher") { manager.finish() })
}

/// A worker asks the main thread, which waits for the lock that the worker holds.
func mainHop() {
  let library = NSLock()
  start("importer") {
    library.lock()  // HOLDS(importer)
    meet(2)
    DispatchQueue.main.sync { print("progress") }  // WAITS(importer)
    library.unlock()
  }
  DispatchQueue.main.async {
    meet(2)
    library.lock()  // WAITS(main-hop:main)
    library.unlock()
    done()
  }
  RunLoop.main.run()
}

func lockInSync() {
  let queue = DispatchQueue(label: "journal")
  let lock = NSRecursiveLock()
  watch(
    start("writer") {
      queue.sync {  // HOLDS(writer)
        meet(2)
        lock.lock()  // WAITS(writer)
        lock.unlock()
      }
    },
    start("rotator") {
      lock.lock()  // HOLDS(rotator)
      meet(2)
      queue.sync {}  // WAITS(rotator)
      lock.unlock()
    })
}

/// Each iteration wants the lock that the caller of concurrentPerform holds.
func perform() {
  let tiles = NSLock()
  watch(
    start("renderer") {
      tiles.lock()  // HOLDS(renderer)
      DispatchQueue.concurrentPerform(iterations: 4) { _ in
        tiles.lock()  // WAITS(renderer)
        tiles.unlock()
      }
      tiles.unlock()
    })
}

// MARK: work items

/// A work item waited for on the very queue that would run it.
func itemWait() {
  let queue = DispatchQueue(label: "thumbnails")
  let isDone = Flag()
  queue.async {
    call("waiter")
    let item = DispatchWorkItem { print("made") }
    queue.async(execute: item)
    item.wait()  // WAITS(waiter)
    isDone.set()
  }
  isDone.poll()
}

/// The item is queued behind one that needs the lock of whoever waits for it.
func itemBehind() {
  let queue = DispatchQueue(label: "exports")
  let lock = NSLock()
  watch(
    start("exporter") {
      lock.lock()  // HOLDS(exporter)
      queue.async {
        call("encoder")
        lock.lock()  // WAITS(encoder)
        lock.unlock()
      }
      let item = DispatchWorkItem { print("exported") }
      queue.async(execute: item)
      item.wait()  // WAITS(exporter)
      lock.unlock()
    })
}

/// A barrier waits for a reader that waits for something behind the barrier.
func barrierWait() {
  let store = DispatchQueue(label: "store", attributes: .concurrent)
  let answered = DispatchSemaphore(value: 0)
  let isReading = Flag()
  store.async {
    call("reader")
    isReading.set()
    pause(100)
    store.async { answered.signal() }
    answered.wait()  // WAITS(reader)
  }
  isReading.poll()
  store.sync(flags: .barrier) { print("written") }  // WAITS(barrier-wait:main)
}

/// Threads that only wait behind the two that wait for each other.
func victims() {
  let (a, b) = (DispatchQueue(label: "orders"), DispatchQueue(label: "stock"))
  let group = DispatchGroup()
  start("seller") {
    a.sync {  // HOLDS(seller)
      meet(2)
      b.sync {}  // WAITS(seller)
    }
  }
  start("buyer") {
    b.sync {  // HOLDS(buyer)
      meet(2)
      a.sync {}  // WAITS(buyer)
    }
  }
  for i in 0..<3 {
    group.enter()
    start("victim-\(i)") {
      pause(150)
      (i == 0 ? b : a).sync {}
      group.leave()
    }
  }
  pause(200)
  group.wait()
}

// MARK: queues that run nothing

/// Nobody resumes it: the main thread waits for what stands in it.
func suspended() {
  let queue = DispatchQueue(label: "uploads")
  queue.suspend()
  queue.sync { print("uploaded") }  // WAITS(suspended:main)
}

func inactive() {
  let queue = DispatchQueue(label: "lazy", attributes: .initiallyInactive)
  let group = DispatchGroup()
  queue.async(group: group) { print("never activated") }
  group.wait()  // WAITS(inactive:main)
}

/// Sixty-four blocks of a concurrent queue and whoever feeds it wait for one barrier and its lock.
func crowd() {
  let queue = DispatchQueue(label: "crowd", attributes: .concurrent)
  let lock = NSLock()
  watch(
    start("keeper") {
      lock.lock()  // HOLDS(keeper)
      for i in 0..<64 {
        queue.async {
          call("crowd-\(i)")
          lock.lock()
          lock.unlock()
        }
      }
      pause(200)
      queue.sync(flags: .barrier) {}  // WAITS(keeper)
      lock.unlock()
    })
}

/// Reads within reads by four threads, and no barrier anywhere: sooner or later libdispatch leaves a
/// reader behind waiters that only this reader's leaving would wake.
func nestedReads() {
  let table = DispatchQueue(label: "table", attributes: .concurrent)
  let readers = (0..<4).map { i in
    start("reader-\(i)") {
      while true { table.sync { table.sync {} } }
    }
  }
  watch(readers[0], readers[1], readers[2], readers[3])
}
