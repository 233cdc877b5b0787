internal import CHangcheck
internal import HangReport

/// Finds hangs of the first thread's run loop and of the main queue in a watched process, from what
/// the agent writes there. Time comes in, nothing waits. Confined to one thread.
///
/// A turn of the run loop is what lies between two polls of Foundation's on the first thread; that
/// the thread has not left its run loop since only its stack can tell. An item of the main queue
/// hangs while others wait behind it: alone, it may well be all that the program is to do.
final class MainWatch {
  final class Watched {
    let isQueue: Bool
    var tracker = HangTracker(threshold: 0)
    var samples = HangSamples()
    /// Who is in it.
    var thread: KernelThreadID?
    /// Of the run loop: the turn whose stack was looked at, and whether it is one.
    var checked: (turn: UInt64, isTurn: Bool)?
    /// Of the main queue: the item behind which others wait, and since when.
    var pending: (item: UInt64, since: UInt64)?
    var telling = Telling.untold

    init(isQueue: Bool) { self.isQueue = isQueue }

    var subject: HangSamples.Subject {
      HangSamples.Subject(name: isQueue ? "the main queue" : "the main run loop", thread: thread)
    }

    func forget() {
      samples = HangSamples()
      telling = .untold
    }
  }

  /// What has become of the hang that goes on.
  enum Telling: Equatable {
    case untold
    /// It may be a deadlock, which is told as such, or the machine's fault.
    case postponed(until: UInt64)
    /// By the finding with this number.
    case told(Int)
    /// It is told as something else, or like one before.
    case silent(fingerprint: String?)
  }

  /// A hang that was told, and others like it.
  struct Told {
    var finding: Int
    var count = 1
    var seconds: Double
  }
  var told: [String: Told] = [:]

  private let arena: Arena
  private let watch: DeadlockWatch
  private let reader: ProcReader
  private let loop = Watched(isQueue: false)
  private let queue = Watched(isQueue: true)
  private var lost = LostTime()
  private var suspension = Suspension()
  private var attention = Attention()

  init(_ watch: DeadlockWatch, reader: ProcReader) {
    self.watch = watch
    self.reader = reader
    arena = watch.arena
  }

  /// An item that takes less is not asked about.
  private static let shortItem: UInt64 = 20_000_000

  /// To be called every 10 ms. `threshold`: nanoseconds.
  func look(now: UInt64, threshold: UInt64) -> [(watched: Watched, event: HangTracker.Event)] {
    lost.add(unseen: attention.lapse())
    var result: [(Watched, HangTracker.Event)] = []
    for watched in [loop, queue] {
      watched.tracker.threshold = threshold
      var reading = read(watched, now: now)
      if let since = reading.busySince, !watched.tracker.hangs,
        lost.age(of: since, at: now) >= threshold / 2
      {
        if suspension.isNew() || isHeld(watched.thread) {
          lost.forgive(until: now)
          reading.busySince = nil
        }
      }
      for event in watched.tracker.look(reading, now: now, lost: lost) {
        result.append((watched, event))
      }
    }
    return result
  }

  /// The hang that goes on and is to be told by now.
  func postponed(now: UInt64) -> [(watched: Watched, since: UInt64)] {
    [loop, queue].compactMap { watched in
      guard case .postponed(let until) = watched.telling, now >= until, watched.tracker.hangs,
        let since = read(watched, now: now).busySince
      else { return nil }
      return (watched, since)
    }
  }

  /// Nanoseconds that a turn has really taken.
  func duration(since: UInt64, now: UInt64) -> UInt64 { lost.duration(from: since, to: now) }

  /// Whether all threads may be stopped for a look: the more often it hangs, the more seldom.
  func mayStop(now: UInt64) -> Bool {
    let rest = Self.longestRest / 10 &* UInt64(min(stops, 10))
    guard stoppedAt == 0 || now &- stoppedAt >= rest else { return false }
    stops += 1
    stoppedAt = now
    return true
  }
  private var stops = 0
  private var stoppedAt: UInt64 = 0
  private static let longestRest: UInt64 = 10_000_000_000

  /// Whether it is still the turn that began then.
  func goesOn(_ watched: Watched, since: UInt64, now: UInt64) -> Bool {
    read(watched, now: now).busySince == since
  }

  private func read(_ watched: Watched, now: UInt64) -> HangTracker.Reading {
    watched.isQueue ? readQueue(now: now) : readLoop()
  }

  private func readLoop() -> HangTracker.Reading {
    let turns = arena.mainLoop
    loop.thread = KernelThreadID(watch.files.pid.rawValue)
    guard let since = turns.busySince else {
      return HangTracker.Reading(busySince: nil, lastLong: turns.lastLong)
    }
    let isTurn = loop.checked.map { $0.turn != since || $0.isTurn } ?? true
    return HangTracker.Reading(busySince: isTurn ? since : nil, lastLong: turns.lastLong)
  }

  private func readQueue(now: UInt64) -> HangTracker.Reading {
    let turns = arena.mainQueue
    let before = queue.pending
    var last = turns.lastLong
    if let before, let long = last, long.lowerBound == before.item {
      last = min(before.since, long.upperBound)..<long.upperBound
    }
    // A run loop that runs the queue's items is watched itself.
    guard let item = turns.busySince, arena.mainLoop.busySince == nil else {
      return HangTracker.Reading(busySince: nil, lastLong: last)
    }
    if before?.item != item {
      queue.pending = nil
      guard now > item &+ Self.shortItem, hasItemsQueued else {
        return HangTracker.Reading(busySince: nil, lastLong: last)
      }
      queue.pending = (item, now)
      queue.thread = turns.thread.map { watch.builder(now: now).known($0) }
    }
    return HangTracker.Reading(busySince: queue.pending?.since, lastLong: last)
  }

  private var hasItemsQueued: Bool {
    guard let dispatch = watch.runtime.dispatch,
      let main = dispatch.queue(dispatch.layout.mainQueue)
    else { return false }
    return main.hasItems && main.suspendCount == 0
  }

  /// A debugger has it, or somebody has stopped it.
  private func isHeld(_ thread: KernelThreadID?) -> Bool {
    let state = thread.flatMap(reader.state)
    return state == UInt8(ascii: "T") || state == UInt8(ascii: "t") || reader.tracer != nil
  }

  // MARK: - Whether the first thread is in its run loop

  /// Where a run loop's own code lies; empty where it was not found.
  private lazy var loopCode: Range<UInt64> = {
    let files = watch.files
    let images = files.images(watch.memory)
    for mapping in images.mappings
    where mapping.isExecutable && mapping.path.contains("/libFoundation.so") {
      guard let image = images.image(at: mapping.start), let bias = images.loadBias(of: image),
        let found = ImageSymbols([Self.run], in: image, of: images),
        let run = found.symbols[Self.run]
      else { continue }
      let start = bias &+ run.value
      return start..<(start &+ max(run.size, 1))
    }
    return 0..<0
  }()
  private static let run = "CFRunLoopRunSpecific"

  /// Looks, once a turn, whether the first thread's stack leads through a run loop.
  func check(_ watched: Watched, turn: UInt64, _ assembler: () -> ReportAssembler) {
    guard !watched.isQueue, watched.checked?.turn != turn, watched.samples.hasAny else { return }
    let code = loopCode
    let isTurn = !code.isEmpty && watched.samples.passes(through: code, assembler())
    watched.checked = (turn, isTurn)
  }
}
