internal import CHangcheck
internal import HangReport

extension ReportAssembler {
  /// Without a record: from where a thread called what is still on its stack, a block that runs
  /// synchronously on a queue or a one-time initialisation. Nil where it could be another one.
  func ownCall(
    _ hold: RecordedHold, _ all: [RecordedHold], _ look: Look, _ stack: [Frame]
  ) -> [Frame]? {
    let kind = hold.key.kind
    guard hold.site == nil, kind == HCK_QUEUE.rawValue || kind == HCK_ONCE.rawValue else {
      return nil
    }
    // Where a thread works through a queue, what it holds may be that one.
    let isQueue = kind == HCK_QUEUE.rawValue
    if isQueue, stack.contains(where: { Self.isDrain($0.symbol ?? "") }) { return nil }
    // Of concurrent queues its work is on it has a share.
    let alike = all.filter {
      $0.key.kind == kind && !$0.isShared && look.names[$0.key] != Self.mainQueue
    }
    guard alike.count == 1, alike[0].key == hold.key else { return nil }
    let calls = Self.calls(on: stack) { isQueue ? Self.isSync($0) : Self.isOnce($0) }
    return calls.count == 1 ? calls[0] : nil
  }
  private static let mainQueue = "com.apple.main-thread"

  /// The stacks of who made calls of a kind that have not come back and are not what the thread waits
  /// in: frames of libraries between two of the program's own, one of which `isCall` knows.
  static func calls(on stack: [Frame], where isCall: (String) -> Bool) -> [[Frame]] {
    var calls: [[Frame]] = []
    guard var at = stack.firstIndex(where: { !$0.runtime }) else { return [] }
    while let start = stack[at...].firstIndex(where: \.runtime),
      let end = stack[start...].firstIndex(where: { !$0.runtime })
    {
      if stack[start..<end].contains(where: { isCall($0.symbol ?? "") }) {
        calls.append(Array(stack[end...]))
      }
      at = end
    }
    return calls
  }

  private static func isSync(_ symbol: String) -> Bool {
    symbol.hasPrefix("DispatchQueue.sync") || symbol.contains("dispatch_sync")
      || symbol.contains("barrier_sync") || symbol.contains("async_and_wait")
  }

  private static func isOnce(_ symbol: String) -> Bool {
    symbol.contains("once_slow") || symbol.contains("swift_once")
      || symbol.contains("dispatch_once")
  }

  private static func isDrain(_ symbol: String) -> Bool {
    symbol.contains("_drain") || symbol.contains("_dispatch_lane_invoke")
  }
}
