internal import CHangcheck
internal import HangReport
internal import WaitForGraph

/// What was seen of one thread while something that it should do made no progress. Confined to the
/// thread that looks.
package final class HangSamples {
  /// What is watched.
  package struct Subject: Sendable {
    /// As reports call it, the same in every run: `the main run loop`.
    package var name: String
    /// Who should make progress, as far as that is known.
    package var thread: KernelThreadID?
    /// The queue that should, in memory.
    package var queue: UInt64?
    /// It is the pool that runs Swift's tasks.
    package var isPool: Bool
    package init(
      name: String, thread: KernelThreadID? = nil, queue: UInt64? = nil, isPool: Bool = false
    ) {
      self.name = name
      self.thread = thread
      self.queue = queue
      self.isPool = isPool
    }
  }

  /// One copied stack, unwound only once it is wanted: most that seem to hang go on.
  private enum Sample {
    case copied(CapturedThread)
    case unwound([RawFrame])
  }

  private var samples: [Sample] = []
  private var first: (use: ThreadUse, at: UInt64)?
  private var last: (use: ThreadUse, at: UInt64)?
  /// Of the report that opened the hang: all that follow bear it.
  var fingerprint: String?
  /// As the last report had them.
  var thread: KernelThreadID?
  var activity = HangActivity(.unknown)
  /// The last look found that it no longer waits for what the last report tells.
  var hasLeftWait = false
  var threads: [Thread] = []
  var resources: [Resource] = []

  package init() {}

  /// A long hang keeps every second one.
  private static let most = 400

  func add(_ captured: CapturedThread) {
    if samples.count >= Self.most {
      samples = samples.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
    }
    samples.append(.copied(captured))
  }

  /// The system call that the thread was last seen in; nil where it was in none.
  private(set) var call: KernelCall?
  private var rawCall: SystemCall?

  /// What a call works on is asked for once: that takes longer than to see which call it is.
  func note(_ call: SystemCall?, describe: (SystemCall) -> KernelCall) {
    guard let call else {
      (self.call, rawCall) = (nil, nil)
      return
    }
    // A stop has interrupted the call, and it is made anew under this number.
    if call.number == SystemCalls.restart, self.call != nil { return }
    if rawCall != call { self.call = describe(call) }
    rawCall = call
  }

  func add(_ use: ThreadUse, at now: UInt64) {
    if first == nil { first = (use, now) }
    last = (use, now)
  }

  var state: UInt8? { last?.use.state }
  var hasFaulted: Bool {
    (last?.use.majorFaults ?? 0) > (first?.use.majorFaults ?? 0)
  }

  /// Of the time between the first look and the last: on a processor, and ready to run without one.
  var shares: (run: Double, delay: Double)? {
    guard let first, let last, last.at > first.at else { return nil }
    let time = Double(last.at - first.at)
    func share(_ start: UInt64, _ end: UInt64) -> Double {
      min(1, Double(end > start ? end - start : 0) / time)
    }
    return (share(first.use.run, last.use.run), share(first.use.delay, last.use.delay))
  }

  var hasAny: Bool { !samples.isEmpty }

  /// Whether a call in that code has not returned in the last sample. Where its stack cannot be
  /// unwound to the end, a word that leads there is enough.
  func passes(through code: Range<UInt64>, _ assembler: ReportAssembler) -> Bool {
    guard case .copied(let captured)? = samples.last else { return false }
    let unwound = assembler.unwinder?.unwind(captured.registers, stack: [captured.stack])
    if let unwound, unwound.frames.contains(where: { code.contains($0.pc) }) { return true }
    if let unwound, unwound.isComplete { return false }
    return captured.stack.bytes.withUnsafeBytes { bytes in
      stride(from: 0, to: bytes.count - 7, by: 8).contains {
        code.contains(bytes.loadUnaligned(fromByteOffset: $0, as: UInt64.self))
      }
    }
  }

  /// All stacks so far, by name.
  func fold(_ assembler: ReportAssembler) -> StackFold {
    unwind(assembler)
    return StackFold(
      samples.map { sample in
        guard case .unwound(let frames) = sample else { return [] }
        return assembler.symbolizer.frames(for: frames)
      })
  }

  private func unwind(_ assembler: ReportAssembler) {
    for index in samples.indices {
      guard case .copied(let captured) = samples[index] else { continue }
      let frames =
        assembler.unwinder?.unwind(captured.registers, stack: [captured.stack]).frames
        ?? [RawFrame(pc: captured.registers.rip, cfa: 0, isExact: true)]
      samples[index] = .unwound(frames)
    }
  }
}
