internal import CHangcheck

/// What the agent says of something that comes around again and again: see `hck_turns`.
struct Turns: Equatable {
  /// When what it does now began, in monotonic nanoseconds; nil while it has nothing to do, or never
  /// had.
  var busySince: UInt64?
  /// The last turn that lasted long and has ended.
  var lastLong: Range<UInt64>?
  /// By the process's own count.
  var thread: KernelThreadID?
}

extension Arena {
  /// Of whichever run loop the first thread runs.
  var mainLoop: Turns { Self.turns(&base.pointee.main_loop) }
  /// Of the main queue, whoever runs its items.
  var mainQueue: Turns { Self.turns(&base.pointee.main_queue) }

  private static func turns(_ turns: UnsafeMutablePointer<hck_turns>) -> Turns {
    let activity = hck_load64(&turns.pointee.activity)
    guard activity != 0 else { return Turns() }
    let ended = hck_load64(&turns.pointee.long_ended)
    let began = hck_load64(&turns.pointee.long_began)
    let tid = Int32(bitPattern: hck_load32(&turns.pointee.tid))
    return Turns(
      busySince: activity & 1 == 0 ? nil : activity & ~1,
      lastLong: began < ended ? began..<ended : nil,
      thread: tid == 0 ? nil : KernelThreadID(tid))
  }
}
