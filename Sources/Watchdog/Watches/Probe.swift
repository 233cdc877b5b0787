internal import ProcessInspector

/// What tells a watch how it goes with one watched thing. Its questions are asked on the watchdog's
/// thread; answers come from the program's.
protocol Probe: AnyObject, Sendable {
  /// As a report calls it.
  var subject: HangSamples.Subject { get }

  /// How it stands at `now`, monotonic nanoseconds.
  func read(now: UInt64, process: OwnProcess) -> HangTracker.Reading

  /// Asked before a hang is told: whether it waits for work although `read` says otherwise.
  var isIdleAfterAll: Bool { get }

  /// Nobody watches any more.
  func end()
}

extension Probe {
  var isIdleAfterAll: Bool { false }
  func end() {}
}
