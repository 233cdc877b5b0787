extension DispatchMemory {
  /// The semaphore or group whose word a thread sleeps on; nil for anything else, and for the
  /// library's own semaphores of idle workers.
  func waitedObject(futex address: UInt64) -> (kind: ObjectKind, address: UInt64)? {
    if isIdleWorker(futex: address) { return nil }
    let semaphore = address &- UInt64(DispatchLayout.semaphoreWord)
    if kind(of: semaphore) == .semaphore { return (.semaphore, semaphore) }
    let group = address &- UInt64(DispatchLayout.groupGeneration)
    if kind(of: group) == .group { return (.group, group) }
    return nil
  }

  /// A semaphore's value, negative by the number of its waiters, and the one it was made with.
  func semaphore(_ address: UInt64) -> (value: Int, original: Int)? {
    guard let copy = RemoteBytes(memory, address, 0x48), layout.kinds[copy.word(0)] == .semaphore
    else { return nil }
    return (
      Int(Int64(bitPattern: copy.word(DispatchLayout.semaphoreValue))),
      Int(Int64(bitPattern: copy.word(DispatchLayout.semaphoreOriginal)))
    )
  }

  struct Group: Sendable {
    /// Enters that have not been left.
    var count: Int
    var hasWaiters: Bool
    var hasNotify: Bool
    /// What is to run once it is empty; where each is to run is its `queue`.
    var notifyItems: [Item]
  }

  func group(_ address: UInt64) -> Group? {
    guard let copy = RemoteBytes(memory, address, 0x48), layout.kinds[copy.word(0)] == .group
    else { return nil }
    let state = UInt32(truncatingIfNeeded: copy.word(DispatchLayout.groupState))
    let hasNotify = state & 2 != 0
    let first = copy.word(DispatchLayout.groupNotify)
    let items =
      hasNotify && first != 0
      ? settled { self.walk(from: first, limit: 100) }.map { item($0, isNotify: true) } : []
    return Group(
      count: Int((0 &- (state & ~3)) >> 2), hasWaiters: state & 1 != 0, hasNotify: hasNotify,
      notifyItems: items)
  }

  /// Who runs a `dispatch_once` that is not done; nil also where the word is no such token's.
  func onceOwner(_ token: UInt64) -> KernelThreadID? {
    guard let value = memory.word(token), value >> 32 == 0 else { return nil }
    return Self.owner(UInt32(truncatingIfNeeded: value))
  }

  /// Who runs a `swift_once` (a lazy global's initialiser) that is not done: a flag and a lock that
  /// holds its owner's id.
  func swiftOnceOwner(_ token: UInt64) -> KernelThreadID? {
    guard memory.word32(token) == 0, let lock = memory.word32(token &+ 4) else { return nil }
    return Self.owner(lock)
  }

  /// The id in a lock's word; the kernel gives none above 2^22.
  private static func owner(_ word: UInt32) -> KernelThreadID? {
    let id = word & 0x3fff_ffff
    return id > 0 && id <= 1 << 22 ? KernelThreadID(Int32(id)) : nil
  }

  /// A `concurrentPerform` whose caller waits for its helpers.
  struct ApplyWait: Hashable, Sendable {
    var queue: UInt64?
    var iterations: Int
    /// How many have not ended.
    var left: Int
    var function: UInt64
    var block: UInt64
  }

  func applyWait(futex address: UInt64) -> ApplyWait? {
    let record = address &- UInt64(DispatchLayout.applyWord)
    guard record % 8 == 0, let copy = RemoteBytes(memory, record, 0x38),
      let item = continuation(copy.word(0))
    else { return nil }
    let iterations = copy.word(0x18)
    let left = copy.word(0x10)
    let queue = item.word(0x30)
    guard iterations > 0, iterations < 1 << 48, left <= iterations, isCode(item.word(0x20)),
      queue == 0 || isQueue(queue)
    else { return nil }
    return ApplyWait(
      queue: queue == 0 ? nil : queue, iterations: Int(iterations), left: Int(left),
      function: item.word(0x20), block: item.word(0x28))
  }
}
