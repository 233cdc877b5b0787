internal import Glibc

extension OutsideWorld {
  /// Handlers that could act. Not counted are those that the Swift runtime has for crashes, and
  /// glibc's own (32 and 33).
  func signals(_ exceptions: Exceptions) -> [String] {
    guard let text = proc.text("status"),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("SigCgt:") }),
      let word = line.split(separator: "\t").last, let caught = UInt64(word, radix: 16)
    else { return ["which signals it handles cannot be read"] }
    // A blocked thread raises none of these (ILL, TRAP, BUS, FPE, SEGV) by itself.
    var quiet: UInt64 = 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 31 | 1 << 32
    // QUIT and ABRT are the runtime's where there is a runtime, and it has its others too.
    if ranges.hasSwift && caught & 0x4d8 == 0x4d8 { quiet |= 1 << 2 | 1 << 5 }
    for signal in exceptions.signals where signal >= 1 && signal <= 64 {
      quiet |= 1 << (signal - 1)
    }
    let left = caught & ~quiet
    return (1...64).filter { left & 1 << ($0 - 1) != 0 }.map {
      "a handler for \(Self.name(ofSignal: Int32($0)))"
    }
  }

  private static func name(ofSignal signal: Int32) -> String {
    let names = [
      1: "HUP", 2: "INT", 3: "QUIT", 6: "ABRT", 10: "USR1", 12: "USR2", 13: "PIPE", 14: "ALRM",
      15: "TERM", 17: "CHLD", 18: "CONT", 21: "TTIN", 22: "TTOU", 23: "URG", 24: "XCPU",
      25: "XFSZ", 26: "VTALRM", 27: "PROF", 28: "WINCH", 29: "IO", 30: "PWR", 31: "SYS",
    ]
    return names[Int(signal)].map { "SIG" + $0 } ?? "signal \(signal)"
  }

  /// Timers of timer_create; those of setitimer are not visible, and need a handler.
  func posixTimers() -> [String] {
    // Not every kernel has the file; such timers then need a handler or a thread that waits.
    guard let text = proc.text("timers") else { return [] }
    let count = text.split(separator: "\n").count { $0.hasPrefix("ID:") }
    return count == 0 ? [] : ["\(count) timers of timer_create"]
  }

  /// Input and output that the kernel completes by itself.
  func machinery() -> [String] {
    var words: [String] = []
    if !ranges.isKnown { words.append("its mappings cannot be read") }
    if ranges.hasAsynchronousIO { words.append("asynchronous input or output is set up") }
    guard let names = proc.list(descriptors) else {
      return words + ["its descriptors cannot be listed"]
    }
    for name in names where Int32(name).flatMap(link) == "anon_inode:[io_uring]" {
      words.append("descriptor \(name), an io_uring")
    }
    return words
  }

  /// Children that live: they can send signals, and their end is one.
  func children(_ threads: [KernelThreadID], _ exceptions: Exceptions) -> [String] {
    var words: [String] = []
    for tid in threads {
      guard let text = proc.text("task/\(tid.rawValue)/children") else {
        if proc.state(tid) == nil { continue }
        return ["whether it has child processes cannot be read"]
      }
      for word in text.split(separator: " ") {
        guard let pid = Int32(word), !exceptions.children.contains(ProcessID(pid)) else { continue }
        let child = ProcReader(ProcessID(pid))
        let hasEnded =
          child.state(KernelThreadID(pid)) == UInt8(ascii: "Z")
          && (child.list("task") ?? []).count <= 1
        if !hasEnded { words.append("child process \(pid)") }
      }
    }
    return words
  }
}
