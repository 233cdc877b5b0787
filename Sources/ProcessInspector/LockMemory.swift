internal import CHangcheck

/// A pthread mutex as glibc keeps it. Its owner is the kernel's word on who holds it.
struct MutexMemory {
  var owner: KernelThreadID?
  var isRecursive: Bool
  /// How often its owner has taken it, where it is recursive.
  var depth: Int
  var isLocked: Bool
  /// With priority inheritance the kernel keeps the queue, and refuses a wait that would close a
  /// circle: glibc then sleeps for ever elsewhere.
  var inheritsPriority: Bool
  /// Its owner may live in another process.
  var isShared: Bool
  /// Its next owner is told when this one died.
  var isRobust: Bool
  /// Only a thread with its owner's id can unlock it.
  var checksOwner: Bool

  init?(_ memory: ProcessMemory, _ address: UInt64) {
    var bytes = [UInt8](repeating: 0, count: hck_mutex_size())
    guard bytes.withUnsafeMutableBytes({ memory.read(address, into: $0) }) == bytes.count else {
      return nil
    }
    func word(_ offset: Int) -> UInt32 {
      bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
    }
    let tid = Int32(truncatingIfNeeded: word(hck_mutex_owner_offset()))
    owner = tid > 0 && tid <= KernelThreadID.most ? KernelThreadID(tid) : nil
    let kind = word(hck_mutex_kind_offset())
    isRecursive = kind & 3 == 1
    checksOwner = kind & 3 == 1 || kind & 3 == 2
    depth = isRecursive ? Int(word(4)) : 1
    inheritsPriority = kind & 32 != 0
    isShared = kind & 128 != 0
    isRobust = kind & 16 != 0
    isLocked = word(0) != 0
  }
}

/// A pthread read/write lock as glibc keeps it: the writer by id, readers by number alone.
struct ReadWriteLockMemory {
  var writer: KernelThreadID?
  var readers: Int
  /// Its owner may live in another process.
  var isShared: Bool

  init?(_ memory: ProcessMemory, _ address: UInt64) {
    var bytes = [UInt8](repeating: 0, count: hck_rwlock_size())
    guard bytes.withUnsafeMutableBytes({ memory.read(address, into: $0) }) == bytes.count else {
      return nil
    }
    func word(_ offset: Int) -> UInt32 {
      bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
    }
    let tid = Int32(truncatingIfNeeded: word(hck_rwlock_writer_offset()))
    writer = tid > 0 && tid <= KernelThreadID.most ? KernelThreadID(tid) : nil
    readers = Int(word(hck_rwlock_readers_offset()) >> 3)
    isShared = word(hck_rwlock_shared_offset()) != 0
  }
}
