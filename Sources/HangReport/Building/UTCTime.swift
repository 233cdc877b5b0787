#if canImport(Glibc)
  internal import Glibc
#else
  internal import Musl
#endif

/// Moments as the report writes them: ISO 8601 in UTC with milliseconds,
/// `2026-01-31T23:59:59.123Z`.
///
/// Own arithmetic: Foundation's formatters cost more at start than the rest of the tool.
public enum UTCTime {
  /// The present moment by the wall clock.
  public static func now() -> String {
    var time = timespec()
    // CLOCK_REALTIME with a valid pointer cannot fail.
    clock_gettime(CLOCK_REALTIME, &time)
    return string(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
  }

  /// A moment of CLOCK_MONOTONIC, in nanoseconds, by the wall clock of today.
  public static func string(monotonic moment: UInt64) -> String {
    let then =
      nanoseconds(CLOCK_REALTIME) - nanoseconds(CLOCK_MONOTONIC) + Int64(clamping: moment)
    return string(seconds: then / 1_000_000_000, nanoseconds: then % 1_000_000_000)
  }

  private static func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// A moment given as seconds since 1970, UTC, and nanoseconds within the second.
  public static func string(seconds: Int64, nanoseconds: Int64 = 0) -> String {
    var (days, second) = seconds.quotientAndRemainder(dividingBy: 86_400)
    if second < 0 {
      second += 86_400
      days -= 1
    }
    let date = civil(days: days)
    return padded(date.year, 4) + "-" + padded(date.month, 2) + "-" + padded(date.day, 2) + "T"
      + padded(second / 3600, 2) + ":" + padded(second / 60 % 60, 2) + ":" + padded(second % 60, 2)
      + "." + padded(nanoseconds / 1_000_000, 3) + "Z"
  }

  /// The Gregorian date of a day since 1970-01-01 (Howard Hinnant, 'chrono-compatible low-level
  /// date algorithms').
  private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let z = days + 719_468
    let era = (z >= 0 ? z : z - 146_096) / 146_097
    let doe = z - era * 146_097
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100)
    let mp = (5 * doy + 2) / 153
    let month = mp < 10 ? mp + 3 : mp - 9
    return (yoe + era * 400 + (month <= 2 ? 1 : 0), month, doy - (153 * mp + 2) / 5 + 1)
  }

  private static func padded(_ value: Int64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
