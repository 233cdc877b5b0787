internal import CHangcheck
internal import Glibc
internal import HangReport
internal import Synchronization

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
final class StackCapture {
  /// Threads that were asked to stop and have not yet (in an uninterruptible wait): let go as soon
  /// as they do.
  private var strays: [KernelThreadID] = []

  /// The program's first thread, where it is our own child: its end is not taken here.
  private let child: KernelThreadID?

  /// How long all threads may take to stop, in nanoseconds: those that stopped first wait for it.
  private let patience: UInt64

  init(child: KernelThreadID?, patience: UInt64 = 300_000_000) {
    self.child = child
    self.patience = patience
  }

  /// Nanoseconds from the first thread's stop until all went on, of the last capture.
  private(set) var stoppedFor: UInt64 = 0

  /// Why nothing could be copied, when nothing could.
  private(set) var refusal: String?

  /// Bytes of stack copied from each thread; what lies beyond is read later, from threads that
  /// still wait.
  private static let copyBytes = 32 * 1024

  func capture(_ threads: [KernelThreadID], memory: ProcessMemory) -> [KernelThreadID:
    CapturedThread]
  {
    refusal = nil
    let begun = hck_monotonic_ns()
    defer { stoppedFor = hck_monotonic_ns() &- begun }
    var asked: [KernelThreadID] = []
    for tid in threads {
      let error = hck_ptrace_seize(tid.rawValue)
      if error == 0 {
        _ = hck_ptrace_interrupt(tid.rawValue)
        asked.append(tid)
      } else if error != ESRCH {
        refusal = "ptrace: " + String(cString: strerror(error))
      }
    }
    let copyBytes = threads.count > 500 ? 4096 : Self.copyBytes
    var result: [KernelThreadID: CapturedThread] = [:]
    var stopped: [(KernelThreadID, Int32)] = []
    let deadline = hck_monotonic_ns() &+ patience
    for tid in asked {
      switch waitForStop(tid, until: deadline) {
      case .stopped(let signal):
        stopped.append((tid, signal))
        if let thread = copy(tid, memory, copyBytes) { result[tid] = thread }
      case .late: strays.append(tid)
      case .gone: break
      }
    }
    // One that was killed meanwhile is still ours to bury.
    for (tid, signal) in stopped where hck_ptrace_detach(tid.rawValue, signal) != 0 {
      strays.append(tid)
    }
    return result
  }

  deinit {
    let deadline = hck_monotonic_ns() &+ 100_000_000
    while !strays.isEmpty, hck_monotonic_ns() < deadline {
      release(&strays)
      if !strays.isEmpty { usleep(1000) }
    }
    let left = strays.map { (tracer: hck_gettid(), tid: $0) }
    if !left.isEmpty { Self.orphans.withLock { $0 += left } }
  }

  /// What a capture that is gone has left behind, by the thread that traces it: it would stand still
  /// for as long as that lives.
  private static let orphans = Mutex<[(tracer: UInt32, tid: KernelThreadID)]>([])

  /// Lets go what has stopped since, of this capture and of those that are gone.
  func releaseStrays() {
    release(&strays)
    let own = hck_gettid()
    var left = Self.orphans.withLock { all in
      let mine = all.filter { $0.tracer == own }.map(\.tid)
      all.removeAll { $0.tracer == own }
      return mine
    }
    guard !left.isEmpty else { return }
    release(&left)
    strays += left
  }

  /// The same from the thread that looked, where no capture is at hand.
  static func releaseOrphans() { StackCapture(child: nil).releaseStrays() }

  private func release(_ strays: inout [KernelThreadID]) {
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
      var info = siginfo_t()
      let looked = waitid(
        P_PID, id_t(tid.rawValue), &info,
        WEXITED | WSTOPPED | WNOHANG | WNOWAIT | Int32(bitPattern: UInt32(__WALL)))
      if looked != 0 { return .gone }
      if info.si_signo != 0 {
        if info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED {
          // A traced thread stays until its tracer has taken note, and with it its process.
          var status: Int32 = 0
          if tid != child { _ = waitpid(tid.rawValue, &status, WNOHANG | __WALL) }
          return .gone
        }
        var status: Int32 = 0
        guard waitpid(tid.rawValue, &status, WNOHANG | __WALL) == tid.rawValue else { return .gone }
        guard status & 0xff == 0x7f else { return .gone }
        // PTRACE_EVENT_STOP is ours (or a group stop, which goes on by itself); else a signal was
        // on its way.
        return .stopped(signal: status >> 16 == 0 ? (status >> 8) & 0xff : 0)
      }
      if hck_monotonic_ns() >= deadline { return .late }
      usleep(50)
    }
  }

  private func copy(_ tid: KernelThreadID, _ memory: ProcessMemory, _ size: Int) -> CapturedThread?
  {
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
