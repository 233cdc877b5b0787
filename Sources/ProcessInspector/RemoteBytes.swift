/// A piece of a process's memory as it was at one moment. What lies outside of it reads as 0.
struct RemoteBytes {
  let address: UInt64
  private var bytes: [UInt8]
  /// Objects lie at multiples of 16, their copies do not: a search through this very process for
  /// tasks must not find these, nor what is left of them.
  private let padding: Int

  /// Nil where the process has not all of it.
  init?(_ memory: ProcessMemory, _ address: UInt64, _ count: Int) {
    guard address >= 4096, address < 1 << 47, count > 0 else { return nil }
    // The reader fills a prefix and returns its length, clamped in case it lies.
    let padding = Int((address &+ 8) % 16)
    bytes = [UInt8](unsafeUninitializedCapacity: padding + count) { buffer, filled in
      buffer[..<padding].initialize(repeating: 0)
      let room = UnsafeMutableRawBufferPointer(
        rebasing: UnsafeMutableRawBufferPointer(buffer)[padding..<padding + count])
      filled = padding + min(count, max(0, memory.read(address, into: room)))
    }
    guard bytes.count == padding + count else { return nil }
    self.address = address
    self.padding = padding
  }

  /// The same with another word in one place.
  func replacing(_ offset: Int, with word: UInt64) -> RemoteBytes {
    guard offset >= 0, bytes.count - padding - offset >= 8 else { return self }
    var result = self
    result.bytes.withUnsafeMutableBytes {
      $0.storeBytes(of: word, toByteOffset: padding + offset, as: UInt64.self)
    }
    return result
  }

  func word(_ offset: Int) -> UInt64 { load(offset, as: UInt64.self) }
  func word32(_ offset: Int) -> UInt32 { load(offset, as: UInt32.self) }
  func word16(_ offset: Int) -> UInt16 { load(offset, as: UInt16.self) }
  func byte(_ offset: Int) -> UInt8 { load(offset, as: UInt8.self) }
  var words: Int { count / 8 }
  var count: Int { bytes.count - padding }

  private func load<T: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as type: T.Type) -> T {
    guard offset >= 0, bytes.count - padding - offset >= MemoryLayout<T>.size else { return 0 }
    return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: padding + offset, as: T.self) }
  }
}

extension ProcessMemory {
  /// As much as can be read there, in halves.
  func copy(_ address: UInt64, upTo count: Int) -> RemoteBytes? {
    var size = count
    while size >= 512 {
      if let found = RemoteBytes(self, address, size) { return found }
      size /= 2
    }
    return nil
  }

  /// The slot that a stub of the linker's jumps through; nil for any other code.
  func slot(ofStub address: UInt64) -> UInt64? {
    guard let stub = RemoteBytes(self, address, 16) else { return nil }
    // endbr64, then an optional prefix, then jmp *displacement(%rip).
    var at = stub.word32(0) == 0xfa1e_0ff3 ? 4 : 0
    if stub.byte(at) == 0xf2 { at += 1 }
    guard stub.word16(at) == 0x25ff else { return nil }
    let distance = UInt64(bitPattern: Int64(Int32(bitPattern: stub.word32(at + 2))))
    return address &+ UInt64(at + 6) &+ distance
  }

  func word(_ address: UInt64) -> UInt64? {
    guard address >= 4096, address < 1 << 47 else { return nil }
    var value: UInt64 = 0
    let got = withUnsafeMutableBytes(of: &value) { read(address, into: $0) }
    return got == 8 ? value : nil
  }

  /// A C string of at most `limit` bytes; nil where it does not end.
  func text(_ address: UInt64, limit: Int = 256) -> String? {
    guard address >= 4096, address < 1 << 47 else { return nil }
    let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, filled in
      // Less comes where the mapping ends.
      filled = min(limit, max(0, read(address, into: UnsafeMutableRawBufferPointer(buffer))))
    }
    guard let end = bytes.firstIndex(of: 0) else { return nil }
    return String(validating: bytes[..<end], as: UTF8.self)
  }
}
