internal import Glibc

/// Why a process cannot be looked at: one sentence with what to do about it.
package struct AttachRefusal: Error, Hashable, Sendable {
  package var message: String
}

/// What decides whether a process may be looked at, read from /proc at one moment.
package struct AttachFacts: Hashable, Sendable {
  package var pid: Int32
  package var ownPID: Int32
  /// Effective ids.
  package var uid: UInt32 = 0
  package var ownUID: UInt32 = 0
  /// Every user id that it has.
  package var uids: Set<UInt32> = []
  /// The process that it is a thread of; its own id for a process; nil where there is none.
  package var group: Int32?
  package var parent: Int32 = 0
  package var isZombie = false
  package var isKernelThread = false
  package var tracer: Int32 = 0
  /// 1 for a 32-bit program, 2 for a 64-bit one; nil where its file cannot be read.
  package var elfClass: UInt8?
  package var machine: UInt16?
  /// What the kernel answered to an attempt to read it; 0 for yes.
  package var error: Int32 = 0
  /// /proc/sys/kernel/yama/ptrace_scope, where the kernel has that.
  package var ptraceScope: Int?
  /// Whether this process has CAP_SYS_PTRACE.
  package var isCapable = false
  /// Whether the process forbids dumps, as one does that is setuid or changed its user.
  package var isProtected = false
  package var stops = true

  package init(pid: Int32, ownPID: Int32) {
    self.pid = pid
    self.ownPID = ownPID
  }

  /// Nil where nothing stands against a look.
  package var refusal: AttachRefusal? { sentence.map { AttachRefusal(message: $0) } }

  private var sentence: String? {
    if pid == ownPID { return "process \(pid) is hangcheck itself, which does not hang" }
    guard let group else {
      return "there is no process \(pid); find the one you mean with `pgrep -f NAME`"
    }
    if group != pid { return "\(pid) is a thread of process \(group): attach to \(group)" }
    if isKernelThread {
      return "process \(pid) is a thread of the kernel, which has no program to look at"
    }
    if isZombie {
      return "process \(pid) has ended and only waits to be reaped: look at its parent,"
        + " process \(parent)"
    }
    if error == EPERM || error == EACCES { return refusalOfKernel }
    if error == ESRCH { return "process \(pid) ended while it was looked at" }
    if error != 0 {
      return "process \(pid) cannot be read (\(String(cString: strerror(error))))"
    }
    if elfClass == 1 {
      return "process \(pid) runs a 32-bit program: only 64-bit ones are understood; gdb is not"
        + " bound to them"
    }
    if let machine, machine != 62 {
      return "process \(pid) runs a program for another machine (ELF machine \(machine)): only"
        + " x86-64 is understood"
    }
    if tracer != 0 && stops {
      return "process \(pid) is being traced by process \(tracer), and has one tracer at a time:"
        + " end that, or use --no-stop"
    }
    return nil
  }

  private var refusalOfKernel: String {
    let sudo = "run `sudo hangcheck attach \(pid)`"
    if !isCapable, ownUID != 0, uids != [ownUID] {
      return "process \(pid) belongs to another user (uid \(uid), this is \(ownUID)): \(sudo)"
    }
    if ownUID == 0 && !isCapable {
      return
        "process \(pid) may not be looked at, although this is root: CAP_SYS_PTRACE is missing;"
        + " give it to the container (`--cap-add=SYS_PTRACE`), or attach from its host"
    }
    switch ptraceScope {
    case 3?:
      return
        "this system forbids all tracing until it is restarted (kernel.yama.ptrace_scope is 3):"
        + " start the program under hangcheck instead"
    case 2? where !isCapable:
      return "this system lets only CAP_SYS_PTRACE trace (kernel.yama.ptrace_scope is 2): \(sudo)"
    case 1? where !isCapable && !isProtected:
      return "this system lets a process be traced by its parents alone"
        + " (kernel.yama.ptrace_scope is 1): \(sudo), or"
        + " `sudo sysctl kernel.yama.ptrace_scope=0` until the next start"
    default: break
    }
    if isProtected && !isCapable {
      return "process \(pid) is protected, as programs are that are setuid or changed their user:"
        + " \(sudo)"
    }
    return "the kernel does not let process \(pid) be looked at, perhaps a seccomp filter or a"
      + " security module:"
      + (isCapable ? " attach from outside of the container" : " " + sudo)
  }
}

