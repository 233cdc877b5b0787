extension DispatchMemory {
  /// A global queue, whose items the threads of the pool run.
  struct Root: Hashable, Sendable {
    var address: UInt64
    var label: String
    var hasItems: Bool
    /// How many more threads it may start; every second libdispatch allows one more while all of
    /// them are blocked.
    var poolLeft: Int?
    /// It starts a thread for each item.
    var isOvercommit: Bool { label.hasSuffix(".overcommit") }
  }

  func roots() -> [Root] {
    layout.roots.compactMap { address in
      guard let copy = RemoteBytes(memory, address, DispatchLayout.rootBytes),
        let label = memory.text(copy.word(DispatchLayout.label))
      else { return nil }
      return Root(
        address: address, label: label, hasItems: copy.word(DispatchLayout.tail) != 0,
        poolLeft: Int(Int32(bitPattern: copy.word32(DispatchLayout.poolLeft))))
    }
  }

  /// A timer that will fire.
  struct Timer: Hashable, Sendable {
    enum Clock: Int, Hashable, Sendable {
      /// CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME.
      case uptime, monotonic, wall
    }
    var source: UInt64
    /// Nanoseconds of `clock`.
    var deadline: UInt64
    var clock: Clock
    /// libdispatch's own: it looks every second at its pool, for ever, once a global queue was used.
    var isOwn: Bool
    var handler: UInt64
    var closure: UInt64?
    var block: UInt64?
    var context: UInt64
    var targetQueue: UInt64?
    var isRepeating: Bool
  }

  /// The armed timers: `asyncAfter`, timer sources, sleeping tasks. Nil where they cannot be told; of
  /// each clock no more than `limit`.
  func timers(limit: Int = 1000) -> [Timer]? {
    guard let heaps = RemoteBytes(memory, layout.timers, layout.timerHeaps * 32) else { return nil }
    var result: [Timer] = []
    for index in 0..<layout.timerHeaps {
      guard let clock = Timer.Clock(rawValue: index) else { return nil }
      var seen: Set<UInt64> = []
      for record in records(heaps, at: index * 32)
      where seen.count < limit && seen.insert(record).inserted {
        if let timer = timer(record, clock) { result.append(timer) }
      }
    }
    return result
  }

  /// The records in one heap. Each timer lies in it twice, by its target and by its deadline: at
  /// index 2n and 2n + 1 or elsewhere.
  private func records(_ heaps: RemoteBytes, at base: Int) -> [UInt64] {
    let count = min(Int(heaps.word32(base)), 1 << 14)
    let segments = Int(heaps.byte(base + 4))
    var result = [heaps.word(base + 8), heaps.word(base + 16)].filter { $0 != 0 }
    guard count > 2, segments > 0, segments < 16 else { return result }
    // Segments double in size from 8 words on; the last one ends with pointers to those before.
    let last = heaps.word(base + 24)
    func size(_ segment: Int) -> Int { segment == 0 ? 8 : 8 << (segment - 1) }
    var left = count - 2
    for segment in 0..<segments where left > 0 {
      let room = size(segments - 1)
      let start =
        segment == segments - 1
        ? last : memory.word(last &+ UInt64(8 * (room - segment - 1))) ?? 0
      // The ends of segments belong to those pointers.
      let used = min(left, segment == segments - 1 ? room - segment : size(segment))
      guard let words = RemoteBytes(memory, start, used * 8) else { return result }
      result += (0..<used).map { words.word($0 * 8) }.filter { $0 != 0 }
      left -= used
    }
    return result
  }

  private func timer(_ address: UInt64, _ clock: Timer.Clock) -> Timer? {
    guard let refs = RemoteBytes(memory, address, 0x68), kind(of: ~refs.word(8)) == .source,
      Int(refs.byte(0x1e) >> 2 & 3) == clock.rawValue
    else { return nil }
    let source = ~refs.word(8)
    let handler = handler(refs)
    let target = memory.word(source &+ UInt64(DispatchLayout.target))
    let interval = refs.word(0x60)
    return Timer(
      source: source, deadline: refs.word(0x50), clock: clock,
      isOwn: target == layout.managerQueue
        || handler.map { $0.function == layout.monitor } ?? false,
      handler: handler?.function ?? 0, closure: handler?.closure, block: handler?.block,
      context: handler?.context ?? 0, targetQueue: target,
      isRepeating: interval != 0 && interval < UInt64(Int64.max))
  }

  struct Handler: Hashable, Sendable {
    var function: UInt64
    var closure: UInt64?
    var block: UInt64?
    var context: UInt64
  }

  func handler(ofSource source: UInt64) -> Handler? {
    guard let refs = memory.word(source &+ UInt64(DispatchLayout.sourceRefs)),
      let copy = RemoteBytes(memory, refs, 0x40), ~copy.word(8) == source
    else { return nil }
    return handler(copy)
  }

  private func handler(_ refs: RemoteBytes) -> Handler? {
    guard let item = continuation(refs.word(0x28)) else { return nil }
    let flags = item.word(0)
    let code = code(flags: flags, function: item.word(0x20), context: item.word(0x28))
    return Handler(
      function: code.function, closure: code.closure,
      block: flags & 0x10 != 0 ? item.word(0x28) : nil, context: item.word(0x28))
  }
}
