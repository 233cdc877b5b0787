internal import CHangcheck
internal import Glibc
internal import HangReport

/// The registers and the top of the stack of one thread, copied while it stood still.
struct CapturedThread {
  var tid: KernelThreadID
  var registers: Registers
  var stack: StackCopy
  /// The system call that it was stopped in.
  var systemCall: Int?
}

/// Stops the threads of a process for a moment and copies their stacks (PTRACE_SEIZE: no signal is
/// sent, and should hangcheck die, the kernel lets them go on). Confined to the thread that made
/// it: the kernel demands it.
///
/// Threads are stopped in groups, so that nobody stands still for long however many they are: nothing is
/// concluded from stacks being of one moment. A thread that is late to stop, since it waits for a
/// processor, keeps no other one waiting.
final class StackCapture {
  /// Threads that were asked to stop and have not yet (in an uninterruptible wait): let go as soon
  /// as they do.
  private var strays: [KernelThreadID] = []

  /// The program's first thread, where it is our own child: its end is not taken here.
  private let child: KernelThreadID?

  /// How long a thread may take to stop, in nanoseconds.
  private let patience: UInt64

  init(child: KernelThreadID?, patience: UInt64 = 300_000_000) {
    self.child = child
    self.patience = patience
  }

  deinit {
    releaseStrays()
    let left = strays
    if !left.isEmpty { Strays.leave(left) }
  }

  /// Nanoseconds for which a thread stood still at most in the last capture.
  private(set) var stoppedFor: UInt64 = 0

  /// Why nothing could be copied, when nothing could.
  private(set) var refusal: String?

  /// Bytes of stack copied from each thread; what lies beyond is read later, from threads that
  /// still wait.
  private static let copyBytes = 32 * 1024
  /// The same of many threads.
  private static let fewBytes = 4096
  /// Threads that are stopped at once.
  private static let groupSize = 32
  /// The same where this thread has to take turns with others: each of them stands still for its turns.
  private static let groupSizeInTurn = 1
  /// Nanoseconds after which a group goes on, though some of it have not stopped yet.
  private static let standing: UInt64 = 2_000_000

  /// A thread that was asked to stop.
  private struct Asked {
    var tid: KernelThreadID
    /// It cannot have stood still before: asked then, or seen running.
    var since: UInt64
  }

  /// `mayStop` is asked of each thread right before it is stopped.
  func capture(
    _ threads: [KernelThreadID], memory: ProcessMemory,
    where mayStop: (KernelThreadID) -> Bool = { _ in true }
  ) -> [KernelThreadID: CapturedThread] {
    refusal = nil
    stoppedFor = 0
    let copier = Copier(memory: memory, size: threads.count > 500 ? Self.fewBytes : Self.copyBytes)
    var result: [KernelThreadID: CapturedThread] = [:]
    result.reserveCapacity(threads.count)
    let isUrgent = Urgency.during { $0 }
    let size = isUrgent ? Self.groupSize : Self.groupSizeInTurn
    for start in stride(from: 0, to: threads.count, by: size) {
      let group = threads[start..<min(start + size, threads.count)]
      Urgency.during { _ in
        // A thread that was seized can be let go only after it has stopped.
        let asked = group.compactMap { mayStop($0) ? askToStop($0) : nil }
        captureGroup(asked, copier, &result)
      }
    }
    return result
  }

  private func captureGroup(
    _ asked: [Asked], _ copier: Copier,
    _ result: inout [KernelThreadID: CapturedThread]
  ) {
    let begun = hck_monotonic_ns()
    // Of each group: under load a thousand threads take longer than one that is late.
    let deadline = begun &+ patience
    var asked = asked
    var standing: [Standing] = []
    while true {
      standing += collect(&asked, copier, &result)
      let now = hck_monotonic_ns()
      let isLate = now &- begun >= Self.standing
      // Who is late stands still alone, and goes on at once.
      if isLate || asked.isEmpty {
        letGo(standing)
        standing = []
      }
      if asked.isEmpty || now >= deadline { break }
      // They may need the processor that this thread is on.
      usleep(isLate ? 100 : 20)
    }
    strays += asked.map(\.tid)
  }

  private func askToStop(_ tid: KernelThreadID) -> Asked? {
    let error = hck_ptrace_seize(tid.rawValue)
    guard error == 0 else {
      if error != ESRCH { refusal = "ptrace: " + String(cString: strerror(error)) }
      return nil
    }
    let since = hck_monotonic_ns()
    _ = hck_ptrace_interrupt(tid.rawValue)
    return Asked(tid: tid, since: since)
  }

  private struct Standing {
    var asked: Asked
    var signal: Int32
  }

  /// Copies those that have stopped and takes them out of `asked`.
  private func collect(
    _ asked: inout [Asked], _ copier: Copier, _ result: inout [KernelThreadID: CapturedThread]
  ) -> [Standing] {
    var standing: [Standing] = []
    var left: [Asked] = []
    for var thread in asked {
      let now = hck_monotonic_ns()
      switch waitForStop(thread.tid, until: 0) {
      case .stopped(let signal):
        standing.append(Standing(asked: thread, signal: signal))
        if let copy = copier.copy(thread.tid) { result[thread.tid] = copy }
      case .late:
        thread.since = now
        left.append(thread)
      case .gone: break
      }
    }
    asked = left
    return standing
  }

  private func letGo(_ standing: [Standing]) {
    for thread in standing {
      // One that was killed meanwhile is still ours to bury.
      if hck_ptrace_detach(thread.asked.tid.rawValue, thread.signal) != 0 {
        strays.append(thread.asked.tid)
      }
      stoppedFor = max(stoppedFor, hck_monotonic_ns() &- thread.asked.since)
    }
  }

