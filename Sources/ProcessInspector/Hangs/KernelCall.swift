internal import Glibc

/// The system call that a thread is in, as a reader wants to have it told.
struct KernelCall: Equatable {
  /// `read`, `clock_nanosleep`.
  var name: String
  /// What it waits for: a descriptor and what that is, a child process.
  var what: String?
}

extension OutsideWorld {
  func describe(_ call: SystemCall) -> KernelCall {
    let name = SystemCalls.name(call.number)
    if SystemCalls.takesDescriptor(call.number) {
      return KernelCall(
        name: name, what: describeEnds(of: Int32(truncatingIfNeeded: call.arguments[0])))
    }
    switch call.number {
    case SystemCalls.poll, SystemCalls.ppoll:
      return KernelCall(name: name, what: polled(call.arguments))
    case SystemCalls.wait4, SystemCalls.waitid:
      let argument = call.arguments[call.number == SystemCalls.wait4 ? 0 : 1]
      return KernelCall(name: name, what: child(Int32(truncatingIfNeeded: argument)))
    default: return KernelCall(name: name, what: nil)
    }
  }

  private func polled(_ arguments: [UInt64]) -> String? {
    guard arguments[1] > 0, arguments[1] < 1024, let word = memory.word(arguments[0]) else {
      return nil
    }
    let first = describeEnds(of: Int32(truncatingIfNeeded: word))
    return arguments[1] == 1 ? first : first + " and \(arguments[1] - 1) more"
  }

  private func child(_ pid: Int32) -> String {
    guard pid > 0 else { return "any child process" }
    let name = ProcessFiles(ProcessID(pid)).name(KernelThreadID(pid))
    return "child process \(pid)" + (name.isEmpty ? "" : " \"\(name)\"")
  }

  /// The same as `describe`, and who is at the other end.
  private func describeEnds(of descriptor: Int32) -> String {
    guard let link = link(descriptor) else { return "descriptor \(descriptor)" }
    if link.hasPrefix("pipe:") {
      return "descriptor \(descriptor), a pipe" + (otherEnd(of: link, descriptor) ?? "")
    }
    guard link.hasPrefix("socket:["), let inode = UInt64(link.dropFirst(8).dropLast()) else {
      return describe(descriptor)
    }
    return "descriptor \(descriptor), a socket" + (peers(ofSocket: inode).map { " \($0)" } ?? "")
  }

  private func otherEnd(of link: String, _ descriptor: Int32) -> String? {
    func writes(_ descriptor: Int32) -> Bool? {
      guard let text = proc.text("\(descriptors)info/\(descriptor)"),
        let line = text.split(separator: "\n").first(where: { $0.hasPrefix("flags:") }),
        let word = line.split(whereSeparator: { $0 == "\t" || $0 == " " }).last,
        let flags = UInt32(word, radix: 8)
      else { return nil }
      return flags & 3 != 0
    }
    guard let names = proc.list(descriptors), let own = writes(descriptor) else { return nil }
    for other in names.compactMap({ Int32($0) }).sorted()
    where other != descriptor && self.link(other) == link && writes(other) == !own {
      return " whose other end is descriptor \(other) of the same process"
    }
    return " whose other end no descriptor of this process is"
  }

  /// From the kernel's tables: `127.0.0.1:80 to 127.0.0.1:4711`, a path.
  private func peers(ofSocket inode: UInt64) -> String? {
    for (table, isUnix) in [
      ("net/tcp", false), ("net/tcp6", false), ("net/unix", true), ("net/udp", false),
      ("net/udp6", false),
    ] {
      guard let text = proc.text(table) else { continue }
      for line in text.split(separator: "\n").dropFirst() {
        let words = line.split(separator: " ")
        if isUnix {
          guard words.count > 6, UInt64(words[6]) == inode else { continue }
          return words.count > 7 ? "of the Unix domain, \(words[7])" : "of the Unix domain"
        }
        guard words.count > 9, UInt64(words[9]) == inode, let own = Self.endpoint(words[1]),
          let other = Self.endpoint(words[2])
        else { continue }
        return other.hasSuffix(":0") ? "on \(own)" : "from \(own) to \(other)"
      }
    }
    return nil
  }

  /// `0100007F:0050` as `127.0.0.1:80`. Each word of an address is written in the byte order of the
  /// machine.
  static func endpoint(_ text: Substring) -> String? {
    let parts = text.split(separator: ":")
    guard parts.count == 2, let port = UInt16(parts[1], radix: 16) else { return nil }
    let digits = Array(parts[0])
    guard digits.count == 8 || digits.count == 32 else { return nil }
    var bytes: [UInt8] = []
    for start in stride(from: 0, to: digits.count, by: 8) {
      guard let word = UInt32(String(digits[start..<start + 8]), radix: 16) else { return nil }
      withUnsafeBytes(of: word) { bytes += $0 }
    }
    if bytes.count == 4 { return bytes.map(String.init).joined(separator: ".") + ":\(port)" }
    var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    guard inet_ntop(AF_INET6, bytes, &buffer, socklen_t(buffer.count)) != nil else { return nil }
    let address = String(
      decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return "[\(address)]:\(port)"
  }
}

extension SystemCalls {
  /// Whether a call's first argument is the descriptor that it works on.
  static func takesDescriptor(_ number: Int) -> Bool {
    switch number {
    case 0, 1, 16, 17, 18, 19, 20, 42...47, 72...75, 77, 285, 288, 295, 296, 299, 307, 327, 328,
      epollWait, epollPwait, epollPwait2:
      true
    default: false
    }
  }

  /// As the manual calls it. Numbers of x86-64.
  static func name(_ number: Int) -> String { names[number] ?? "system call \(number)" }

  private static let names: [Int: String] = [
    0: "read", 1: "write", 2: "open", 3: "close", 4: "stat", 5: "fstat", 6: "lstat", 7: "poll",
    8: "lseek", 9: "mmap", 10: "mprotect", 11: "munmap", 12: "brk", 16: "ioctl", 17: "pread64",
    18: "pwrite64", 19: "readv", 20: "writev", 22: "pipe", 23: "select", 24: "sched_yield",
    26: "msync", 28: "madvise", 34: "pause", 35: "nanosleep", 40: "sendfile", 41: "socket",
    42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg",
    56: "clone", 57: "fork", 58: "vfork", 59: "execve", 61: "wait4", 65: "semop", 69: "msgsnd",
    70: "msgrcv", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 76: "truncate",
    77: "ftruncate", 78: "getdents", 82: "rename", 83: "mkdir", 84: "rmdir", 87: "unlink",
    89: "readlink", 128: "rt_sigtimedwait", 130: "rt_sigsuspend", 162: "sync", 202: "futex",
    208: "io_getevents", 217: "getdents64", 219: "restart_syscall", 220: "semtimedop",
    230: "clock_nanosleep", 232: "epoll_wait", 242: "mq_timedsend", 243: "mq_timedreceive",
    247: "waitid", 257: "openat", 262: "newfstatat", 263: "unlinkat", 270: "pselect6", 271: "ppoll",
    277: "sync_file_range", 281: "epoll_pwait", 285: "fallocate", 288: "accept4", 295: "preadv",
    296: "pwritev", 299: "recvmmsg", 306: "syncfs", 307: "sendmmsg", 326: "copy_file_range",
    327: "preadv2", 328: "pwritev2", 332: "statx", 426: "io_uring_enter", 435: "clone3",
    437: "openat2", 441: "epoll_pwait2", 449: "futex_waitv",
  ]
}
