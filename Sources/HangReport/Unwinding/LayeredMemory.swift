/// A process's memory as an unwinder sees it: copied stacks first, then the files of mappings that
/// nobody writes to, then the process itself.
final class LayeredMemory {
  /// Where a value came from.
  enum Source { case overlay, file, target }

  private let images: ImageMap
  private let reader: any MemoryReader
  private var overlays: [StackCopy] = []
  /// Pages of mappings that nobody writes to, which stay right.
  private var constantPages: [UInt64: [UInt8]] = [:]
  /// Pages that may change: kept for one stack.
  private var changingPages: [UInt64: [UInt8]] = [:]
  /// The mapping used last; one table or one stack is read many times in a row.
  private var lastMapping: Mapping?
  private var lastFile: ImageFile?

  private static let pageSize: UInt64 = 4096
  private static let pageLimit = 4096

  init(images: ImageMap, reader: any MemoryReader) {
    self.images = images
    self.reader = reader
  }

  /// Lays copies over the memory and forgets what may have changed since the last stack.
  func begin(overlays: [StackCopy]) {
    self.overlays = overlays
    if !changingPages.isEmpty { changingPages.removeAll(keepingCapacity: true) }
  }

  /// The 8 bytes at an address.
  func word(at address: UInt64) -> (value: UInt64, source: Source)? {
    guard address <= UInt64.max - 8 else { return nil }
    for overlay in overlays where address >= overlay.base {
      let offset = address - overlay.base
      if offset <= UInt64(overlay.bytes.count), UInt64(overlay.bytes.count) - offset >= 8 {
        return (overlay.bytes.load(Int(offset), as: UInt64.self), .overlay)
      }
    }
    if let mapping = mapping(at: address) {
      if !mapping.isWritable, address + 8 <= mapping.end, let lastFile,
        let value = lastFile.word(at: mapping.offset &+ (address - mapping.start))
      {
        return (value, .file)
      }
    }
    let bytes = targetBytes(at: address, 8)
    return bytes.count == 8 ? (bytes.load(0, as: UInt64.self), .target) : nil
  }

  /// Up to `count` bytes from an address on, copied stacks left out.
  func bytes(at address: UInt64, _ count: Int) -> [UInt8] {
    if let mapping = mapping(at: address), !mapping.isWritable, let lastFile,
      UInt64(count) <= mapping.end - address
    {
      let bytes = lastFile.read(mapping.offset &+ (address - mapping.start), count)
      if bytes.count == count { return bytes }
    }
    return targetBytes(at: address, count)
  }

  private func mapping(at address: UInt64) -> Mapping? {
    if let lastMapping, lastMapping.start <= address, address < lastMapping.end {
      return lastMapping
    }
    guard let mapping = images.mapping(at: address) else { return nil }
    lastMapping = mapping
    lastFile = mapping.isWritable ? nil : images.image(at: address).flatMap { images.open($0).file }
    return mapping
  }

  private func targetBytes(at address: UInt64, _ count: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count)
    var at = address
    while result.count < count {
      let within = Int(at % Self.pageSize)
      let page = page(at - UInt64(within))
      guard within < page.count else { break }
      let part = page[within..<min(page.count, within + count - result.count)]
      result += part
      let next = at.addingReportingOverflow(UInt64(part.count))
      if next.overflow { break }
      at = next.partialValue
    }
    return result
  }

  private func page(_ start: UInt64) -> [UInt8] {
    if let page = constantPages[start] ?? changingPages[start] { return page }
    // The reader fills a prefix and returns its length, clamped in case it lies.
    let page = [UInt8](unsafeUninitializedCapacity: Int(Self.pageSize)) { buffer, filled in
      let got = reader.read(start, into: UnsafeMutableRawBufferPointer(buffer))
      filled = min(buffer.count, max(0, got))
    }
    if let mapping = images.mapping(at: start), !mapping.isWritable, !page.isEmpty {
      if constantPages.count >= Self.pageLimit { constantPages.removeAll() }
      constantPages[start] = page
    } else {
      if changingPages.count >= Self.pageLimit { changingPages.removeAll() }
      changingPages[start] = page
    }
    return page
  }
}
