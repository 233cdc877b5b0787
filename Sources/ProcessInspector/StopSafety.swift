internal import CHangcheck
internal import Glibc

/// Which threads may be stopped for a moment without being changed by that: a write may end short, and
/// some waits with EINTR. Confined to one thread.
///
/// Of a thread that runs, or that waits for a processor, nobody can see whether it does so inside of a
/// write. It may be stopped once it has run for some time and was never seen in such a call.
struct StopSafety {
  let proc: ProcReader
  /// Those that run, and do little else.
  private var busy: Set<KernelThreadID> = []
  private static let interval: UInt32 = 400
  private static let leastSamples = 5
  /// Nanoseconds that such a thread has to run, and for how long that is waited for.
  private static let leastTime: UInt64 = 1_000_000
  private static let patience: UInt64 = 100_000_000
  /// How much longer for each of them, since they take turns, and at most.
  private static let patienceEach: UInt64 = 10_000_000
  private static let mostPatience: UInt64 = 600_000_000

  init(proc: ProcReader) { self.proc = proc }

  /// Those among `threads` that may be stopped. `calls`: what each was in just now, nil where it ran.
  mutating func unharmed(
    _ threads: [KernelThreadID], _ calls: [KernelThreadID: SystemCall?]
  ) -> [KernelThreadID] {
    let harmed = findBusy(threads.filter { (calls[$0] ?? nil) == nil })
    return threads.filter { tid in
      !harmed.contains(tid) && ((calls[tid] ?? nil).map(goesOnUnchanged) ?? true)
    }
  }

  /// Whether a thread may be stopped now; a moment later it may be elsewhere.
  func isUnharmed(_ tid: KernelThreadID) -> Bool {
    proc.systemCall(tid)?.call.map(goesOnUnchanged) ?? busy.contains(tid)
  }

  /// Watches threads that run until each was seen in a call or has run for long enough; those that may
  /// not be stopped.
  private mutating func findBusy(_ running: [KernelThreadID]) -> Set<KernelThreadID> {
    var open: [KernelThreadID: UInt64] = [:]
    for tid in running { open[tid] = timeRun(tid) }
    var harmed = Set(running)
    let patience = Self.patience + UInt64(running.count) * Self.patienceEach
    let deadline = hck_monotonic_ns() &+ min(patience, Self.mostPatience)
    var samples = 0
    while !open.isEmpty, hck_monotonic_ns() < deadline {
      usleep(Self.interval)
      samples += 1
      for (tid, before) in open {
        if let call = proc.systemCall(tid)?.call {
          open[tid] = nil
          if goesOnUnchanged(call) { harmed.remove(tid) }
        } else if samples >= Self.leastSamples, let now = timeRun(tid),
          now &- before >= Self.leastTime
        {
          open[tid] = nil
          harmed.remove(tid)
          busy.insert(tid)
        }
      }
    }
    return harmed
  }

  /// Nanoseconds on a processor, as of the last tick.
  private func timeRun(_ tid: KernelThreadID) -> UInt64? {
    proc.read("task/\(tid.rawValue)/schedstat") { bytes in
      bytes.split(separator: 32).first.flatMap(ProcReader.number)
    } ?? nil
  }

  /// Whether a call goes on after a stop as if nothing had been.
  func goesOnUnchanged(_ call: SystemCall) -> Bool {
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
