public import CoreFoundation
public import Dispatch
public import Foundation
internal import ProcessInspector
internal import Recorder

// What is watched for progress. A hang is told once nothing has moved for the configuration's
// `hangThreshold`, again while it lasts, at growing intervals, and when it is over.
extension Watchdog {
  /// Watches the main run loop.
  ///
  /// A run loop hangs when it stays in one activity (timers, sources, blocks) for longer than the
  /// threshold. While it waits for events it does not, however long, nor outside of `run`. Each
  /// activity costs its thread some 50 ns; nothing wakes it. A program that calls `dispatchMain` has
  /// no such loop: watch `DispatchQueue.main` there.
  ///
  /// Like all that is watched it is looked at from `start` on, and until `stop` of what is
  /// returned. Under `hangcheck` it has no effect. Safe to call from any thread.
  @discardableResult
  public func watch() -> Watch { observe(CFRunLoopGetMain(), "the main run loop") }

  /// Watches a run loop, from its next turn on. Reports call it by `name`; see `watch()`.
  @discardableResult
  public func watch(_ runLoop: RunLoop, name: String) -> Watch {
    if runLoop === RunLoop.main { return watch(CFRunLoopGetMain(), name: name) }
    let probe = RunLoopProbe(name: "run loop \"\(name)\"")
    // Foundation keeps its CFRunLoop to itself.
    if !InProcess.isLeftToAgent {
      runLoop.perform { probe.install(in: CFRunLoopGetCurrent()) }
    }
    return add(probe)
  }

  /// Watches a run loop of CoreFoundation's; see `watch()`.
  @discardableResult
  public func watch(_ runLoop: CFRunLoop, name: String) -> Watch {
    observe(runLoop, "run loop \"\(name)\"")
  }

  private func observe(_ runLoop: CFRunLoop, _ name: String) -> Watch {
    let probe = RunLoopProbe(name: name)
    if !InProcess.isLeftToAgent { probe.install(in: runLoop) }
    return add(probe)
  }

  /// Watches a dispatch queue, which hangs when a block that is queued on it does not run for longer
  /// than the threshold: the watchdog's own, which it puts there while the queue has work.
  ///
  /// A queue that has none is not woken, one that is suspended not expected to run. Of the main
  /// queue only what is queued counts as work, since the main thread always owns it, and only once
  /// it has been drained at all. The queue lives at least until the watch is stopped. `name` is what
  /// reports call it, its label by default; of an `InstrumentedQueue` pass the `original`. Safe to
  /// call from any thread.
  @discardableResult
  public func watch(_ queue: DispatchQueue, name: String? = nil) -> Watch {
    let address = Self.object(behind: queue)
    let isMain = address == Self.object(behind: .main)
    let label =
      isMain && name == nil ? "the main queue" : "queue \"\(name ?? queue.label)\""
    let subject = HangSamples.Subject(name: label, queue: address)
    return add(
      PingProbe(subject: subject, mustHaveRun: isMain) { process in
        process.standing(ofQueue: address)
      } send: { echo, number in
        queue.async { echo.run(number) }
      })
  }

  /// Watches the main actor, which hangs when a task's job for it does not run for longer than the
  /// threshold. Only what is queued for it counts as work, and only once it has run anything at
  /// all. Safe to call from any thread.
  @discardableResult
  public func watchMainActor() -> Watch {
    let address = Self.object(behind: DispatchQueue.main)
    let subject = HangSamples.Subject(name: "the main actor", queue: address)
    return add(
      PingProbe(subject: subject, mustHaveRun: true) { process in
        process.standing(ofQueue: address)
      } send: { echo, number in
        Task.detached { @MainActor in echo.run(number) }
      })
  }

  /// Watches the pool of threads that runs Swift's tasks, which hangs when a new task does not run
  /// for longer than the threshold: one that is made while every thread of the pool is taken, and
  /// none of them runs. A pool that merely has much to compute is left alone. Safe to call from any
  /// thread.
  @discardableResult
  public func watchCooperativePool() -> Watch {
    return add(
      PingProbe(subject: .init(name: "the cooperative pool", isPool: true)) { process in
        process.standingOfCooperativePool()
      } send: { echo, number in
        Task.detached { echo.run(number) }
      })
  }

  /// A heartbeat for an event loop of one's own: it has to beat while it works. `name` is what
  /// reports call it.
  public func heartbeat(_ name: String) -> Heartbeat {
    let probe = HeartbeatProbe(name: "heartbeat \"\(name)\"")
    return Heartbeat(probe, add(probe))
  }

  private func add(_ probe: any Probe) -> Watch {
    let watch = Watch(probe)
    if !InProcess.isLeftToAgent { watches.add(watch) }
    return watch
  }

  /// libdispatch's own object: the overlay's class has one stored property, right behind the header
  /// of a Swift object. Whether it lies there is seen by what is read from it.
  private static func object(behind queue: DispatchQueue) -> UInt64 {
    UInt64(
      Unmanaged.passUnretained(queue).toOpaque().load(fromByteOffset: 16, as: UInt.self))
  }
}
