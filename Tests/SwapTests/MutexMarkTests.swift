import Foundation
import Synchronization
import Testing

@testable import InstrumentedLocks

private final class Marked<Value: Sendable>: Sendable {
  let mutex: InstrumentedMutex<Value>
  init(_ value: Value) { mutex = InstrumentedMutex(value, line: 77) }
}

/// What a reader of the process's memory finds (`hck_futex_mark`).
@Suite struct MutexMarkTests {
  private func word(_ address: UInt, _ offset: Int) -> UInt64 {
    UnsafeRawPointer(bitPattern: address)?.load(fromByteOffset: offset, as: UInt64.self) ?? 0
  }

  private func check<Value: Sendable>(_ marked: Marked<Value>) throws {
    let address = UInt(bitPattern: marked.mutex._word)
    #expect(word(address, -24) == 0x656b_616d_636b_6568)
    let file = try #require(UnsafePointer<UInt8>(bitPattern: UInt(word(address, -16))))
    let bytes = UnsafeBufferPointer(
      start: file, count: Int(UInt32(truncatingIfNeeded: word(address, -8))))
    #expect(String(decoding: bytes, as: UTF8.self) == "SwapTests/MutexMarkTests.swift")
    #expect(word(address, -8) >> 32 == 77)
    #expect(word(address, -32) == 0)
    let owner = marked.mutex.withLock { _ in
      UnsafeRawPointer(bitPattern: address)?.load(as: UInt32.self)
    }
    #expect(owner == UInt32(truncatingIfNeeded: tid()))
    #expect(UnsafeRawPointer(bitPattern: address)?.load(as: UInt32.self) == 0)
    // An address in the code of this test.
    #expect(word(address, -32) != 0)
  }

  @Test func liesBeforeTheWord() throws {
    try check(Marked(5))
    try check(Marked("text"))
    try check(Marked(true))
    // However much room the value's alignment takes.
    try check(Marked(SIMD16<Double>(repeating: 0)))
  }
}

/// The kernel's id of the calling thread; syscall itself is variadic.
private func tid() -> Int {
  let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
  return link.flatMap { Int($0.split(separator: "/").last ?? "") } ?? 0
}
