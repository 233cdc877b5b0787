// WITH(support.swift)
// Work of high quality of service waits for work of low, and what looks like it.
import Foundation
import Synchronization

@main enum Inversions {
  static func main() {
    play([
      "semaphore": semaphore, "queue": queue, "lock": lock, "group": group,
      "handed-on": handedOn, "awaited": awaited, "brief": brief, "alike": alike,
    ])
  }
}

/// Runs both, the first one first, and waits without any call that is watched.
func both(
  _ first: DispatchQoS.QoSClass, _ one: @escaping () -> Void, then second: DispatchQoS.QoSClass,
  _ two: @escaping () -> Void
) {
  let ends = [Flag(), Flag()]
  DispatchQueue.global(qos: first).async {
    one()
    ends[0].set()
  }
  DispatchQueue.global(qos: second).async {
    held.poll()
    two()
    ends[1].set()
  }
  for end in ends { end.poll() }
}
let held = Flag()

func semaphore() {
  let permit = DispatchSemaphore(value: 1)
  both(
    .background,
    {
      permit.wait()  // HOLDS(low)
      held.set()
      pause(500)
      permit.signal()
    }, then: .userInitiated,
    {
      permit.wait()  // WAITS(high)
      permit.signal()
    })
}

func queue() {
  let state = DispatchQueue(label: "state", qos: .utility)
  both(
    .utility,
    {
      state.async {
        held.set()
        pause(500)
      }
    }, then: .userInitiated, { state.sync {} })
}

func lock() {
  let lock = NSLock()
  both(
    .background,
    {
      lock.lock()
      held.set()
      pause(500)
      lock.unlock()
    }, then: .userInteractive,
    {
      lock.lock()
      lock.unlock()
    })
}

/// Who waits is itself work of high quality.
func group() {
  let work = DispatchGroup()
  DispatchQueue.global(qos: .background).async(group: work) {
    held.set()
    pause(500)
  }
  let end = Flag()
  DispatchQueue.global(qos: .userInitiated).async {
    held.poll()
    work.wait()
    end.set()
  }
  end.poll()
}

/// A signal has no owner: whoever is to give it has nothing.
func handedOn() {
  let ready = DispatchSemaphore(value: 0)
  both(
    .background,
    {
      held.set()
      pause(500)
      ready.signal()
    }, then: .userInitiated, { ready.wait() })
}

/// A program that waits for the end of its own background work is in no hurry.
func awaited() {
  let work = DispatchGroup()
  DispatchQueue.global(qos: .background).async(group: work) { pause(500) }
  work.wait()
}

func brief() {
  let lock = NSLock()
  both(
    .background,
    {
      lock.lock()
      held.set()
      pause(20)
      lock.unlock()
    }, then: .userInitiated,
    {
      lock.lock()
      lock.unlock()
    })
}

func alike() {
  let lock = NSLock()
  both(
    .utility,
    {
      lock.lock()
      held.set()
      pause(500)
      lock.unlock()
    }, then: .utility,
    {
      lock.lock()
      lock.unlock()
    })
}
