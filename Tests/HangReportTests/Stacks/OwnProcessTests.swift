import Glibc
import Testing

@testable import HangReport

@Suite struct OwnProcessTests {
  /// The registers and stack of the caller; valid while the caller's frame lives.
  @inline(never) private func unwindHere(_ unwinder: Unwinder) -> Unwound {
    guard let symbol = dlsym(nil, "getcontext") else {
      return Unwound(frames: [], isComplete: false)
    }
    // Swift does not import it; it fills a ucontext_t, whose registers begin at byte 40.
    let getcontext = unsafeBitCast(
      symbol, to: (@convention(c) (UnsafeMutableRawPointer) -> Int32).self)
    let words = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 16)
    defer { words.deallocate() }
    // Called from this very frame, which lives on while it is unwound.
    _ = getcontext(words.baseAddress!)
    let g = (5..<28).map { words.load(fromByteOffset: $0 * 8, as: UInt64.self) }
    var registers = Registers(rip: g[16], rsp: g[15], rbp: g[10])
    registers.rbx = g[11]
    (registers.r12, registers.r13, registers.r14, registers.r15) = (g[4], g[5], g[6], g[7])
    return unwinder.unwind(registers, stack: [])
  }

  @Test("a program unwinds and names its own stack", .timeLimit(.minutes(1)))
  func ownThread() throws {
    let memory = ProcessMemory(pid: getpid())
    let images = ImageMap(
      ImageMap.parse(maps: try contents("/proc/self/maps")), memory: memory)
    let unwound = unwindHere(try Unwinder(images: images, memory: memory))
    #expect(unwound.isComplete, Comment(rawValue: unwound.note ?? ""))
    let frames = Symbolizer(images: images).frames(for: unwound.frames)
    #expect(frames.first?.symbol == "OwnProcessTests.unwindHere(_:)")
    #expect(frames.contains { $0.symbol == "OwnProcessTests.ownThread()" && $0.line != nil })
    #expect(images.notes.isEmpty)
  }

  @Test("the vdso is unwound from the target's bytes and named")
  func kernelCode() throws {
    let memory = ProcessMemory(pid: getpid())
    let images = ImageMap(
      ImageMap.parse(maps: try contents("/proc/self/maps")), memory: memory)
    let vdso = try #require(images.images.first { $0.path == "[vdso]" })
    let bias = try #require(images.loadBias(of: vdso))
    #expect(bias == vdso.start)
    let symbolizer = Symbolizer(images: images)
    let unwinder = try Unwinder(images: images, memory: memory)
    var named = 0
    for offset in stride(from: UInt64(0x500), to: 0x1000, by: 16) {
      let pc = vdso.start + offset
      let frame = symbolizer.frames(for: RawFrame(pc: pc, cfa: 0, isExact: true))[0]
      #expect(frame.runtime && frame.image == "[vdso]")
      if frame.symbol != nil, unwinder.procedureStart(of: pc) != nil { named += 1 }
    }
    #expect(named > 0)
  }
}
