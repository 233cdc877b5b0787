internal import CHangcheck
internal import Glibc
internal import ProcessInspector
internal import Synchronization

extension Watchdog {
  /// The pulse of an event loop of one's own: a hang is told when no beat has come for the
  /// configuration's `hangThreshold`.
  ///
  /// ```swift
  /// let heartbeat = Watchdog.shared.heartbeat("network")
  /// while let event = heartbeat.expectNothing({ queue.next() }) {
  ///   heartbeat.beat()
  ///   handle(event)
  /// }
  /// heartbeat.stop()
  /// ```
  ///
  /// Nothing is expected before the first beat. Safe to use from any thread; a report shows the
  /// thread that beat last.
  public final class Heartbeat: Sendable {
    private let probe: HeartbeatProbe
    private let watch: Watch

    init(_ probe: HeartbeatProbe, _ watch: Watch) {
      self.probe = probe
      self.watch = watch
    }

    /// Says that there is progress. Costs a reading of the clock and two stores.
    public func beat() { probe.beat() }

    /// Expects no beat while `body` runs, because it waits for work or is meant to take long, and
    /// one within the threshold after it. May be nested, and run on several threads at once.
    @discardableResult
    public func expectNothing<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
      probe.rest()
      defer { probe.goOn() }
      return try body()
    }

    /// Ends the watch.
    public func stop() { watch.stop() }
  }
}

final class HeartbeatProbe: Probe {
  private let name: String
  private let last = Atomic<UInt64>(0)
  private let longBegan = Atomic<UInt64>(0)
  private let longEnded = Atomic<UInt64>(0)
  private let thread = Atomic<UInt>(0)
  private let tid = Atomic<UInt32>(0)
  private let resting = Atomic<Int>(0)

  init(name: String) { self.name = name }

  private static let long: UInt64 = 20_000_000

  func beat() {
    let now = hck_monotonic_ns()
    note(last.exchange(now, ordering: .acquiringAndReleasing), now)
    // The kernel is asked for its id only when the thread is another one.
    let own = UInt(pthread_self())
    guard thread.load(ordering: .relaxed) != own else { return }
    thread.store(own, ordering: .relaxed)
    tid.store(hck_gettid(), ordering: .relaxed)
  }

  func rest() {
    note(last.load(ordering: .acquiring), hck_monotonic_ns())
    resting.add(1, ordering: .acquiringAndReleasing)
  }

  func goOn() {
    // The time is there before it counts.
    if last.load(ordering: .relaxed) != 0 { last.store(hck_monotonic_ns(), ordering: .releasing) }
    resting.subtract(1, ordering: .acquiringAndReleasing)
  }

  private func note(_ before: UInt64, _ now: UInt64) {
    guard before != 0, now &- before > Self.long, resting.load(ordering: .relaxed) == 0 else {
      return
    }
    longBegan.store(before, ordering: .relaxed)
    longEnded.store(now, ordering: .releasing)
  }

  var subject: HangSamples.Subject {
    let tid = tid.load(ordering: .relaxed)
    return HangSamples.Subject(
      name: name, thread: tid == 0 ? nil : KernelThreadID(Int32(bitPattern: tid)))
  }

  func read(now: UInt64, process: OwnProcess) -> HangTracker.Reading {
    let isResting = resting.load(ordering: .acquiring) > 0
    let since = last.load(ordering: .acquiring)
    let ended = longEnded.load(ordering: .acquiring)
    let began = longBegan.load(ordering: .relaxed)
    return HangTracker.Reading(
      busySince: isResting || since == 0 ? nil : since,
      lastLong: began < ended ? began..<ended : nil)
  }
}
