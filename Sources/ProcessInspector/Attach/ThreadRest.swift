internal import CHangcheck
internal import Glibc

/// Since when threads have not run, from /proc/PID/task/TID/sched, where the kernel has such a file.
struct ThreadRest {
  private let own = ProcReader(ProcessID(getpid()))

  /// Seconds since each thread last ran, for those of which it is known.
  func seconds(_ proc: ProcReader, _ threads: [KernelThreadID]) -> [KernelThreadID: Double] {
    // This thread runs: what the kernel says of it is the present in its clock, late by a tick.
    guard let now = own.read("task/\(hck_gettid())/sched", Self.lastRun) ?? nil else { return [:] }
    var result: [KernelThreadID: Double] = [:]
    for tid in threads {
      guard let last = proc.read("task/\(tid.rawValue)/sched", Self.lastRun) ?? nil else {
        continue
      }
      result[tid] = max(0, (now - last) / 1000)
    }
    return result
  }

  /// `se.exec_start                    :      47425934.730905`, in milliseconds.
  static func lastRun(_ bytes: UnsafeBufferPointer<UInt8>) -> Double? {
    for line in bytes.split(separator: 10) where line.starts(with: "se.exec_start".utf8) {
      let text = String(decoding: line, as: UTF8.self)
      return text.split(separator: ":").last.flatMap { Double($0.filter { $0 != " " }) }
    }
    return nil
  }
}
