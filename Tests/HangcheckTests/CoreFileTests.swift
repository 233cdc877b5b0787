import Foundation
import HangReport
import Testing

@testable import ProcessInspector

/// What is read of a core file, and what is said of one that is none.
@Suite("Core files") struct CoreFileTests {
  private static func core(_ builder: CoreBuilder) throws -> (CoreFile, ScratchFile) {
    let file = try ScratchFile(builder.bytes())
    return (try CoreFile(path: file.path, executable: nil), file)
  }

  @Test("threads, process and memory are those of the core")
  func contents() throws {
    var builder = CoreBuilder()
    builder.threads = [
      .init(tid: 700, rip: 0x40_1000, rsp: 0x7000, call: 202, result: -512, signal: 6),
      .init(tid: 703, rip: 0x40_1004, rsp: 0x8000, call: 202, result: 0),
      .init(tid: 704, rip: 0x40_1008, rsp: 0x9000),
    ]
    builder.segments = [
      .init(start: 0x10_000, bytes: Array("hello, world\0".utf8), size: 4096),
      .init(start: 0x11_000, bytes: [1, 2, 3, 4], size: 4),
    ]
    let (core, file) = try Self.core(builder)
    defer { withExtendedLifetime(file) {} }
    #expect(core.pid == ProcessID(700))
    #expect(core.arguments == ["./sample", "--fast"])
    let ending = try #require(core.ending)
    #expect(ending.signal == 6 && ending.tid == 700)
    let files = ProcessFiles(core)
    #expect(files.threads().map(\.rawValue) == [700, 703, 704])
    #expect(files.state(KernelThreadID(700)) == .call(number: 202, argument: 0))
    // Its call was over, and the third was in none.
    #expect(files.state(KernelThreadID(703)) == .running)
    #expect(files.state(KernelThreadID(704)) == .running)
    let memory = ProcessMemory(core)
    #expect(memory.text(0x10_000) == "hello, world")
    #expect(memory.word32(0x11_000) == 0x0403_0201)
    // What the file leaves out reads as nothing, and not as zero.
    #expect(memory.word32(0x10_100) == nil)
    #expect(memory.word32(0x20_000) == nil)
    #expect(files.mappings().map(\.start) == [0x10_000, 0x11_000])
  }

