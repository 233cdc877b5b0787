internal import CHangcheck
internal import Glibc
public import HangReport

/// A process, by the id that the kernel gives it. Ids are used again: hold a pidfd where that
/// matters.
public struct ProcessID: Hashable, Sendable, Comparable {
  public let rawValue: Int32
  public init(_ rawValue: Int32) { self.rawValue = rawValue }
  public static func < (a: ProcessID, b: ProcessID) -> Bool { a.rawValue < b.rawValue }
}

/// A thread, by the id that the kernel gives it.
public struct KernelThreadID: Hashable, Sendable, Comparable {
  public let rawValue: Int32
  public init(_ rawValue: Int32) { self.rawValue = rawValue }
  /// No kernel gives a larger one; such a word in memory is something else.
  static let most: Int32 = 1 << 22
  public static func < (a: KernelThreadID, b: KernelThreadID) -> Bool { a.rawValue < b.rawValue }
}

/// What a thread does in the kernel, from /proc/PID/task/TID/syscall.
public enum KernelState: Equatable, Sendable {
  case running
  /// Blocked in a system call: its number and first argument.
  case call(number: Int, argument: UInt64)
  /// Blocked, but in no system call (a page fault, a stop).
  case blocked
  /// May not be read, or the thread is gone.
  case unknown
}

/// /proc of one process. Reads afresh each time; everything may be gone at any moment, and is then
/// nil or empty. Or what a core file tells of it.
public struct ProcessFiles: Sendable {
  public let pid: ProcessID
  private let folder: String
  /// Where the process is no more.
  let core: CoreFile?

  public init(_ pid: ProcessID) {
    self.pid = pid
    folder = "/proc/\(pid.rawValue)"
    core = nil
  }

  package init(_ core: CoreFile) {
    pid = core.pid
    folder = ""
    self.core = core
  }

  /// What stands before the paths of its files where it sees other files than this process; else "".
  var root: String {
    if core != nil { return "" }
    var own = stat()
    var other = stat()
    guard stat("/", &own) == 0, stat(folder + "/root/.", &other) == 0 else { return "" }
    return own.st_dev == other.st_dev && own.st_ino == other.st_ino ? "" : folder + "/root"
  }

  public func threads() -> [KernelThreadID] {
    if let core { return core.threads.map(\.tid).sorted() }
    guard let directory = opendir(folder + "/task") else { return [] }
    defer { closedir(directory) }
    var result: [KernelThreadID] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { raw in
        String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
      }
      if let tid = Int32(name) { result.append(KernelThreadID(tid)) }
    }
    return result.sorted()
  }

  public func isAlive(_ tid: KernelThreadID) -> Bool {
    guard let line = text("task/\(tid.rawValue)/stat"), let end = line.lastIndex(of: ")") else {
      return false
    }
    let state = line[line.index(after: end)...].drop { $0 == " " }.first
    return state != "Z" && state != "X"
  }

  /// The thread's id as the threads of its own namespace know it.
  func innerID(_ tid: KernelThreadID) -> KernelThreadID? {
    guard let status = text("task/\(tid.rawValue)/status"),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("NSpid:") }),
      let last = line.split(whereSeparator: { $0 == "\t" || $0 == " " }).last
    else { return nil }
    return Int32(last).map { KernelThreadID($0) }
  }

  /// Whether any process has such a thread.
  static func exists(_ tid: KernelThreadID) -> Bool { access("/proc/\(tid.rawValue)", F_OK) == 0 }

  public func name(_ tid: KernelThreadID) -> String {
    guard var name = text("task/\(tid.rawValue)/comm") else { return "" }
    if name.hasSuffix("\n") { name.removeLast() }
    return name
  }

  public func state(_ tid: KernelThreadID) -> KernelState {
    guard let line = text("task/\(tid.rawValue)/syscall") else { return .unknown }
    if line.hasPrefix("running") { return .running }
    let words = line.split(whereSeparator: { $0 == " " || $0 == "\n" })
    guard let first = words.first, let number = Int(first) else { return .unknown }
    guard number >= 0, words.count > 1, words[1].hasPrefix("0x"),
      let argument = UInt64(words[1].dropFirst(2), radix: 16)
    else { return .blocked }
    return .call(number: number, argument: argument)
  }

  /// How often the thread was given a processor: unchanged between two looks, it did not run
  /// between them.
  public func timesRun(_ tid: KernelThreadID) -> UInt64? {
    guard let bytes = readFile("\(folder)/task/\(tid.rawValue)/schedstat") else { return nil }
    // The last of three numbers; every look reads it of every thread.
    let words = bytes.split(whereSeparator: { $0 == 32 || $0 == 10 })
    guard words.count == 3 else { return nil }
    return UInt64(String(decoding: words[2], as: UTF8.self))
  }

  public func mappings() -> [Mapping] {
    if let core { return core.mappings }
    // Empty in the process's own folder once its first thread has ended.
    for name in ["maps"] + threads().reversed().prefix(4).map({ "task/\($0.rawValue)/maps" }) {
      if let maps = text(name), !maps.isEmpty { return ImageMap.parse(maps: maps) }
    }
    return []
  }

  public func executable() -> String {
    if let core { return core.executable }
    var buffer = [CChar](repeating: 0, count: 4097)
    var length = readlink(folder + "/exe", &buffer, 4096)
    // Gone from there once the first thread has ended.
    for tid in length > 0 ? [] : threads().reversed().prefix(4) where length <= 0 {
      length = readlink(folder + "/task/\(tid.rawValue)/exe", &buffer, 4096)
    }
    guard length > 0 else { return "" }
    return String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  public func arguments() -> [String] {
    guard let bytes = bytes("cmdline") else { return [] }
    return bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
      .map { String(decoding: $0, as: UTF8.self) }
  }

  func bytes(_ name: String) -> [UInt8]? {
    if let core { return core.proc(name) }
    return readFile(folder + "/" + name)
  }

  func text(_ name: String) -> String? { bytes(name).map { String(decoding: $0, as: UTF8.self) } }

  /// The binaries of the process. The kernel's links to their files are those of a live one alone.
  func images(_ memory: ProcessMemory) -> ImageMap {
    ImageMap(mappings(), root: root, pid: core == nil ? pid.rawValue : nil, memory: memory)
  }
}