  /// Lets go what has stopped since.
  func releaseStrays() {
    if Strays.areLeft { strays += Strays.take() }
    strays.removeAll { tid in
      switch waitForStop(tid, until: 0) {
      case .stopped(let signal): return hck_ptrace_detach(tid.rawValue, signal) == 0
      case .late: return false
      case .gone: return true
      }
    }
  }

  /// Calls `body` with the registers of all threads while every one of them stands still; nil where one
  /// of them could not be stopped in 50 ms. `threads` lists them, again and again until none is new.
  func whileAllStand<Result>(
    _ threads: () -> [KernelThreadID], _ body: ([KernelThreadID: [UInt64]]) -> Result?
  ) -> Result? {
    var registers: [KernelThreadID: [UInt64]] = [:]
    var stopped: [(KernelThreadID, Int32)] = []
    defer {
      for (tid, signal) in stopped where hck_ptrace_detach(tid.rawValue, signal) != 0 {
        strays.append(tid)
      }
    }
    let deadline = hck_monotonic_ns() &+ 50_000_000
    var gone: Set<KernelThreadID> = []
    while true {
      let fresh = threads().filter { registers[$0] == nil && !gone.contains($0) }
      if fresh.isEmpty { break }
      var asked: [KernelThreadID] = []
      var isRefused = false
      for tid in fresh {
        let error = hck_ptrace_seize(tid.rawValue)
        if error == 0 {
          _ = hck_ptrace_interrupt(tid.rawValue)
          asked.append(tid)
        } else if error == ESRCH {
          gone.insert(tid)
        } else {
          isRefused = true
        }
      }
      for tid in asked {
        switch waitForStop(tid, until: deadline) {
        case .stopped(let signal):
          stopped.append((tid, signal))
          if let words = allRegisters(tid) { registers[tid] = words } else { isRefused = true }
        case .late:
          strays.append(tid)
          isRefused = true
        case .gone: gone.insert(tid)
        }
      }
      if isRefused || hck_monotonic_ns() > deadline { return nil }
    }
    return body(registers)
  }

  /// The stack pointer is the eighteenth; those of vectors follow.
  private func allRegisters(_ tid: KernelThreadID) -> [UInt64]? {
    var words = [UInt64](repeating: 0, count: 18 + 1400)
    guard hck_ptrace_registers(tid.rawValue, &words) == 0 else { return nil }
    let got = words.withUnsafeMutableBytes { raw in
      hck_ptrace_vectors(tid.rawValue, raw.baseAddress.map { $0 + 144 }, raw.count - 144)
    }
    return got > 0 ? words : nil
  }

  private enum Stop {
    /// With the signal that is to be delivered, 0 for none.
    case stopped(signal: Int32)
    case late, gone
  }

  private func waitForStop(_ tid: KernelThreadID, until deadline: UInt64) -> Stop {
    while true {
      // An exit is only looked at: it belongs to whoever waits for the child.
      if tid == child {
        var info = siginfo_t()
        let looked = waitid(
          P_PID, id_t(tid.rawValue), &info,
          WEXITED | WSTOPPED | WNOHANG | WNOWAIT | Int32(bitPattern: UInt32(__WALL)))
        if looked != 0 { return .gone }
        let ends = [Int32(CLD_EXITED), Int32(CLD_KILLED), Int32(CLD_DUMPED)]
        if info.si_signo != 0, ends.contains(info.si_code) { return .gone }
      }
      // Any other thread stays until its tracer has taken note of its end, and with it its process.
      var status: Int32 = 0
      let got = waitpid(tid.rawValue, &status, WNOHANG | __WALL)
      if got != 0 {
        guard got == tid.rawValue, status & 0xff == 0x7f else { return .gone }
        // PTRACE_EVENT_STOP is ours (or a group stop, which goes on by itself); else a signal was
        // on its way.
        return .stopped(signal: status >> 16 == 0 ? (status >> 8) & 0xff : 0)
      }
      if hck_monotonic_ns() >= deadline { return .late }
      usleep(50)
    }
  }
}

/// Copies what a thread that stands still has in its registers and on its stack.
private struct Copier {
  let memory: ProcessMemory
  /// Bytes of stack.
  let size: Int

  func copy(_ tid: KernelThreadID) -> CapturedThread? {
    var raw = [UInt64](repeating: 0, count: 18)
    guard hck_ptrace_registers(tid.rawValue, &raw) == 0 else { return nil }
    let registers = Registers(kernel: raw, stackPointer: raw[17])
    let base = registers.rsp &- 128
    var bytes = [UInt8](repeating: 0, count: size)
    let got = bytes.withUnsafeMutableBytes { memory.read(base, into: $0) }
    bytes.removeLast(bytes.count - got)
    return CapturedThread(
      tid: tid, registers: registers, stack: StackCopy(base: base, bytes: bytes),
      systemCall: Int64(bitPattern: raw[15]) >= 0 ? Int(raw[15]) : nil)
  }
}

extension Registers {
  /// From the first words of the kernel's `user_regs_struct`, and rsp.
  init(kernel raw: [UInt64], stackPointer: UInt64) {
    self.init(rip: raw[16], rsp: stackPointer, rbp: raw[4])
    (r15, r14, r13, r12, rbx) = (raw[0], raw[1], raw[2], raw[3], raw[5])
    (r11, r10, r9, r8) = (raw[6], raw[7], raw[8], raw[9])
    (rax, rcx, rdx, rsi, rdi) = (raw[10], raw[11], raw[12], raw[13], raw[14])
  }
}
