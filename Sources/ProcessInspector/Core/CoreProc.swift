internal import HangReport

/// The files in /proc of a process, as far as its core tells what they would hold.
struct CoreProc {
  private(set) var files: [String: [UInt8]] = [:]

  init(
    _ threads: [CoreNotes.Thread], _ mappings: [Mapping], _ arguments: [String]
  ) {
    files["maps"] = Array(Self.maps(mappings).utf8)
    files["cmdline"] = Array(arguments.map { $0 + "\0" }.joined().utf8)
    for thread in threads {
      let folder = "task/\(thread.tid.rawValue)/"
      let call = Self.call(of: thread)
      files[folder + "syscall"] = Array((call ?? "running").utf8)
      files[folder + "stat"] = Array(
        "\(thread.tid.rawValue) () \(call == nil ? "R" : "S") 0\n".utf8)
      files[folder + "status"] = Array("NSpid:\t\(thread.tid.rawValue)\n".utf8)
      // It does not run any more: two looks at it agree.
      files[folder + "schedstat"] = Array("0 0 0\n".utf8)
    }
  }

  private static func maps(_ mappings: [Mapping]) -> String {
    let programs = Set(mappings.filter(\.isExecutable).map(\.path))
    func hex(_ value: UInt64) -> String { String(value, radix: 16) }
    var text = ""
    for mapping in mappings {
      // Which are shared is not in a core: other files than programs mostly are.
      let isShared =
        mapping.path.hasPrefix("/") && mapping.isWritable && !programs.contains(mapping.path)
      text += hex(mapping.start) + "-" + hex(mapping.end)
      text += " r" + (mapping.isWritable ? "w" : "-") + (mapping.isExecutable ? "x" : "-")
      text += (isShared ? "s " : "p ") + hex(mapping.offset) + " 00:00 0 "
      text += mapping.path.replacing("\n", with: "\\012") + "\n"
    }
    return text
  }

  /// The system call that a thread was in: its number was kept, and what came back was to restart it.
  static func systemCall(of thread: CoreNotes.Thread) -> Int? {
    let number = Int64(bitPattern: thread.registers[15])
    let result = Int64(bitPattern: thread.registers[10])
    guard number >= 0, number < 1024 else { return nil }
    // ERESTARTSYS and its like; EINTR of those that are never restarted.
    guard (-516 ... -512).contains(result) || result == -4 else { return nil }
    return Int(number)
  }

  /// "202 0x7f… … 0x7ffc… 0x7f…", as /proc has it.
  private static func call(of thread: CoreNotes.Thread) -> String? {
    guard let number = systemCall(of: thread) else { return nil }
    let registers = thread.registers
    // rdi, rsi, rdx, r10, r8, r9, then rsp and rip.
    let words = [14, 13, 12, 7, 9, 8, 19, 16].map { "0x" + String(registers[$0], radix: 16) }
    return "\(number) " + words.joined(separator: " ") + "\n"
  }
}
