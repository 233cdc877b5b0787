internal import Glibc
internal import HangReport
internal import ProcessInspector

/// Looks at all watches, a look at a time, and makes the reports of hangs. Confined to the
/// watchdog's thread.
final class HangWatch {
  private final class Entry {
    let watch: Watchdog.Watch
    var tracker: HangTracker
    var samples = HangSamples()
    /// Set while a hang is told: where it was when that began, by the wall clock.
    var began: String?

    init(_ watch: Watchdog.Watch, threshold: UInt64) {
      self.watch = watch
      tracker = HangTracker(threshold: threshold)
    }
  }

  private let list: WatchList
  private var entries: [Entry] = []
  private var lost = LostTime()
  /// How long the machine has been suspended so far, in nanoseconds.
  private var suspended: Int64?
  private var hasSaidDebugger = false

  init(_ list: WatchList) { self.list = list }

  /// One report for each hang that begins, lasts or ends.
  func look(now: UInt64, threshold: UInt64, process: OwnProcess) -> [HangReport] {
    settle(threshold)
    guard !entries.isEmpty else { return [] }
    noticeSuspend(now)
    var reports: [HangReport] = []
    for entry in entries {
      let probe = entry.watch.probe
      var reading =
        entry.watch.isStopped
        ? HangTracker.Reading(busySince: nil) : probe.read(now: now, process: process)
      if isDue(entry, reading, now: now), isExcused(probe, process, now: now) {
        reading.busySince = nil
      }
      for event in entry.tracker.look(reading, now: now, lost: lost) {
        if let report = follow(event, entry, process, now: now) { reports.append(report) }
      }
    }
    entries.removeAll { $0.watch.isStopped }
    return reports
  }

  /// Whether this look would tell a hang.
  private func isDue(_ entry: Entry, _ reading: HangTracker.Reading, now: UInt64) -> Bool {
    guard !entry.tracker.hangs, let since = reading.busySince else { return false }
    return lost.age(of: since, at: now) >= entry.tracker.threshold
  }

  /// Nanoseconds until the next look at the latest.
  func pause(now: UInt64) -> UInt64 {
    entries.map { $0.tracker.pause(now: now, lost: lost) }.min() ?? .max
  }

  /// The watchdog slept in between, though it was not to.
  func overslept(_ stretch: Range<UInt64>) { lost.add(stretch) }

  /// The watchdog was busy in between and may have been held up.
  func unseen(_ stretch: Range<UInt64>) { lost.add(unseen: stretch) }

  private func settle(_ threshold: UInt64) {
    let current = list.current()
    for entry in entries { entry.tracker.threshold = threshold }
    let known = Set(entries.map { ObjectIdentifier($0.watch) })
    for watch in current where !known.contains(ObjectIdentifier(watch)) {
      entries.append(Entry(watch, threshold: threshold))
    }
  }

  /// CLOCK_MONOTONIC stands still while the machine is suspended, CLOCK_BOOTTIME does not. What comes
  /// after it is slow for a while, and nobody's fault.
  private func noticeSuspend(_ now: UInt64) {
    let asleep = Self.nanoseconds(CLOCK_BOOTTIME) - Self.nanoseconds(CLOCK_MONOTONIC)
    if let suspended, asleep > suspended + 50_000_000 { lost.forgive(until: now) }
    suspended = asleep
  }

  private static func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  private func isExcused(_ probe: any Probe, _ process: OwnProcess, now: UInt64) -> Bool {
    if probe.isIdleAfterAll { return true }
    if let thread = probe.subject.thread, !process.isAlive(thread) { return true }
    guard let debugger = process.tracer else { return false }
    lost.forgive(until: now)
    if !hasSaidDebugger {
      hasSaidDebugger = true
      StandardError.say(
        "process \(debugger) traces this one: no hang is told as long as it does")
    }
    return true
  }

  private func follow(
    _ event: HangTracker.Event, _ entry: Entry, _ process: OwnProcess, now: UInt64
  ) -> HangReport? {
    let subject = entry.watch.probe.subject
    func report(_ hang: HangTracker.Hang, hasEnded: Bool) -> HangReport {
      let began = entry.began ?? Self.wallTime(of: hang.since)
      entry.began = began
      return process.report(
        subject, entry.samples, seconds: Double(hang.duration) / 1e9, began: began,
        hasEnded: hasEnded, now: now)
    }
    switch event {
    case .sample:
      process.sample(subject, into: entry.samples, now: now)
      return nil
    case .forgotten:
      entry.samples = HangSamples()
      return nil
    case .opened(let hang), .updated(let hang): return report(hang, hasEnded: false)
    case .closed(let hang):
      defer {
        entry.samples = HangSamples()
        entry.began = nil
      }
      return report(hang, hasEnded: true)
    }
  }

  /// ISO 8601, UTC.
  private static func wallTime(of moment: UInt64) -> String {
    let then = nanoseconds(CLOCK_REALTIME) - nanoseconds(CLOCK_MONOTONIC) + Int64(moment)
    return UTCTime.string(
      seconds: then / 1_000_000_000, nanoseconds: then % 1_000_000_000)
  }
}