extension AttachFacts {
  /// Reads them, and tries to read the process's memory.
  package static func of(_ pid: Int32, stops: Bool) -> AttachFacts {
    var facts = AttachFacts(pid: pid, ownPID: getpid())
    facts.stops = stops
    facts.ownUID = geteuid()
    let proc = ProcReader(ProcessID(pid))
    func lines(_ text: String?) -> [Substring: Substring] {
      var fields: [Substring: Substring] = [:]
      for line in (text ?? "").split(separator: "\n") {
        guard let colon = line.firstIndex(of: ":") else { continue }
        fields[line[..<colon]] = line[line.index(after: colon)...].drop { $0 == "\t" || $0 == " " }
      }
      return fields
    }
    let own = lines(ProcReader(ProcessID(facts.ownPID)).text("status"))
    if let caps = own["CapEff"].flatMap({ UInt64($0, radix: 16) }) {
      facts.isCapable = caps & 1 << 19 != 0
    }
    let status = lines(proc.text("status"))
    facts.group = status["Tgid"].flatMap { Int32($0) }
    facts.parent = status["PPid"].flatMap { Int32($0) } ?? 0
    facts.tracer = status["TracerPid"].flatMap { Int32($0) } ?? 0
    let users = (status["Uid"] ?? "").split(separator: "\t").compactMap { UInt32($0) }
    facts.uids = Set(users)
    facts.uid = users.count > 1 ? users[1] : 0
    // The field behind the command's name: state, parent, group, session, tty, its group, flags.
    let line = proc.text("stat") ?? ""
    let fields = (line.lastIndex(of: ")").map { line[line.index(after: $0)...] } ?? "")
      .split(separator: " ")
    if fields.count > 6 {
      let isOnlyFirst = (proc.list("task") ?? []).count <= 1
      facts.isZombie = (fields[0] == "Z" || fields[0] == "X") && isOnlyFirst
      facts.isKernelThread = (UInt32(fields[6]) ?? 0) & 0x0020_0000 != 0
    }
    guard facts.group == pid, !facts.isZombie, !facts.isKernelThread else { return facts }
    var owner = stat()
    // The files of a protected process are root's.
    if stat("/proc/\(pid)/maps", &owner) == 0 {
      facts.isProtected = owner.st_uid != facts.uid && owner.st_uid == 0
    }
    facts.error = attempt(pid)
    if let header = proc.part(of: "exe", 20), header.starts(with: [0x7f, 0x45, 0x4c, 0x46]) {
      facts.elfClass = header[4]
      facts.machine = UInt16(header[18]) | UInt16(header[19]) << 8
    }
    let scope = readFile("/proc/sys/kernel/yama/ptrace_scope")
    facts.ptraceScope = scope.flatMap {
      Int(String(decoding: $0.prefix { $0 >= 48 && $0 <= 57 }, as: UTF8.self))
    }
    return facts
  }

  /// The same question that reading memory and stopping it will be.
  private static func attempt(_ pid: Int32) -> Int32 {
    var error: Int32 = 0
    // A process whose first thread has ended has its memory through another one alone.
    let threads = ProcessFiles(ProcessID(pid)).threads().reversed().prefix(4)
    for path in ["/proc/\(pid)/mem"] + threads.map({ "/proc/\(pid)/task/\($0.rawValue)/mem" }) {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      if descriptor >= 0 {
        close(descriptor)
        return 0
      }
      // What has no memory any more is root's, for the kernel.
      error = errno
    }
    return error
  }
}

/// What tells one program in one process from another one later.
struct ProcessIdentity: Equatable {
  /// When it began, in the kernel's ticks.
  private var started: Substring
  /// Where its code and its arguments lie, which exec changes.
  private var layout: [Substring]

  /// Nil for a process that is gone, or has ended.
  init?(_ proc: ProcReader) {
    guard let first = Self.fields(proc, "stat") else { return nil }
    let threads = (proc.list("task") ?? []).reversed()
    if first[0] == "Z" || first[0] == "X", threads.count <= 1 { return nil }
    started = first[19]
    // A thread that has ended, or is about to, has given its memory back: no stack begins anywhere.
    let others = threads.lazy.prefix(4).compactMap { Self.fields(proc, "task/\($0)/stat") }
    guard let fields = first[25] != "0" ? first : others.first(where: { $0[25] != "0" }) else {
      return nil
    }
    // start_code, end_code, start_stack; arg_start: fields 26 to 28 and 48 of proc(5).
    layout = [fields[23], fields[24], fields[25], fields[45]]
  }

  /// From the third field of proc(5) on, which is the state.
  private static func fields(_ proc: ProcReader, _ name: String) -> [Substring]? {
    let stat = proc.text(name) ?? ""
    let fields = (stat.lastIndex(of: ")").map { stat[stat.index(after: $0)...] } ?? "")
      .split(separator: " ")
    return fields.count > 48 ? fields : nil
  }

  /// When a process was forked, in the kernel's ticks; anybody may ask that.
  static func began(_ proc: ProcReader) -> UInt64? {
    fields(proc, "stat").flatMap { UInt64($0[19]) }
  }

  func isSameProcess(as other: ProcessIdentity) -> Bool { started == other.started }
}
