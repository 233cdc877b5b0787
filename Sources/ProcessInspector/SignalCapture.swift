internal import CHangcheck
internal import Glibc
internal import HangReport

/// Copies the stacks of this process's own threads: each is sent a signal, whose handler copies
/// registers and the top of the stack into memory made ready before, and does nothing else.
/// Confined to one thread.
///
/// A sleep, poll or timed wait would be cut short by it (EINTR): `SleeperCapture` is for these.
final class SignalCapture {
  /// What could not be copied, one sentence each, of the last time.
  private(set) var limits: [String] = []

  private static let patience: UInt64 = 300_000_000
  /// Of each stack; what lies beyond is read later, from threads that still wait.
  private static let copyBytes = 32 * 1024

  private typealias Copies = UnsafeMutableBufferPointer<hck_stack_copy>

  func capture(_ threads: [KernelThreadID], files: ProcessFiles) -> [KernelThreadID: CapturedThread]
  {
    limits = []
    guard let (signal, asked) = choose(threads, files), hck_stack_signal_begin(signal) == 0 else {
      limits = ["no stacks: the program handles every signal that could ask for them"]
      return [:]
    }
    let room = threads.count > 500 ? 4096 : Self.copyBytes
    let tableBytes = (asked.count * MemoryLayout<hck_stack_copy>.stride + 4095) & ~4095
    let size = max(4096, tableBytes + asked.count * room)
    guard
      let memory = mmap(
        nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
      memory != MAP_FAILED
    else {
      hck_stack_signal_end(signal, 0)
      limits = ["no stacks: there is no memory for the copies"]
      return [:]
    }
    let copies = Copies(
      start: memory.assumingMemoryBound(to: hck_stack_copy.self), count: asked.count)
    for (index, tid) in asked.enumerated() {
      copies[index].tid = UInt32(bitPattern: tid.rawValue)
      copies[index].room = UInt64(room)
      copies[index].bytes = memory.advanced(by: tableBytes + index * room)
        .assumingMemoryBound(to: UInt8.self)
      hck_store32(&copies[index].state, HCK_COPY_ASKED.rawValue)
    }
    let late = ask(signal, copies, files)
    hck_stack_signal_end(signal, late > 0 ? 1 : 0)
    let result = collect(copies)
    // A thread that answers late still writes there: then the memory stays.
    if late == 0 { munmap(memory, size) }
    return result
  }

  /// Returns how many live threads have not answered.
  private func ask(_ signal: Int32, _ copies: Copies, _ files: ProcessFiles) -> Int {
    var waiting: [Int] = []
    for index in copies.indices {
      let error = hck_stack_ask(signal, &copies[index])
      if error == 0 {
        waiting.append(index)
      } else if error != ESRCH {
        limits.append("a stack could not be asked for: " + String(cString: strerror(error)))
      }
    }
    let deadline = hck_monotonic_ns() &+ Self.patience
    while true {
      waiting.removeAll { hck_load32(&copies[$0].state) == HCK_COPY_DONE.rawValue }
      if waiting.isEmpty { return 0 }
      if hck_monotonic_ns() >= deadline { break }
      usleep(100)
    }
    return waiting.filter {
      files.isAlive(KernelThreadID(Int32(bitPattern: copies[$0].tid)))
    }.count
  }

  private func collect(_ copies: Copies) -> [KernelThreadID: CapturedThread] {
    var result: [KernelThreadID: CapturedThread] = [:]
    for index in copies.indices
    where hck_load32(&copies[index].state) == HCK_COPY_DONE.rawValue {
      let copy = copies[index]
      let r = copy.registers
      var registers = Registers(rip: r.15, rsp: r.16, rbp: r.4)
      (registers.r15, registers.r14, registers.r13, registers.r12) = (r.0, r.1, r.2, r.3)
      (registers.rbx, registers.r11, registers.r10, registers.r9) = (r.5, r.6, r.7, r.8)
      (registers.r8, registers.rax, registers.rcx, registers.rdx) = (r.9, r.10, r.11, r.12)
      (registers.rsi, registers.rdi) = (r.13, r.14)
      // The handler wrote `length` bytes there, and has finished.
      let bytes = [UInt8](UnsafeBufferPointer(start: copy.bytes, count: Int(copy.length)))
      let tid = KernelThreadID(Int32(bitPattern: copy.tid))
      result[tid] = CapturedThread(
        tid: tid, registers: registers, stack: StackCopy(base: copy.base, bytes: bytes))
    }
    return result
  }

  /// The free signal that most threads let through, and those threads.
  private func choose(
    _ threads: [KernelThreadID], _ files: ProcessFiles
  ) -> (Int32, [KernelThreadID])? {
    var signals = [Int32](repeating: 0, count: 8)
    signals.removeLast(8 - Int(hck_stack_signals(&signals, 8)))
    let blocked = threads.map(files.blockedSignals)
    let choices = signals.map { signal in
      (signal, zip(threads, blocked).filter { $1 & (1 << UInt64(signal - 1)) == 0 }.map(\.0))
    }
    guard let most = choices.map(\.1.count).max() else { return nil }
    return choices.first { $0.1.count == most }
  }
}

extension ProcessFiles {
  /// The signals that a thread would leave waiting, as a mask; none where that cannot be read.
  func blockedSignals(_ tid: KernelThreadID) -> UInt64 {
    guard let bytes = readFile("/proc/\(pid.rawValue)/task/\(tid.rawValue)/status") else {
      return 0
    }
    let text = String(decoding: bytes, as: UTF8.self)
    guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("SigBlk:") }) else {
      return 0
    }
    return UInt64(line.dropFirst(7).drop { $0 == "\t" || $0 == " " }, radix: 16) ?? 0
  }
}
