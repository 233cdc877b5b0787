internal import CHangcheck
internal import Glibc

/// When a thread that watches did not run although it was to: stopped, traced, starved. What
/// stood still meanwhile may have done so for the same reason. Of the thread that made it.
package struct Attention {
  private var time = hck_monotonic_ns()
  private var used = Self.processorTime

  package init() {}

  /// Nanoseconds that a sleep may take longer than it was to, as it often does.
  private static let tolerance: UInt64 = 20_000_000

  private static var processorTime: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// A sleep has ended: by how much it was too long.
  package mutating func oversleep(microseconds: UInt32) -> Range<UInt64> {
    let due = time &+ UInt64(microseconds) * 1000
    (time, used) = (hck_monotonic_ns(), Self.processorTime)
    return due &+ Self.tolerance < time ? due..<time : time..<time
  }

  /// Work has ended: for how long, of the time since the last question, it did not get on. Where in
  /// that time is not known.
  package mutating func lapse() -> Range<UInt64> {
    let before = (time: time, used: used)
    (time, used) = (hck_monotonic_ns(), Self.processorTime)
    let (passed, worked) = (time &- before.time, used &- before.used)
    return passed > worked &+ Self.tolerance ? (before.time &+ worked)..<time : time..<time
  }
}
