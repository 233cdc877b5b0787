internal import Glibc

/// A binary on disk, read in blocks as they are asked for.
///
/// Not mapped: a file that shrinks under a mapping would end the reader with SIGBUS.
final class ImageFile {
  /// The path that was opened, which may lie under a root or in map_files.
  let path: String
  let size: UInt64
  let inode: UInt64
  private let descriptor: Int32
  private var blocks: [UInt64: [UInt8]] = [:]
  private static let blockSize: UInt64 = 1 << 14
  // 16 MB: the unwind tables of a large program, and a bound for hostile ones.
  private static let blockLimit = 1024

  init?(path: String) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0
    else {
      close(descriptor)
      return nil
    }
    self.path = path
    self.descriptor = descriptor
    size = UInt64(status.st_size)
    inode = UInt64(status.st_ino)
  }

  deinit { close(descriptor) }

  /// A second descriptor for the same open file, for a library that closes its own.
  func duplicateDescriptor() -> Int32? {
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    return copy >= 0 ? copy : nil
  }

  /// The bytes from `offset` on; fewer than `count` where the file ends.
  func read(_ offset: UInt64, _ count: Int) -> [UInt8] {
    var result: [UInt8] = []
    var at = offset
    while result.count < count {
      let within = Int(at % Self.blockSize)
      let block = block(at / Self.blockSize)
      guard within < block.count else { break }
      let part = block[within..<min(block.count, within + count - result.count)]
      result += part
      at &+= UInt64(part.count)
    }
    return result
  }

  /// The 8 bytes at `offset` as one value.
  func word(at offset: UInt64) -> UInt64? {
    let within = Int(offset % Self.blockSize)
    if within <= Int(Self.blockSize) - 8 {
      let block = block(offset / Self.blockSize)
      return within + 8 <= block.count ? block.load(within, as: UInt64.self) : nil
    }
    let bytes = read(offset, 8)
    return bytes.count == 8 ? bytes.load(0, as: UInt64.self) : nil
  }

  private func block(_ number: UInt64) -> [UInt8] {
    if let block = blocks[number] { return block }
    guard number < size / Self.blockSize + 1 else { return [] }
    // The call writes no further than the capacity given, and says how far it wrote.
    let block = [UInt8](unsafeUninitializedCapacity: Int(Self.blockSize)) { buffer, filled in
      let got = pread(
        descriptor, buffer.baseAddress, buffer.count, off_t(number * Self.blockSize))
      filled = max(0, got)
    }
    if blocks.count >= Self.blockLimit { blocks.removeAll() }
    blocks[number] = block
    return block
  }
}