  @Test("a file that was mapped gives what the core leaves out, if it is the same build")
  func mapped() throws {
    let program = try #require(
      try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    let whole = try #require(FileHandle(forReadingAtPath: program)?.readData(ofLength: 1 << 14))
    var builder = CoreBuilder()
    let start: UInt64 = 0x5555_0000_0000
    builder.files = [.init(range: start..<(start + 1 << 14), path: program)]
    builder.auxiliary = [(3, start + 64)]
    builder.segments = [.init(start: start, bytes: [], size: 1 << 14, flags: 5)]
    func word(of builder: CoreBuilder) throws -> (UInt64?, [String]) {
      let (core, file) = try Self.core(builder)
      defer { withExtendedLifetime(file) {} }
      #expect(core.executable == program)
      return (ProcessMemory(core).word(start + 8192), core.limits)
    }
    let expected = whole.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 8192, as: UInt64.self) }
    // Without headers nobody can tell.
    var (found, limits) = try word(of: builder)
    #expect(found == expected)
    #expect(limits.contains { $0.contains("whether") })
    builder.segments[0].bytes = Array(whole.prefix(4096))
    (found, limits) = try word(of: builder)
    #expect(found == expected)
    #expect(limits.isEmpty)
    // Another build has other headers.
    builder.segments[0].bytes[64 + 40] ^= 1
    (found, limits) = try word(of: builder)
    #expect(found == nil)
    #expect(limits.contains { $0.contains("another build") })
    builder.files[0].path = "/nowhere/program"
    let (core, file) = try Self.core(builder)
    #expect(core.limits.contains { $0.contains("/nowhere/program") && $0.contains("not here") })
    withExtendedLifetime(file) {}
  }

  @Test("what is no core is refused in one sentence", arguments: Bad.all)
  func refused(_ bad: Bad) throws {
    let file = try ScratchFile(bad.bytes)
    do {
      _ = try CoreFile(path: file.path, executable: bad.executable)
      Issue.record("it was taken")
    } catch {
      #expect(error.message.contains(bad.words), "\(error.message)")
      #expect(!error.message.contains("\n"))
      #expect(error.message.hasPrefix(bad.executable ?? file.path))
    }
  }

  struct Bad: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var bytes: [UInt8]
    var words: String
    var executable: String?

    static let all: [Bad] = {
      func changed(_ change: (inout CoreBuilder) -> Void) -> [UInt8] {
        var builder = CoreBuilder()
        change(&builder)
        return builder.bytes()
      }
      let good = CoreBuilder().bytes()
      var noTable = good
      noTable.replaceSubrange(32..<40, with: [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f])
      return [
        Bad(testDescription: "empty", bytes: [], words: "it is empty"),
        Bad(testDescription: "text", bytes: Array("not a core\n".utf8), words: "no core file"),
        Bad(testDescription: "cut in the header", bytes: Array(good.prefix(40)), words: "header"),
        Bad(
          testDescription: "cut in the table", bytes: Array(good.prefix(100)), words: "cut short"),
        Bad(testDescription: "no table", bytes: noTable, words: "cut short"),
        Bad(testDescription: "a program", bytes: changed { $0.type = 3 }, words: "is a program"),
        Bad(
          testDescription: "an object file", bytes: changed { $0.type = 1 }, words: "another type"),
        Bad(testDescription: "of ARM", bytes: changed { $0.machine = 183 }, words: "x86-64"),
        Bad(testDescription: "32 bits", bytes: changed { $0.elfClass = 1 }, words: "64-bit"),
        Bad(
          testDescription: "no threads", bytes: changed { $0.threads = [] },
          words: "without threads"),
        Bad(
          testDescription: "a program that is none", bytes: good, words: "no program",
          executable: "/etc/passwd"),
        Bad(
          testDescription: "a program that is not there", bytes: good, words: "cannot be read",
          executable: "/nowhere/at/all"),
        Bad(
          testDescription: "damaged gzip", bytes: [0x1f, 0x8b, 8, 0, 1, 2, 3],
          words: "gzip cannot unpack"),
      ]
    }()
  }

  @Test("a core that was cut short is an error, or says so")
  func cutShort() throws {
    var builder = CoreBuilder()
    builder.segments = [
      .init(start: 0x10_000, bytes: [UInt8](repeating: 7, count: 4096), size: 4096)
    ]
    let whole = builder.bytes()
    for count in stride(from: 0, to: whole.count - 1, by: 61) {
      let file = try ScratchFile(Array(whole.prefix(count)))
      guard let core = try? CoreFile(path: file.path, executable: nil) else { continue }
      #expect(core.limits.contains { $0.contains("cut short") }, "\(count) of \(whole.count) bytes")
    }
  }

  @Test("no damage makes it trap", arguments: 0..<8)
  func damaged(_ seed: Int) throws {
    var random = Steps(state: UInt64(seed) &* 0x9e37_79b9_7f4a_7c15 | 1)
    var builder = CoreBuilder()
    builder.threads = (700..<708).map {
      CoreBuilder.Thread(tid: $0, rip: 0x10_010, rsp: 0x10_100, call: 202, result: -512)
    }
    builder.files = [.init(range: 0x10_000..<0x12_000, path: "/nowhere/program")]
    builder.segments = [
      .init(start: 0x10_000, bytes: [UInt8](repeating: 7, count: 4096), size: 8192, flags: 5),
      .init(start: 0x20_000, bytes: [UInt8](repeating: 9, count: 4096), size: 4096),
    ]
    let whole = builder.bytes()
    let words: [UInt64] = [0, 1, .max, 1 << 63, 1 << 47, 0xffff_ffff, 0x7fff_ffff, 0x10_008]
    for _ in 0..<300 {
      var bytes = whole
      for _ in 0..<(1 + random.next() % 8) {
        let at = Int(random.next() % UInt64(min(bytes.count, 6000) - 8))
        let word = words[Int(random.next() % UInt64(words.count))]
        withUnsafeBytes(of: word) { bytes.replaceSubrange(at..<(at + 8), with: Array($0)) }
      }
      let file = try ScratchFile(bytes)
      guard let core = try? CoreFile(path: file.path, executable: nil) else { continue }
      for mapping in ProcessFiles(core).mappings() { _ = ProcessMemory(core).word(mapping.start) }
      #expect(core.mappings.allSatisfy { $0.start < $0.end })
      #expect(core.stacks().count == core.threads.count)
    }
  }

  private struct Steps {
    var state: UInt64
    mutating func next() -> UInt64 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return state
    }
  }
}
