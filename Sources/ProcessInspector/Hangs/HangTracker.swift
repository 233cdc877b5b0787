/// Decides, from what a watched thing says of itself at each look, when it hangs: a value that takes
/// the time in and gives back what to do.
///
/// | state | what is seen | becomes | what is done |
/// | --- | --- | --- | --- |
/// | idle | busy since a moment | busy | |
/// | busy | half of the threshold | busy | sample, from now on at growing intervals; a report is one too |
/// | busy | the threshold | hanging | opened |
/// | busy | another turn, or idle | busy, idle | forgotten, where samples were taken |
/// | hanging | the same turn | hanging | sample, updated |
/// | hanging | another turn, or idle | busy, idle | closed |
package struct HangTracker: Sendable {
  /// What a watched thing says at one moment. Times are monotonic nanoseconds.
  package struct Reading: Equatable, Sendable {
    /// When the turn began that has not ended; nil where there is nothing to do.
    package var busySince: UInt64?
    /// The last turn that lasted long and has ended.
    package var lastLong: Range<UInt64>?
    package init(busySince: UInt64?, lastLong: Range<UInt64>? = nil) {
      self.busySince = busySince
      self.lastLong = lastLong
    }
  }

  package struct Hang: Equatable, Sendable {
    /// Monotonic nanoseconds.
    package var since: UInt64
    /// Nanoseconds, without those in which nobody could look.
    package var duration: UInt64
  }

  package enum Event: Equatable, Sendable {
    /// The stack is to be looked at: this may become a hang, or is one.
    case sample
    /// Samples that were taken are of no use.
    case forgotten
    case opened(Hang)
    case updated(Hang)
    case closed(Hang)
  }

  private struct Turn: Equatable {
    var since: UInt64
    var nextSample: UInt64
    var interval: UInt64
    var hasSamples = false
    /// Set once the hang is told.
    var nextUpdate: UInt64?

    mutating func sampled(at age: UInt64) {
      hasSamples = true
      nextSample = age + interval
    }
  }

  private var turn: Turn?
  package var threshold: UInt64

  package init(threshold: UInt64) { self.threshold = threshold }

  /// Between the first two samples.
  private static let firstInterval: UInt64 = 50_000_000
  private static let longestInterval: UInt64 = 10_000_000_000
  /// After which a hang is told again at the soonest.
  private static let firstUpdate: UInt64 = 1_000_000_000

  package var hangs: Bool { turn?.nextUpdate != nil }

  package mutating func look(_ reading: Reading, now: UInt64, lost: LostTime) -> [Event] {
    var events: [Event] = []
    if let old = turn, old.since != reading.busySince {
      events.append(end(of: old, reading, now: now, lost: lost))
      turn = nil
      if events == [.forgotten], !old.hasSamples { events = [] }
    }
    guard let since = reading.busySince else { return events }
    var current =
      turn
      ?? Turn(
        since: since, nextSample: threshold / 2, interval: min(Self.firstInterval, threshold / 4))
    if current.nextUpdate == nil {
      let age = lost.age(of: since, at: now)
      if age >= threshold {
        let hang = Hang(since: since, duration: lost.duration(from: since, to: now))
        current.nextUpdate = max(Self.firstUpdate, 4 * threshold)
        current.sampled(at: hang.duration)
        events.append(.opened(hang))
      } else if age >= current.nextSample {
        current.sampled(at: age)
        events.append(.sample)
      }
    } else if let next = current.nextUpdate {
      let hang = Hang(since: since, duration: lost.duration(from: since, to: now))
      if hang.duration >= next {
        current.nextUpdate = next * 2
        current.sampled(at: hang.duration)
        events.append(.updated(hang))
      } else if hang.duration >= current.nextSample {
        current.sampled(at: hang.duration)
        current.interval = min(current.interval + current.interval / 4, Self.longestInterval)
        events.append(.sample)
      }
    }
    turn = current
    return events
  }

  /// Nobody watches any more.
  package mutating func end(now: UInt64, lost: LostTime) -> [Event] {
    look(Reading(busySince: nil), now: now, lost: lost)
  }

  private func end(
    of old: Turn, _ reading: Reading, now: UInt64, lost: LostTime
  ) -> Event {
    guard old.nextUpdate != nil else { return .forgotten }
    var end = reading.busySince.map { min($0, now) } ?? now
    if let last = reading.lastLong, last.lowerBound == old.since { end = last.upperBound }
    return .closed(
      Hang(since: old.since, duration: lost.duration(from: old.since, to: end)))
  }

  /// In how many nanoseconds to look again at the latest.
  package func pause(now: UInt64, lost: LostTime) -> UInt64 {
    // What begins right now is not due before.
    guard let turn else { return threshold / 2 }
    let age =
      turn.nextUpdate == nil
      ? lost.age(of: turn.since, at: now) : lost.duration(from: turn.since, to: now)
    let next = turn.nextUpdate == nil ? min(turn.nextSample, threshold) : turn.nextSample
    return next > age ? next - age : 0
  }
}
