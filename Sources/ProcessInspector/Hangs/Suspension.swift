internal import CHangcheck
internal import Glibc

/// Whether the machine was suspended: CLOCK_MONOTONIC stands still meanwhile, CLOCK_BOOTTIME does not.
package struct Suspension {
  /// Nanoseconds so far.
  private var suspended: Int64?

  package init() {}

  /// Whether it was since the last question.
  package mutating func isNew() -> Bool {
    let asleep = Self.nanoseconds(CLOCK_BOOTTIME) - Self.nanoseconds(CLOCK_MONOTONIC)
    defer { suspended = asleep }
    return suspended.map { asleep > $0 + 50_000_000 } ?? false
  }

  private static func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
