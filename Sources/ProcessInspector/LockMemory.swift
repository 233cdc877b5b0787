internal import CHangcheck

/// A pthread mutex as glibc keeps it. Its owner is the kernel's word on who holds it.
struct MutexMemory {
  var owner: KernelThreadID?
  var isRecursive: Bool
  var isLocked: Bool

  init?(_ memory: ProcessMemory, _ address: UInt64) {
    var bytes = [UInt8](repeating: 0, count: hck_mutex_size())
    guard bytes.withUnsafeMutableBytes({ memory.read(address, into: $0) }) == bytes.count else { return nil }
    func word(_ offset: Int) -> UInt32 {
      bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
    }
    let tid = Int32(truncatingIfNeeded: word(hck_mutex_owner_offset()))
    owner = tid > 0 ? KernelThreadID(tid) : nil
    isRecursive = word(hck_mutex_kind_offset()) & 3 == 1
    isLocked = word(0) != 0
  }
}

/// A pthread read/write lock as glibc keeps it: the writer by id, readers by number alone.
struct ReadWriteLockMemory {
  var writer: KernelThreadID?
  var readers: Int

  init?(_ memory: ProcessMemory, _ address: UInt64) {
    var bytes = [UInt8](repeating: 0, count: hck_rwlock_size())
    guard bytes.withUnsafeMutableBytes({ memory.read(address, into: $0) }) == bytes.count else { return nil }
    func word(_ offset: Int) -> UInt32 {
      bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
    }
    let tid = Int32(truncatingIfNeeded: word(hck_rwlock_writer_offset()))
    writer = tid > 0 ? KernelThreadID(tid) : nil
    readers = Int(word(hck_rwlock_readers_offset()) >> 3)
  }
}
