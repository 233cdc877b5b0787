internal import Glibc

/// Which threads may be stopped for a moment without being changed by that: a write may end short, and
/// some waits with EINTR. Confined to one thread.
struct StopSafety {
  let proc: ProcReader
  private static let samples = 3
  private static let interval: UInt32 = 400

  /// Those among `threads` that may be stopped. `calls`: what each was in just now, nil where it ran.
  ///
  /// One that runs may do so inside of a write: it is asked more than once.
  func unharmed(
    _ threads: [KernelThreadID], _ calls: [KernelThreadID: SystemCall?]
  ) -> [KernelThreadID] {
    var harmed = Set(threads.filter { tid in !((calls[tid] ?? nil).map(goesOnUnchanged) ?? true) })
    let running = threads.filter { (calls[$0] ?? nil) == nil }
    for _ in running.isEmpty ? 0..<0 : 0..<Self.samples {
      usleep(Self.interval)
      for tid in running where !isUnharmed(tid) { harmed.insert(tid) }
    }
    return threads.filter { !harmed.contains($0) }
  }

  /// Whether a thread may be stopped now; a moment later it may be elsewhere.
  func isUnharmed(_ tid: KernelThreadID) -> Bool {
    proc.systemCall(tid)?.call.map(goesOnUnchanged) ?? true
  }

  /// Whether a call goes on after a stop as if nothing had been.
  private func goesOnUnchanged(_ call: SystemCall) -> Bool {
    switch call.number {
    case SystemCalls.futex, SystemCalls.nanosleep, SystemCalls.clockNanosleep, SystemCalls.poll,
      SystemCalls.ppoll, SystemCalls.select, SystemCalls.pselect, SystemCalls.wait4,
      SystemCalls.waitid, SystemCalls.restart, SystemCalls.pause, SystemCalls.sigsuspend, 72, 73:
      true
    case 0:
      // From a socket with a time limit it would end with EINTR.
      proc.link("fd/\(Int32(truncatingIfNeeded: call.arguments[0]))")?.hasPrefix("socket:") == false
    default: false
    }
  }
}