/// The whole of a file that has no size (of /proc), or nil.
func readFile(_ path: String) -> [UInt8]? {
  let fd = open(path, O_RDONLY | O_CLOEXEC)
  guard fd >= 0 else { return nil }
  defer { close(fd) }
  return withUnsafeTemporaryAllocation(byteCount: 16384, alignment: 8) { buffer in
    var result: [UInt8] = []
    while true {
      let got = read(fd, buffer.baseAddress, buffer.count)
      if got < 0 && errno == EINTR { continue }
      if got < 0 { return nil }
      if got == 0 { return result }
      result += buffer[0..<got]
    }
  }
}

/// The memory of a live process, or of this one: the kernel copies, so that an address that is gone
/// is no fault. Or what a core file holds of it.
public struct ProcessMemory: MemoryReader {
  public let pid: ProcessID
  private let core: CoreFile?

  public init(_ pid: ProcessID) {
    self.pid = pid
    core = nil
  }

  package init(_ core: CoreFile) {
    pid = core.pid
    self.core = core
  }

  public func read(_ address: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    if let core { return core.read(address, into: buffer) }
    guard let base = buffer.baseAddress else { return 0 }
    let got = hck_read_memory(pid.rawValue, address, base, buffer.count)
    if got < 0 && errno == ESRCH { return readThroughAnotherThread(address, base, buffer.count) }
    if got < 0 && (errno == EPERM || errno == ENOSYS) {
      return readThroughFile(address, base, buffer.count)
    }
    return max(0, Int(got))
  }

  /// A filter may forbid the call, as those of containers do, and leave the file.
  private func readThroughFile(
    _ address: UInt64, _ base: UnsafeMutableRawPointer, _ size: Int
  ) -> Int {
    guard let offset = off_t(exactly: address) else { return 0 }
    let descriptor = open("/proc/\(pid.rawValue)/mem", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return 0 }
    defer { close(descriptor) }
    return max(0, pread(descriptor, base, size, offset))
  }

  /// The first thread has ended, and with it the kernel's way from the process's id to its memory.
  private func readThroughAnotherThread(
    _ address: UInt64, _ base: UnsafeMutableRawPointer, _ size: Int
  ) -> Int {
    for tid in ProcessFiles(pid).threads().reversed().prefix(4) {
      let got = hck_read_memory(tid.rawValue, address, base, size)
      if got >= 0 { return Int(got) }
    }
    return 0
  }

  func word32(_ address: UInt64) -> UInt32? {
    var value: UInt32 = 0
    let got = withUnsafeMutableBytes(of: &value) { read(address, into: $0) }
    return got == 4 ? value : nil
  }
}
