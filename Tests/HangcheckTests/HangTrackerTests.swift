import Glibc
import Testing

@testable import ProcessInspector

private let ms: UInt64 = 1_000_000

/// A watchdog whose clock is a number.
private struct Watching {
  var tracker: HangTracker
  var lost = LostTime()
  var now: UInt64 = 1_000_000 * ms
  var events: [HangTracker.Event] = []
  var samples = 0

  init(threshold: UInt64 = 250 * ms) { tracker = HangTracker(threshold: threshold) }

  mutating func look(_ busySince: UInt64?, lastLong: Range<UInt64>? = nil) {
    for event in tracker.look(
      .init(busySince: busySince, lastLong: lastLong), now: now, lost: lost)
    {
      if event == .sample { samples += 1 } else { events.append(event) }
    }
  }

  /// Looks every few milliseconds at a turn that goes on.
  mutating func watch(_ since: UInt64?, for time: UInt64, every step: UInt64 = 10 * ms) {
    let end = now + time
    while now < end {
      now += step
      look(since)
    }
  }

  var opened: Int { events.count { if case .opened = $0 { true } else { false } } }
  var updated: Int { events.count { if case .updated = $0 { true } else { false } } }
  var closed: [UInt64] {
    events.compactMap { if case .closed(let hang) = $0 { hang.duration } else { nil } }
  }
}

@Suite("When something hangs") struct HangTrackerTests {
  @Test(arguments: [50, 250, 2000] as [UInt64])
  func toldAtTheThresholdAndWhenItIsOver(threshold: UInt64) {
    var watching = Watching(threshold: threshold * ms)
    let since = watching.now
    watching.watch(since, for: threshold * ms - 20 * ms)
    #expect(watching.opened == 0)
    watching.watch(since, for: 40 * ms)
    #expect(watching.opened == 1)
    #expect(watching.samples >= 2)
    watching.now += 5 * ms
    watching.look(nil)
    #expect(watching.closed == [watching.now - since])
    #expect(watching.updated == 0)
  }

  @Test func anEndThatIsKnownIsExact() {
    var watching = Watching()
    let since = watching.now
    watching.watch(since, for: 400 * ms)
    let end = since + 403 * ms
    watching.now += 500 * ms
    // Other turns have begun and ended meanwhile.
    watching.look(watching.now - 2 * ms, lastLong: since..<end)
    #expect(watching.closed == [403 * ms])
  }

  @Test func toldAgainAtGrowingIntervals() {
    var watching = Watching()
    watching.watch(watching.now, for: 65_000 * ms)
    #expect(watching.opened == 1)
    // At 1, 2, 4, 8, 16, 32 and 64 seconds.
    #expect(watching.updated == 7)
    #expect(watching.samples < 100)
    #expect(watching.closed.isEmpty)
  }

  @Test func manyShortTurnsAreNone() {
    var watching = Watching()
    for _ in 0..<1000 {
      let since = watching.now
      watching.watch(since, for: 100 * ms)
      watching.watch(nil, for: 10 * ms)
    }
    #expect(watching.events.isEmpty)
    #expect(watching.samples == 0)
  }

  @Test func whatGoesOnJustInTimeIsForgotten() {
    var watching = Watching()
    watching.watch(watching.now, for: 200 * ms)
    watching.watch(watching.now, for: 10 * ms)
    #expect(watching.events == [.forgotten])
    #expect(watching.samples > 0)
  }

  @Test func anHourOfIdle() {
    var watching = Watching()
    var looks = 0
    let end = watching.now + 3_600_000 * ms
    while watching.now < end {
      let pause = watching.tracker.pause(now: watching.now, lost: watching.lost)
      #expect(pause >= 100 * ms)
      watching.now += pause
      watching.look(nil)
      looks += 1
    }
    #expect(watching.events.isEmpty && watching.samples == 0)
    #expect(looks < 40_000)
  }

  @Test func nothingIsMissedBetweenTheLooks() {
    // However a turn lies to the looks, it is told within a fifth of the threshold.
    for begin in stride(from: 0, to: 250 * ms, by: Int(7 * ms)) {
      var watching = Watching()
      watching.look(nil)
      let since = watching.now + begin
      while watching.opened == 0, watching.now < since + 1000 * ms {
        watching.now += max(ms, watching.tracker.pause(now: watching.now, lost: watching.lost))
        watching.look(watching.now >= since ? since : nil)
      }
      #expect(watching.now - since >= 250 * ms)
      #expect(watching.now - since <= 300 * ms)
    }
  }

