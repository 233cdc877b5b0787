internal import CHangcheck
internal import HangReport

/// Tells from copied stacks and system calls what threads without a record wait for.
///
/// The function that a thread waits in says what kind of thing its word belongs to, and the memory
/// there has to look like one; else the wait is left unnamed. Offsets are those of glibc 2.34 and later
/// on x86-64.
struct WaitReader {
  let memory: ProcessMemory
  let functions: WaitingFunctions
  /// Of the id inside of a thread's descriptor; nil where it is not known.
  let tidOffset: UInt64?

  // Inside of a pthread_cond_t, a pthread_rwlock_t, a pthread_barrier_t.
  private static let signals: (even: UInt64, odd: UInt64) = (40, 44)
  private static let phaseFutex: UInt64 = 8, writersFutex: UInt64 = 12
  private static let barrierRound: UInt64 = 4, barrierOut: UInt64 = 16
  /// Of the lock in Swift's once token, whose first word says whether it is done.
  private static let onceLock: UInt64 = 4

  /// `isAlive`: whether the process has a thread with an id, as it knows it itself.
  func wait(
    of thread: CapturedThread, frames: [RawFrame], call: SystemCall?,
    isAlive: (KernelThreadID) -> Bool
  ) -> KnownWait? {
    let found = functions.innermost(frames, memory)
    if found?.function == .swiftOnce, call?.number != SystemCalls.futex,
      let token = askedFor(thread, found?.end ?? 0, isAlive)
    {
      return KnownWait(futex: token &+ Self.onceLock, wait: wait(token, HCK_ONCE), spins: true)
    }
    guard let call, call.number == SystemCalls.futex else { return nil }
    let futex = call.arguments[0]
    let command = FutexCall.command(call.arguments[1])
    let inherits = command == FutexCall.lockPI || command == FutexCall.lockPI2
    func known(_ address: UInt64, _ kind: hck_kind, isShared: Bool = false) -> KnownWait {
      KnownWait(futex: futex, wait: wait(address, kind, isShared: isShared))
    }
    switch found?.function {
    case .lockMutex:
      if isMutex(futex) { return known(futex, HCK_MUTEX) }
      // The kernel has refused to wait for one with priority inheritance, and the thread sleeps for
      // ever on a word of its stack.
      // The compiler may keep its address or that of its kind.
      let nearby = candidates(thread, found?.end ?? 0)
      let refused = Set(nearby + nearby.map { $0 &- UInt64(hck_mutex_kind_offset()) }).filter {
        address in
        guard isMutex(address), let mutex = MutexMemory(memory, address) else { return false }
        return mutex.inheritsPriority && mutex.isLocked && mutex.owner.map(isAlive) ?? false
      }
      return refused.count == 1 ? refused.first.map { known($0, HCK_MUTEX) } : nil
    case .waitForCondition:
      // Woken, it takes its mutex, without the time limit that the other wait could have.
      if command == FutexCall.wait || inherits {
        return isMutex(futex) ? known(futex, HCK_MUTEX) : nil
      }
      return known(futex &- (futex % 8 == 0 ? Self.signals.even : Self.signals.odd), HCK_CONDITION)
    case .lockForReading, .lockForWriting:
      guard let lock = readWriteLock(futex) else { return nil }
      return known(lock, HCK_RWLOCK, isShared: found?.function == .lockForReading)
    case .waitForSemaphore: return known(futex, HCK_POSIX_SEMAPHORE)
    case .waitAtBarrier:
      return known(futex &- (futex % 8 == 0 ? Self.barrierOut : Self.barrierRound), HCK_BARRIER)
    case .join:
      guard let tidOffset, memory.word(futex &- tidOffset &+ 16) == futex &- tidOffset else {
        return nil
      }
      return known(futex &- tidOffset, HCK_JOIN)
    case .dispatchOnce: return known(futex, HCK_ONCE)
    case .waitForItem:
      let items = candidates(thread, found?.end ?? 0).filter { isItem($0, group: futex) }
      return items.count == 1 ? items.first.map { known($0, HCK_WORK_ITEM) } : nil
    case .swiftOnce:
      guard inherits else { return nil }
      // It may have been seen in one of many vain calls.
      return KnownWait(futex: futex, wait: wait(futex &- Self.onceLock, HCK_ONCE), spins: true)
    case .spin: return nil
    case .helper, .waitForProcess, nil:
      // The kernel itself defines what such a word holds: its owner's id.
      return inherits ? known(futex, HCK_FUTEX_LOCK) : nil
    }
  }

