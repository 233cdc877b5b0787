internal import HangReport

/// A process whose threads are asked what they do while something makes no progress.
protocol HangSource {
  var watch: DeadlockWatch { get }
  var reader: ProcReader { get }
}

extension HangSource {
  /// Asks the kernel what a thread has had since it was last asked; nil where it is gone.
  func ask(_ tid: KernelThreadID, _ samples: HangSamples, now: UInt64) -> ThreadUse? {
    guard let use = reader.use(of: tid) else { return nil }
    samples.add(use, at: now)
    samples.note(reader.systemCall(tid)?.call) { watch.runtime.outside().describe($0) }
    return use
  }

  /// What a thread did, from all that was asked: `thread`, as the last look has it.
  func activity(
    _ tid: KernelThreadID?, _ thread: Thread?, _ subject: HangSamples.Subject,
    _ samples: HangSamples
  ) -> HangActivity {
    guard tid != nil else {
      return HangActivity(.nobody(subject.queue == nil ? nil : "it waits for a thread"))
    }
    let shares = samples.shares
    var result = HangActivity(
      .unknown, processorShare: shares?.run, delayShare: shares?.delay)
    let (run, delay) = (shares?.run ?? 0, shares?.delay ?? 0)
    switch samples.state {
    case UInt8(ascii: "T"), UInt8(ascii: "t"): result.kind = .stopped
    case _ where run >= 0.5: result.kind = .computing
    case _ where delay > run && delay >= 0.4: result.kind = .starved
    case _ where thread?.waitsFor != nil: result.kind = .waiting
    case UInt8(ascii: "D") where samples.hasFaulted: result.kind = .faulting
    default:
      if let call = samples.call {
        result.kind = .call(call.name, call.what)
      } else if run + delay > 0.1 {
        result.kind = .computing
      }
    }
    return result
  }
}

extension ProcReader {
  /// The process that debugs or traces this one.
  var tracer: Int32? {
    guard let text = text("status"),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("TracerPid:") }),
      let pid = Int32(line.dropFirst(10).drop { $0 == "\t" || $0 == " " }), pid != 0
    else { return nil }
    return pid
  }
}
