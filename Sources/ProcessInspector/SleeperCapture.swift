internal import CHangcheck
internal import HangReport

/// Copies the stacks of threads of this process that sleep in a system call which a signal would
/// cut short (EINTR): they are left alone. The kernel tells their program counter and stack
/// pointer; the other registers are known only where a function between has saved them, so such a
/// stack may end early.
struct SleeperCapture {
  let files: ProcessFiles
  let memory: ProcessMemory

  private static let copyBytes = 32 * 1024

  /// What the kernel says of a thread's system call.
  struct Call {
    var number: Int
    var arguments: [UInt64]
    var stackPointer: UInt64
    var instruction: UInt64

    /// Whether it goes on by itself after a handler that restarts calls: wait4, waitid, and a futex
    /// without time-out. Reads may not (SO_RCVTIMEO); sleeps, polls and timed waits never do.
    var restarts: Bool {
      switch number {
      case 61, 247: true
      case 202: arguments[3] == 0
      default: false
      }
    }
  }

  /// The threads that a signal would wake, with their calls.
  func sleepers(among threads: [KernelThreadID]) -> [KernelThreadID: Call] {
    var result: [KernelThreadID: Call] = [:]
    for tid in threads {
      if let call = files.call(tid), !call.restarts { result[tid] = call }
    }
    return result
  }

  /// nil for a thread that has run meanwhile.
  func capture(_ tid: KernelThreadID) -> CapturedThread? {
    guard let before = files.timesRun(tid), let call = files.call(tid) else { return nil }
    let base = call.stackPointer &- 128
    var bytes = [UInt8](repeating: 0, count: Self.copyBytes)
    let got = bytes.withUnsafeMutableBytes { memory.read(base, into: $0) }
    guard got > 128, files.timesRun(tid) == before else { return nil }
    bytes.removeLast(bytes.count - got)
    // An unknown rbp is 0: a walk that needs it ends there.
    let registers = Registers(rip: call.instruction, rsp: call.stackPointer, rbp: 0)
    return CapturedThread(
      tid: tid, registers: registers, stack: StackCopy(base: base, bytes: bytes),
      systemCall: call.number)
  }
}

extension ProcessFiles {
  /// The system call that a thread is blocked in: "202 0x7f… … 0x7ffc… 0x7f…", its arguments, then
  /// sp and pc.
  func call(_ tid: KernelThreadID) -> SleeperCapture.Call? {
    guard let text = text("task/\(tid.rawValue)/syscall") else { return nil }
    let words =
      text
      .split(whereSeparator: { $0 == " " || $0 == "\n" })
    guard words.count == 9, let number = Int(words[0]), number >= 0 else { return nil }
    let values = words[1...].compactMap { UInt64($0.dropFirst(2), radix: 16) }
    guard values.count == 8 else { return nil }
    return SleeperCapture.Call(
      number: number, arguments: Array(values[..<6]), stackPointer: values[6],
      instruction: values[7])
  }
}
