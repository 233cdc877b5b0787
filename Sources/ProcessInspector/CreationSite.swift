internal import CHangcheck

/// Where a drop-in was made, from the memory beside it (`hck_creation`).
struct CreationSite: CustomStringConvertible {
  var file: String
  var line: UInt32
  var description: String { "\(file):\(line)" }

  private static let longestFile: UInt32 = 512

  /// nil for anything else: what lies beside it in memory does not begin with the mark.
  init?(of key: ResourceKey, _ memory: ProcessMemory) {
    guard let place = Self.place(key, memory) else { return nil }
    var created = hck_creation()
    let size = MemoryLayout<hck_creation>.size
    let got = withUnsafeMutableBytes(of: &created) {
      memory.read(place, into: $0)
    }
    guard got == size, created.mark == HCK_CREATION_MARK, let file = created.file,
      created.line > 0, created.file_bytes > 0, created.file_bytes <= Self.longestFile
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

  private static func place(_ key: ResourceKey, _ memory: ProcessMemory) -> UInt64? {
    switch key.kind {
    case HCK_GROUP.rawValue, HCK_QUEUE.rawValue, HCK_SEMAPHORE.rawValue:
      // What libdispatch keeps as the object's context.
      var context: UInt64 = 0
      let got = withUnsafeMutableBytes(of: &context) { memory.read(key.address &+ 32, into: $0) }
      return got == 8 && context != 0 ? context : nil
    case HCK_OPERATION.rawValue, HCK_OPERATION_QUEUE.rawValue:
      // A stored property behind those of Foundation's class.
      var words = [UInt64](repeating: 0, count: 96)
      let got = words.withUnsafeMutableBytes { memory.read(key.address, into: $0) }
      guard let index = words.prefix(got / 8).firstIndex(of: HCK_CREATION_MARK) else { return nil }
      return key.address &+ UInt64(index) &* 8
    default: return offset(key.kind).map { key.address &+ $0 }
    }
  }

  /// Right behind the primitive, or right before it where that has no size of its own.
  private static func offset(_ kind: UInt32) -> UInt64? {
    switch kind {
    case HCK_MUTEX.rawValue: UInt64(hck_mutex_size())
    case HCK_RWLOCK.rawValue: UInt64(hck_rwlock_size())
    case HCK_CONDITION.rawValue: UInt64(hck_condition_size())
    case HCK_ONCE.rawValue: 8
    case HCK_FUTEX_LOCK.rawValue: 0 &- UInt64(MemoryLayout<hck_creation>.size)
    default: nil
    }
  }
}
