/// How much of a processor one thread has had, and wanted, since it began: from
/// /proc/PID/task/TID/schedstat and stat.
package struct ThreadUse: Equatable, Sendable {
  /// Nanoseconds on a processor.
  package var run: UInt64
  /// Nanoseconds ready to run, with no processor to run on.
  package var delay: UInt64
  /// Pages that had to be read from a disk.
  package var majorFaults: UInt64
  /// The letter of its state: R, S, D, T, t, …
  package var state: UInt8
}

extension ProcReader {
  /// Nil where the thread is gone, or the kernel keeps no such record.
  func use(of tid: KernelThreadID) -> ThreadUse? {
    let times = read("task/\(tid.rawValue)/schedstat") { bytes in
      bytes.split(whereSeparator: { $0 == 32 || $0 == 10 }).compactMap(Self.number)
    }
    guard let times, times.count == 3,
      let stat = read("task/\(tid.rawValue)/stat", Self.stateAndFaults) ?? nil
    else { return nil }
    return ThreadUse(
      run: times[0], delay: times[1], majorFaults: stat.faults, state: stat.state)
  }

  private static func stateAndFaults(
    _ bytes: UnsafeBufferPointer<UInt8>
  ) -> (state: UInt8, faults: UInt64)? {
    // The name, in parentheses, may hold anything.
    guard let end = bytes.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    let words = bytes[(end + 1)...].split(separator: 32)
    guard words.count > 9, let state = words[0].first, let faults = number(words[9]) else {
      return nil
    }
    return (state, faults)
  }
}
