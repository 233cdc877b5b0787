internal import Glibc
internal import HangReport

/// A process's memory through a cache of pages, for walks along many small objects: a word costs
/// nanoseconds where its page was just read, not a system call.
///
/// What was read is kept until `forget()`. Confined to one thread. Its own pages are not from the
/// heap: a search of this very process would find copies of what it looks for.
final class PagedMemory {
  static let pageSize: UInt64 = 4096
  private static let slots = 1024

  private let memory: any MemoryReader
  private let pages: UnsafeMutableRawBufferPointer
  private var tags: [UInt64]
  private var valid: [Int]

  /// nil where there is no memory for the cache.
  init?(_ memory: any MemoryReader) {
    guard let pages = Self.map(Self.slots * Int(Self.pageSize)) else { return nil }
    self.memory = memory
    self.pages = pages
    tags = Array(repeating: .max, count: Self.slots)
    valid = Array(repeating: 0, count: Self.slots)
  }

  deinit { Self.unmap(pages) }

  /// Everything is read anew from now on.
  func forget() {
    for index in tags.indices { tags[index] = .max }
  }

  func word(_ address: UInt64) -> UInt64? { load(address, as: UInt64.self) }
  func word32(_ address: UInt64) -> UInt32? { load(address, as: UInt32.self) }
  func word16(_ address: UInt64) -> UInt16? { load(address, as: UInt16.self) }

  /// Text that ends in 0; nil where it does not within `limit` bytes.
  func string(_ address: UInt64, limit: Int = 256) -> String? {
    guard address != 0 else { return nil }
    var text: [UInt8] = []
    while text.count < limit {
      guard let byte = load(address &+ UInt64(text.count), as: UInt8.self) else { return nil }
      if byte == 0 { return String(decoding: text, as: UTF8.self) }
      text.append(byte)
    }
    return nil
  }

  func bytes(_ address: UInt64, _ count: Int) -> [UInt8]? {
    var result: [UInt8] = []
    for offset in 0..<count {
      guard let byte = load(address &+ UInt64(offset), as: UInt8.self) else { return nil }
      result.append(byte)
    }
    return result
  }

  private func load<T: FixedWidthInteger & BitwiseCopyable>(
    _ address: UInt64, as type: T.Type
  ) -> T? {
    let within = Int(address % Self.pageSize)
    let size = MemoryLayout<T>.size
    if within + size > Int(Self.pageSize) {
      var value: T = 0
      let got = withUnsafeMutableBytes(of: &value) { memory.read(address, into: $0) }
      return got == size ? value : nil
    }
    let page = address / Self.pageSize
    let slot = Int(page % UInt64(Self.slots))
    let start = slot * Int(Self.pageSize)
    if tags[slot] != page {
      // The slot's part of the cache, which no one else has.
      let room = UnsafeMutableRawBufferPointer(rebasing: pages[start..<start + 4096])
      valid[slot] = min(4096, memory.read(page * Self.pageSize, into: room))
      tags[slot] = page
    }
    guard within + size <= valid[slot] else { return nil }
    return pages.loadUnaligned(fromByteOffset: start + within, as: T.self)
  }

  /// Whether an address of this process lies in the cache itself.
  func holds(_ address: UInt64) -> Bool { Self.range(of: pages).contains(address) }
}

extension PagedMemory {
  /// Memory from the kernel rather than the heap, all zero.
  static func map(_ size: Int) -> UnsafeMutableRawBufferPointer? {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS
    let start = mmap(nil, size, PROT_READ | PROT_WRITE, flags, -1, 0)
    guard let start, start != MAP_FAILED else { return nil }
    return UnsafeMutableRawBufferPointer(start: start, count: size)
  }

  static func unmap(_ buffer: UnsafeMutableRawBufferPointer) {
    munmap(buffer.baseAddress, buffer.count)
  }

  static func range(of buffer: UnsafeMutableRawBufferPointer) -> Range<UInt64> {
    let start = UInt64(UInt(bitPattern: buffer.baseAddress))
    return start..<start + UInt64(buffer.count)
  }
}
