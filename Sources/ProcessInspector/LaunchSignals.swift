internal import CHangcheck
internal import Glibc

/// A set of blocked signals.
package struct SignalMask {
  let value: sigset_t
}

/// Takes over the signals of this process: from here on they are read, and end nothing.
package struct SignalIntake: ~Copyable {
  package struct Arrival: Sendable, Hashable {
    package var number: Int32
    /// si_code: `SI_KERNEL` from the terminal or a timer, 0 and below from a process.
    package var code: Int32
    package var sender: Int32
    package init(number: Int32, code: Int32, sender: Int32) {
      self.number = number
      self.code = code
      self.sender = sender
    }
    package var isFromKernel: Bool { code == 0x80 }
  }

  /// What the program gets: the mask and the fate of SIGCHLD as they were inherited.
  package let inheritedMask: SignalMask
  package let ignoredChildSignal: Bool
  private let source: OwnedDescriptor
  package var descriptor: Int32 { source.rawValue }

  package init() throws(SystemError) {
    var handled = sigset_t()
    var old = sigset_t()
    let result = hck_block_signals(&handled, &old)
    guard result == 0 else { throw SystemError(-result) }
    let fd = hck_signalfd(&handled)
    guard fd >= 0 else { throw SystemError(-fd) }
    source = OwnedDescriptor(fd)
    inheritedMask = SignalMask(value: old)
    // Where it is ignored the kernel reaps children by itself, and their status is lost.
    ignoredChildSignal = hck_take_child_signal()
  }

  package func next() -> Arrival? {
    var signal = hck_signal()
    guard hck_read_signal(descriptor, &signal) == 1 else { return nil }
    return Arrival(number: signal.number, code: signal.code, sender: signal.pid)
  }
}

/// A process that this one started and has not yet reaped, so that its pid is its own.
package struct ChildProcess: Sendable, Hashable {
  package enum Change: Sendable, Hashable {
    case ended(RunEnd)
    case stopped(Int32)
    case continued
  }

  package let pid: Int32
  package init(pid: Int32) { self.pid = pid }

  package func send(_ signal: Int32) { kill(pid, signal) }

  /// What happened since the last call. The end is told again until `reap`.
  package func nextChange(reap: Bool = false) -> Change? {
    var change = hck_change()
    let result = hck_wait_change(pid, reap, &change)
    // Somebody else has reaped it: nothing is known but that it has gone.
    if result < 0 { return .ended(.status(0)) }
    switch change.code {
    case Int32(CLD_EXITED): return .ended(.status(change.status))
    case Int32(CLD_KILLED), Int32(CLD_DUMPED): return .ended(.signal(change.status))
    case Int32(CLD_STOPPED): return .stopped(change.status)
    case Int32(CLD_CONTINUED): return .continued
    default: return nil
    }
  }

  package var isStopped: Bool { ProcessTable.state(of: pid) == UInt8(ascii: "T") }
  /// The kernel is writing its core.
  package var isDumpingCore: Bool {
    Files.text(of: "/proc/\(pid)/status")?.contains("CoreDumping:\t1") ?? false
  }
  /// What the terminal sends to this process's group reaches it too.
  package var sharesGroup: Bool { getpgid(pid) == getpgrp() }

  package func isAncestor(of other: Int32) -> Bool {
    var next = other
    for _ in 0..<256 {
      if next == pid { return true }
      guard next > 1, let parent = ProcessTable.parent(of: next) else { return false }
      next = parent
    }
    return false
  }
}

/// What /proc tells of other processes.
package enum ProcessTable {
  /// The fields of /proc/PID/stat behind the name, which may hold anything.
  private static func fields(of pid: Int32) -> [Substring]? {
    guard let text = Files.text(of: "/proc/\(pid)/stat", limit: 4096),
      let end = text.lastIndex(of: ")")
    else { return nil }
    return text[text.index(after: end)...].split(separator: " ")
  }

  package static func state(of pid: Int32) -> UInt8? { fields(of: pid)?.first?.utf8.first }

  package static func parent(of pid: Int32) -> Int32? {
    guard let fields = fields(of: pid), fields.count > 1 else { return nil }
    return Int32(fields[1])
  }

  /// Children and their children, outermost first.
  package static func descendants(of pid: Int32) -> [Int32] {
    var result: [Int32] = []
    var next = [pid]
    while let parent = next.popLast() {
      guard let folder = opendir("/proc/\(parent)/task") else { continue }
      defer { closedir(folder) }
      while let entry = readdir(folder) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) {
          String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        let path = "/proc/\(parent)/task/\(name)/children"
        guard name != ".", name != "..", let text = Files.text(of: path) else { continue }
        let children = text.split(separator: " ").compactMap { Int32($0) }
        result += children
        next += children
      }
    }
    return result
  }
}
