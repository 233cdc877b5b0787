import Foundation
import Glibc

@testable import HangReport

/// A program that a test watches: it prints "NAME TID" lines and "ready", then blocks.
final class Subject {
  let pid: Int32
  private(set) var lines: [String] = []
  let memory: ProcessMemory
  private let process: Process

  init(_ path: String) throws {
    process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.environment = ["SWIFT_BACKTRACE": "enable=no", "PATH": "/usr/bin:/bin"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    pid = process.processIdentifier
    memory = ProcessMemory(pid: pid)
    // A subject that fails ends, which ends the pipe; one that hangs too early ends by itself.
    var text = ""
    while !text.contains("ready\n") {
      let data = output.fileHandleForReading.availableData
      if data.isEmpty { throw Workshop.Failure(description: "\(path) did not get ready: \(text)") }
      text += String(decoding: data, as: UTF8.self)
    }
    lines = text.split(separator: "\n").map(String.init)
  }

  deinit {
    kill(pid, SIGKILL)
    process.waitUntilExit()
  }

  func tid(_ name: String) throws -> Int32 {
    for line in lines where line.hasPrefix(name + " ") {
      if let tid = Int32(line.dropFirst(name.count + 1)) { return tid }
    }
    throw Workshop.Failure(description: "no thread \(name) in \(lines)")
  }

  func images() throws -> ImageMap {
    let text = try contents("/proc/\(pid)/maps")
    return ImageMap(ImageMap.parse(maps: text), memory: memory)
  }

  /// Waits until a thread sleeps in the kernel, so that its stack stands still.
  func settle(_ tid: Int32) throws {
    for _ in 0..<500 {
      let text = try String(contentsOfFile: "/proc/\(pid)/task/\(tid)/stat", encoding: .utf8)
      if text.split(separator: ")").last?.hasPrefix(" S") ?? false { return }
      usleep(10_000)
    }
    throw Workshop.Failure(description: "thread \(tid) does not come to rest")
  }

  /// The registers of a thread, which is stopped meanwhile, and 64 KiB of its stack.
  func capture(
    _ tid: Int32, isResting: Bool = true
  ) throws -> (registers: Registers, stack: StackCopy) {
    if isResting { try settle(tid) }
    guard let symbol = dlsym(nil, "ptrace") else { throw Workshop.Failure(description: "ptrace") }
    typealias Ptrace =
      @convention(c) (Int, Int, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?)
      -> Int
    // Variadic in C, where integers are passed the same way.
    let ptrace = unsafeBitCast(symbol, to: Ptrace.self)
    guard ptrace(0x4206, Int(tid), nil, nil) == 0 else {
      throw Workshop.Failure(description: "PTRACE_SEIZE: errno \(errno)")
    }
    defer { _ = ptrace(17, Int(tid), nil, nil) }
    _ = ptrace(0x4207, Int(tid), nil, nil)
    var status: Int32 = 0
    waitpid(tid, &status, 0x4000_0000)
    var words = [UInt64](repeating: 0, count: 27)
    let got = words.withUnsafeMutableBytes { ptrace(12, Int(tid), nil, $0.baseAddress) }
    guard got == 0 else { throw Workshop.Failure(description: "PTRACE_GETREGS: errno \(errno)") }
    var registers = Registers(rip: words[16], rsp: words[19], rbp: words[4])
    (registers.r15, registers.r14, registers.r13, registers.r12) =
      (words[0], words[1], words[2], words[3])
    registers.rbx = words[5]
    (registers.r11, registers.r10, registers.r9, registers.r8) =
      (words[6], words[7], words[8], words[9])
    (registers.rax, registers.rcx, registers.rdx, registers.rsi, registers.rdi) =
      (words[10], words[11], words[12], words[13], words[14])
    return (registers, copy(registers.rsp, 1 << 16))
  }

  func copy(_ address: UInt64, _ count: Int) -> StackCopy {
    var bytes = [UInt8](repeating: 0, count: count)
    let got = bytes.withUnsafeMutableBytes { memory.read(address, into: $0) }
    return StackCopy(base: address, bytes: Array(bytes.prefix(got)))
  }

  func unwind(_ name: String) throws -> (Unwound, [Frame]) {
    let (registers, stack) = try capture(tid(name))
    let images = try images()
    let unwound = try Unwinder(images: images, memory: memory).unwind(registers, stack: [stack])
    return (unwound, Symbolizer(images: images).frames(for: unwound.frames))
  }
}

/// The text of a file of /proc, whose size is told as 0.
func contents(_ path: String) throws -> String {
  guard let file = FileHandle(forReadingAtPath: path) else {
    throw Workshop.Failure(description: path)
  }
  var data = Data()
  while case let part = try file.read(upToCount: 1 << 16) ?? Data(), !part.isEmpty { data += part }
  return String(decoding: data, as: UTF8.self)
}

/// Another process's memory, or one's own.
final class ProcessMemory: MemoryReader {
  private let descriptor: Int32

  init(pid: Int32) { descriptor = open("/proc/\(pid)/mem", O_RDONLY | O_CLOEXEC) }
  deinit { close(descriptor) }

  func read(_ address: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    // Stops by itself at a hole.
    max(0, pread(descriptor, buffer.baseAddress, buffer.count, off_t(bitPattern: address)))
  }
}

extension off_t {
  init(bitPattern: UInt64) { self = Int(Int64(bitPattern: bitPattern)) }
}
