internal import CHangcheck

/// Where a drop-in lock was made, from the memory behind its mutex (`hck_creation`).
struct CreationSite: CustomStringConvertible {
  var file: String
  var line: UInt32
  var description: String { "\(file):\(line)" }

  private static let longestFile: UInt32 = 512

  /// nil for any other mutex: what follows one in memory does not begin with the mark.
  init?(ofMutex key: ResourceKey, _ memory: ProcessMemory) {
    guard key.kind == HCK_MUTEX.rawValue else { return nil }
    var created = hck_creation()
    let size = MemoryLayout<hck_creation>.size
    let got = withUnsafeMutableBytes(of: &created) {
      memory.read(key.address &+ UInt64(hck_mutex_size()), into: $0)
    }
    guard got == size, created.mark == HCK_CREATION_MARK, let file = created.file,
      created.file_bytes > 0, created.file_bytes <= Self.longestFile
    else { return nil }
    // An address of the watched process: a number here, never followed.
    let address = UInt64(UInt(bitPattern: file))
    var text = [UInt8](repeating: 0, count: Int(created.file_bytes))
    guard text.withUnsafeMutableBytes({ memory.read(address, into: $0) }) == text.count else {
      return nil
    }
    self.file = String(decoding: text, as: UTF8.self)
    line = created.line
  }
}
