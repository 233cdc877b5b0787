/// Reads the memory of a process: live, copied, from a core, or a test's own.
public protocol MemoryReader: Sendable {
  /// Copies what is readable from `address` on into `buffer`; returns the number of bytes, 0 where
  /// nothing is mapped.
  func read(_ address: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int
}

/// One line of /proc/PID/maps.
public struct Mapping: Sendable, Hashable {
  public var start: UInt64
  public var end: UInt64
  public var offset: UInt64
  public var isWritable: Bool
  public var isExecutable: Bool
  public var inode: UInt64
  /// "" for anonymous memory; "[vdso]", "[stack]" as the kernel names them; " (deleted)" removed
  /// from the path.
  public var path: String
  public init(
    start: UInt64, end: UInt64, offset: UInt64, isWritable: Bool, isExecutable: Bool, inode: UInt64,
    path: String
  ) {
    self.start = start
    self.end = end
    self.offset = offset
    self.isWritable = isWritable
    self.isExecutable = isExecutable
    self.inode = inode
    self.path = path
  }
}

/// The registers that an unwinder begins with (x86-64).
public struct Registers: Sendable, Hashable {
  public var rip: UInt64, rsp: UInt64, rbp: UInt64
  public var rax: UInt64 = 0, rbx: UInt64 = 0, rcx: UInt64 = 0, rdx: UInt64 = 0
  public var rsi: UInt64 = 0, rdi: UInt64 = 0
  public var r8: UInt64 = 0, r9: UInt64 = 0, r10: UInt64 = 0, r11: UInt64 = 0
  public var r12: UInt64 = 0, r13: UInt64 = 0, r14: UInt64 = 0, r15: UInt64 = 0
  public init(rip: UInt64, rsp: UInt64, rbp: UInt64) {
    self.rip = rip
    self.rsp = rsp
    self.rbp = rbp
  }
}

/// Part of a stack, copied at one moment.
public struct StackCopy: Sendable, Hashable {
  public var base: UInt64
  public var bytes: [UInt8]
  public init(base: UInt64, bytes: [UInt8]) {
    self.base = base
    self.bytes = bytes
  }
}

/// A frame before it has a name.
public struct RawFrame: Sendable, Hashable {
  public var pc: UInt64
  /// The canonical frame address: rsp in the caller just after the call returned.
  public var cfa: UInt64
  /// The pc is the instruction itself (top of a stack, interrupted by a signal), not a return
  /// address.
  public var isExact: Bool
  public init(pc: UInt64, cfa: UInt64, isExact: Bool) {
    self.pc = pc
    self.cfa = cfa
    self.isExact = isExact
  }
}
