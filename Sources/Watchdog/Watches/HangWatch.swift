internal import CHangcheck
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
    /// When the hang began that is told, by the wall clock.
    var began: String?
    /// When it was last seen to be idle although it says otherwise.
    var idleAt: UInt64 = 0

    init(_ watch: Watchdog.Watch, threshold: UInt64) {
      self.watch = watch
      tracker = HangTracker(threshold: threshold)
    }
  }

  private let list: WatchList
  private let onHang: () -> Void
  private var entries: [Entry] = []
  private var lost = LostTime()
  private var suspension = Suspension()
  private var hasSaidDebugger = false
  private var isWarm = false

  /// `onHang`: called before the first report of each.
  init(_ list: WatchList, onHang: @escaping () -> Void) {
    self.list = list
    self.onHang = onHang
  }

  /// One report for each hang that begins, lasts or ends.
  func look(now: UInt64, threshold: UInt64, process: OwnProcess) -> [HangReport] {
    settle(threshold)
    guard !entries.isEmpty else { return [] }
    if !isWarm {
      isWarm = true
      process.warmUp(now: now)
      // What was before, nobody has looked at.
      lost.forgive(until: OwnProcess.now)
      return []
    }
    // What comes after it is slow for a while, and nobody's fault.
    if suspension.isNew() { lost.forgive(until: now) }
    var reports: [HangReport] = []
    var ended: Set<ObjectIdentifier> = []
    for entry in entries {
      let isOver = entry.watch.isStopped
      if isOver { ended.insert(ObjectIdentifier(entry)) }
      let probe = entry.watch.probe
      var reading =
        isOver
        ? HangTracker.Reading(busySince: nil) : probe.read(now: now, process: process)
      if let since = reading.busySince, !entry.tracker.hangs {
        reading.busySince = begin(of: entry, since, process, now: now)
      }
      for event in entry.tracker.look(reading, now: now, lost: lost) {
        if let report = follow(event, entry, process, now: now) { reports.append(report) }
      }
    }
    // One that has been stopped since is looked at once more.
    entries.removeAll { ended.contains(ObjectIdentifier($0)) }
    return reports
  }

  /// Since when it counts; nil where it does not at all.
  private func begin(
    of entry: Entry, _ since: UInt64, _ process: OwnProcess, now: UInt64
  ) -> UInt64? {
    let probe = entry.watch.probe
    let begin = max(since, entry.idleAt)
    let age = lost.age(of: begin, at: now)
    if age >= entry.tracker.threshold / 2, probe.isIdleAfterAll {
      entry.idleAt = now
      return nil
    }
    return age >= entry.tracker.threshold && isExcused(probe, process, now: now) ? nil : begin
  }

  /// Whether a hang is told that has not ended.
  var isAny: Bool { entries.contains { $0.tracker.hangs } }

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

  private func isExcused(_ probe: any Probe, _ process: OwnProcess, now: UInt64) -> Bool {
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
    let probe = entry.watch.probe
    func report(_ hang: HangTracker.Hang, hasEnded: Bool) -> HangReport? {
      let began = entry.began ?? UTCTime.string(monotonic: hang.since)
      entry.began = began
      return process.report(
        subject, entry.samples, seconds: Double(hang.duration) / 1e9, began: began,
        hasEnded: hasEnded, now: now
      ) {
        max(probe.read(now: now, process: process).busySince ?? 0, entry.idleAt) == hang.since
      }
    }
    switch event {
    case .sample:
      process.sample(subject, into: entry.samples, now: now)
      return nil
    case .forgotten:
      entry.samples = HangSamples()
      return nil
    case .opened(let hang):
      onHang()
      return report(hang, hasEnded: false)
    case .updated(let hang): return process.tracer == nil ? report(hang, hasEnded: false) : nil
    case .closed(let hang):
      defer {
        entry.samples = HangSamples()
        entry.began = nil
      }
      return report(hang, hasEnded: true)
    }
  }
}