  private func wait(_ address: UInt64, _ kind: hck_kind, isShared: Bool = false) -> RecordedWait {
    RecordedWait(
      key: ResourceKey(address: address, kind: kind.rawValue), isShared: isShared, isTimed: false,
      mutex: 0)
  }

  /// Whether a mutex of glibc's can lie there: its kind has known flags alone, its owner is an id.
  func isMutex(_ address: UInt64) -> Bool {
    guard address % 4 == 0, let copy = RemoteBytes(memory, address, hck_mutex_size()) else {
      return false
    }
    let kind = copy.word32(hck_mutex_kind_offset())
    return kind & ~0x3f3 == 0 && copy.word32(hck_mutex_owner_offset()) <= 1 << 22
  }

  /// Whether a work item lies there whose own group has its word at `group`: its data is marked, and
  /// names the group.
  private func isItem(_ address: UInt64, group word: UInt64) -> Bool {
    guard address % 8 == 0, let copy = RemoteBytes(memory, address, 0x60) else { return false }
    return copy.word(0x20) & 0xffff_ffff == 0xd159_b10c
      && copy.word(0x50) == word &- UInt64(DispatchLayout.groupGeneration)
  }

  /// The lock around one of its three words.
  private func readWriteLock(_ futex: UInt64) -> UInt64? {
    var address = futex
    if futex % 8 != 0 {
      address = futex &- Self.writersFutex
    } else if let word = memory.word32(futex), word & 4 == 0 {
      // The count of readers says by its third bit that somebody sleeps on it; a phase is 0 to 3.
      address = futex &- Self.phaseFutex
    }
    guard let copy = RemoteBytes(memory, address, hck_rwlock_size()),
      copy.word32(hck_rwlock_writer_offset()) <= 1 << 22, copy.word32(8) <= 3,
      copy.word32(12) <= 3, copy.word32(48) <= 3
    else { return nil }
    return address
  }

  /// The one-time initialisation that a thread asks for again and again: the first argument of the
  /// call that it was stopped in, or what the asking function has at hand between two calls.
  private func askedFor(
    _ thread: CapturedThread, _ end: UInt64, _ isAlive: (KernelThreadID) -> Bool
  ) -> UInt64? {
    func isToken(_ token: UInt64) -> Bool {
      guard token % 8 == 0, memory.word32(token) == 0,
        let lock = memory.word32(token &+ Self.onceLock)
      else { return false }
      let owner = KernelThreadID(Int32(bitPattern: lock & 0x3fff_ffff))
      return owner.rawValue > 0 && owner.rawValue <= KernelThreadID.most && isAlive(owner)
    }
    let asked = thread.registers.rdi &- Self.onceLock
    if thread.systemCall == SystemCalls.futex, isToken(asked) { return asked }
    let nearby = candidates(thread, end)
    let tokens = Set(nearby + nearby.map { $0 &- Self.onceLock }).filter(isToken)
    return tokens.count == 1 ? tokens.first : nil
  }

  /// Addresses that the innermost calls have at hand: in registers, and on the stack up to `end`.
  private func candidates(_ thread: CapturedThread, _ end: UInt64) -> [UInt64] {
    let registers = thread.registers
    var result = [
      registers.rbx, registers.rbp, registers.r12, registers.r13, registers.r14, registers.r15,
      registers.rdi, registers.rsi,
    ]
    let stack = thread.stack
    if end > registers.rsp, end - registers.rsp < 4096 {
      for address in stride(from: registers.rsp, to: end, by: 8) {
        let at = Int(address &- stack.base)
        guard at >= 0, at + 8 <= stack.bytes.count else { break }
        result.append(
          stack.bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: at, as: UInt64.self) })
      }
    }
    var seen: Set<UInt64> = []
    return result.filter { $0 >= 4096 && $0 < 1 << 47 && seen.insert($0).inserted }
  }
}