  @Test func aWatchdogThatOversleptProvesNothing() {
    var watching = Watching()
    let since = watching.now
    watching.watch(since, for: 100 * ms)
    // The process was stopped for a minute.
    watching.lost.add(watching.now..<watching.now + 60_000 * ms)
    watching.now += 60_000 * ms
    watching.watch(since, for: 100 * ms)
    #expect(watching.opened == 0)
    watching.watch(since, for: 60 * ms)
    #expect(watching.opened == 1)
    // What was told does not count the minute.
    watching.now += 10 * ms
    watching.look(nil)
    #expect(watching.closed == [270 * ms])
  }

  @Test func aStopInTheMidstOfAHangIsNoPartOfIt() {
    var watching = Watching()
    let since = watching.now
    watching.watch(since, for: 500 * ms)
    watching.lost.add(watching.now..<watching.now + 10_000 * ms)
    watching.now += 10_000 * ms
    watching.watch(since, for: 100 * ms)
    watching.look(nil)
    #expect(watching.updated == 0)
    #expect(watching.closed == [600 * ms])
  }

  @Test func whileNobodyLookedNothingBegins() {
    var watching = Watching()
    let since = watching.now
    watching.lost.add(unseen: since..<since + 2000 * ms)
    watching.now += 2000 * ms
    watching.watch(since, for: 200 * ms)
    #expect(watching.opened == 0)
    watching.watch(since, for: 60 * ms)
    // But then it is known to have lasted all the time.
    #expect(watching.opened == 1)
    watching.look(nil)
    #expect(watching.closed == [2260 * ms])
  }

  @Test func aDebuggerIsNoHang() {
    var watching = Watching()
    let since = watching.now
    for _ in 0..<1000 {
      watching.now += 10 * ms
      // What `HangWatch` does for a process that is traced.
      watching.lost.forgive(until: watching.now)
      watching.look(nil)
    }
    watching.watch(since, for: 240 * ms)
    #expect(watching.opened == 0)
    watching.watch(since, for: 20 * ms)
    #expect(watching.opened == 1)
  }

  @Test func whoeverEndsTheWatchEndsTheHang() {
    var watching = Watching()
    let since = watching.now
    watching.watch(since, for: 300 * ms)
    let events = watching.tracker.end(now: watching.now, lost: watching.lost)
    #expect(events == [.closed(.init(since: since, duration: 300 * ms))])
  }
}

@Suite("Lost time") struct LostTimeTests {
  @Test func overlapsOnlyWhatItOverlaps() {
    var lost = LostTime()
    lost.add(100..<200)
    lost.add(300..<310)
    #expect(lost.duration(from: 0, to: 50) == 50)
    #expect(lost.duration(from: 150, to: 400) == 190)
    #expect(lost.duration(from: 100, to: 200) == 0)
    #expect(lost.duration(from: 500, to: 400) == 0)
    lost.add(unseen: 400..<450)
    #expect(lost.duration(from: 390, to: 500) == 110)
    #expect(lost.age(of: 390, at: 500) == 60)
    lost.forgive(until: 480)
    #expect(lost.age(of: 390, at: 500) == 20)
  }

  @Test func remembersALimitedNumber() {
    var lost = LostTime()
    for start in 0..<10_000 as Range<UInt64> { lost.add(start * 10..<start * 10 + 1) }
    #expect(lost.duration(from: 99_990, to: 100_000) == 9)
  }
}

@Suite("What a thread is given") struct ThreadUseTests {
  @Test func ofThisThread() throws {
    let (pid, tid) = (ProcessID(getpid()), KernelThreadID(Int32(gettid())))
    let reader = ProcReader(pid)
    let before = try #require(reader.use(of: tid))
    var sum = 0.0
    for number in 0..<3_000_000 { sum += Double(number).squareRoot() }
    let after = try #require(reader.use(of: tid))
    #expect(sum > 0 && after.run > before.run)
    #expect(after.state == UInt8(ascii: "R"))
    #expect(reader.use(of: KernelThreadID(0x3fff_ffff)) == nil)
  }

  @Test(arguments: [
    ("0100007F:0050", "127.0.0.1:80"), ("00000000:0000", "0.0.0.0:0"),
    ("00000000000000000000000001000000:1F90", "[::1]:8080"), ("zz:1", nil), ("0100007F", nil),
  ]) func endpoints(text: String, expected: String?) {
    #expect(OutsideWorld.endpoint(text[...]) == expected)
  }
}
