extension DispatchMemory {
  /// A queue as it was at one moment.
  struct Queue: Hashable, Sendable {
    var address: UInt64
    var label: String?
    /// How many items may run at a time: 1 for a serial queue.
    var width: Int
    var isSerial: Bool { width == 1 }
    var isMain: Bool
    /// libdispatch's own, which waits for events.
    var isManager: Bool
    /// One of the global queues, whose items the pool's threads run.
    var isRoot: Bool
    /// A queue on which Swift's tasks run: it never gets more threads than its width.
    var isCooperativePool: Bool
    var target: UInt64?
    /// The thread that drains a serial queue, runs a barrier, or is in a synchronous call on it. Of
    /// the main queue the main thread, also while that does something else.
    var owner: KernelThreadID?
    /// Only its own thread runs its items: the main queue before `dispatchMain`.
    var isThreadBound: Bool
    var suspendCount: Int
    /// It was created inactive and never activated.
    var isInactive: Bool
    var inBarrier: Bool
    var hasPendingBarrier: Bool
    /// Of a concurrent queue: how many items run, handed-on ones that wait for a thread included;
    /// nil where a barrier or a suspension hides it.
    var runningWidth: Int?
    /// It is on its target's list, or about to be drained.
    var isEnqueued: Bool
    /// Items were added while others ran, and whoever leaves next sees to them: nobody else will.
    ///
    /// libdispatch on Linux can leave a concurrent queue like this for good, without any barrier,
    /// when a synchronous read within a read finds another waiter before it.
    var waitsForLeavers: Bool
    var hasItems: Bool
    var qos: String?
  }

  func queue(_ address: UInt64) -> Queue? {
    guard address % 8 == 0,
      let copy = RemoteBytes(memory, address, DispatchLayout.queueBytes),
      let kind = layout.kinds[copy.word(0)], kind == .queue || kind == .workloop || kind == .source
    else { return nil }
    return queue(copy, kind)
  }

  private func queue(_ copy: RemoteBytes, _ kind: ObjectKind) -> Queue {
    let state = copy.word(DispatchLayout.state)
    let width = Int(copy.word16(DispatchLayout.width))
    let label = copy.word(DispatchLayout.label)
    let text = kind == .source || label == 0 ? nil : name(at: label)
    let isRoot = layout.isRoot(copy.address) || width == 4095
    let owner = Int32(truncatingIfNeeded: state & 0x3fff_ffff)
    let side = state & (1 << 57) != 0 ? Int(copy.word32(DispatchLayout.sideSuspended)) : 0
    let suspended = Int(state >> 58) + side
    let isInactive = state & (1 << 56) != 0
    let used = Int(state >> 41 & 0x1fff)
    let inBarrier = state & (1 << 54) != 0
    let hasWidth = width > 1 && !isRoot
    let running =
      hasWidth && !inBarrier && suspended == 0 && !isInactive
      ? max(0, used - (0x1000 - width) - (state & (1 << 40) != 0 ? width - 1 : 0)) : nil
    let isEnqueued = state & (1 << 31) != 0
    let hasItems = kind != .source && copy.word(DispatchLayout.tail) != 0
    return Queue(
      address: copy.address, label: text, width: width, isMain: copy.address == layout.mainQueue,
      isManager: copy.address == layout.managerQueue, isRoot: isRoot,
      isCooperativePool: text == "Swift global concurrent queue",
      target: copy.word(DispatchLayout.target) == 0 ? nil : copy.word(DispatchLayout.target),
      owner: isRoot || owner <= 0 ? nil : KernelThreadID(owner),
      isThreadBound: copy.word32(DispatchLayout.width) & 0x0004_0000 != 0,
      suspendCount: suspended, isInactive: isInactive, inBarrier: inBarrier,
      hasPendingBarrier: state & (1 << 40) != 0,
      runningWidth: running, isEnqueued: isEnqueued,
      waitsForLeavers: hasItems && running ?? 0 > 0 && owner == 0 && !isEnqueued
        && state & (1 << 39) != 0,
      hasItems: hasItems,
      qos: Self.qos(copy.word32(DispatchLayout.priority) >> 8 & 15))
  }

  /// A queue's label. Those of the library and of literals stay; others may be used again.
  private func name(at address: UInt64) -> String? { memory.text(address) }

  private static func qos(_ number: UInt32) -> String? {
    switch number {
    case 1: "maintenance"
    case 2: "background"
    case 3: "utility"
    case 4: "default"
    case 5: "userInitiated"
    case 6: "userInteractive"
    default: nil
    }
  }

  /// The queue and those that it targets, the global one at the end included.
  func targetChain(_ queue: UInt64) -> [UInt64] {
    var result: [UInt64] = []
    var next: UInt64? = queue
    while let address = next, result.count < 32, !result.contains(address), isQueue(address) {
      result.append(address)
      let target = memory.word(address &+ UInt64(DispatchLayout.target))
      next = target == 0 ? nil : target
    }
    return result
  }
}

extension DispatchLayout {
  func isRoot(_ address: UInt64) -> Bool {
    guard let first = roots.first, let last = roots.last else { return false }
    return address >= first && address <= last && (address - first) % UInt64(Self.rootBytes) == 0
  }
}
