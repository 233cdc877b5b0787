/// Stretches of time in which whoever watches did not run itself (the process was stopped, the
/// machine stood still, nobody gave it a processor): they prove nothing of anybody else.
package struct LostTime: Equatable, Sendable {
  private var lost: [Range<UInt64>] = []
  private var unseen: [Range<UInt64>] = []
  private var amnesty: UInt64 = 0
  /// What is older cannot matter to a hang that is still to begin.
  private static let most = 64

  package init() {}

  /// Nobody ran in this stretch of monotonic nanoseconds.
  package mutating func add(_ stretch: Range<UInt64>) { Self.add(stretch, to: &lost) }

  /// Nobody looked in this one; others may have run.
  package mutating func add(unseen stretch: Range<UInt64>) { Self.add(stretch, to: &unseen) }

  private static func add(_ stretch: Range<UInt64>, to list: inout [Range<UInt64>]) {
    guard !stretch.isEmpty else { return }
    if list.count == most { list.removeFirst() }
    list.append(stretch)
  }

  /// Whatever is not told yet counts anew from here on.
  package mutating func forgive(until now: UInt64) { amnesty = max(amnesty, now) }

  /// How long something has really lasted.
  package func duration(from start: UInt64, to end: UInt64) -> UInt64 {
    Self.left(of: start, end, lost)
  }

  /// For how long something that is not told yet is known to last.
  package func age(of start: UInt64, at now: UInt64) -> UInt64 {
    Self.left(of: max(start, amnesty), now, lost + unseen)
  }

  private static func left(of start: UInt64, _ end: UInt64, _ gone: [Range<UInt64>]) -> UInt64 {
    guard start < end else { return 0 }
    return gone.reduce(end - start) { left, gap in
      let (first, last) = (max(start, gap.lowerBound), min(end, gap.upperBound))
      return first < last ? left - min(left, last - first) : left
    }
  }
}
