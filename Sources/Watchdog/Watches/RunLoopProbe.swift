internal import CHangcheck
internal import CoreFoundation
internal import ProcessInspector
internal import Synchronization

/// An observer of a run loop: which activity it is in, and since when.
///
/// The run loop's thread pays, for each activity, a reading of the clock and one store; there are
/// four in a turn that waits. It is never woken.
final class RunLoopProbe: Probe {
  private let name: String
  private let state = State()
  private let installed = Mutex(Installed())

  // CoreFoundation's objects may be used from any thread.
  private struct Installed: @unchecked Sendable {
    var loop: CFRunLoop?
    var observer: CFRunLoopObserver?
    var isOver = false
  }

  /// Written by the run loop's thread alone.
  private final class State: Sendable {
    /// When the activity began; in the lowest bit, whether there is something to do in it.
    let activity = Atomic<UInt64>(0)
    /// The last long one that has ended.
    let longBegan = Atomic<UInt64>(0)
    let longEnded = Atomic<UInt64>(0)
    let tid = Atomic<UInt32>(0)
    /// How deep runs of the loop are nested.
    let depth = Atomic<Int>(0)

    private static let long: UInt64 = 20_000_000

    func enter(_ activity: CFRunLoopActivity) {
      let now = hck_monotonic_ns()
      let before = self.activity.load(ordering: .relaxed)
      if before & 1 != 0, now &- before > Self.long {
        longBegan.store(before & ~1, ordering: .relaxed)
        longEnded.store(now, ordering: .releasing)
      }
      var isBusy = true
      switch activity {
      case .beforeWaiting: isBusy = false
      case .entry: depth.add(1, ordering: .relaxed)
      case .exit:
        let left = max(0, depth.load(ordering: .relaxed) - 1)
        depth.store(left, ordering: .relaxed)
        // A run within a run has ended: what called it goes on.
        isBusy = left > 0
      default:
        // It ran before it was watched.
        if depth.load(ordering: .relaxed) == 0 { depth.store(1, ordering: .relaxed) }
      }
      self.activity.store(now & ~1 | (isBusy ? 1 : 0), ordering: .releasing)
      if tid.load(ordering: .relaxed) == 0 { tid.store(hck_gettid(), ordering: .relaxed) }
    }
  }

  init(name: String) { self.name = name }

  var subject: HangSamples.Subject {
    let tid = state.tid.load(ordering: .relaxed)
    return HangSamples.Subject(
      name: name, thread: tid == 0 ? nil : KernelThreadID(Int32(bitPattern: tid)))
  }

  /// From any thread.
  func install(in loop: CFRunLoop) {
    var context = CFRunLoopObserverContext(
      version: 0, info: Unmanaged.passRetained(state).toOpaque(), retain: nil,
      release: { if let info = $0 { Unmanaged<State>.fromOpaque(info).release() } },
      copyDescription: nil)
    // Last of all, so that what other observers do before a wait counts as work.
    let observer = CFRunLoopObserverCreate(
      nil, CFRunLoopActivity.allActivities.rawValue, true, CFIndex.max,
      { _, activity, info in
        guard let info else { return }
        Unmanaged<State>.fromOpaque(info)._withUnsafeGuaranteedRef { $0.enter(activity) }
      }, &context)
    guard let observer else { return }
    let isWanted = installed.withLock { installed in
      guard !installed.isOver else { return false }
      installed.loop = loop
      installed.observer = observer
      return true
    }
    if isWanted { CFRunLoopAddObserver(loop, observer, kCFRunLoopCommonModes) }
  }

  func read(now: UInt64, process: OwnProcess) -> HangTracker.Reading {
    let activity = state.activity.load(ordering: .acquiring)
    let ended = state.longEnded.load(ordering: .acquiring)
    let began = state.longBegan.load(ordering: .relaxed)
    return HangTracker.Reading(
      busySince: activity & 1 == 0 ? nil : activity & ~1,
      lastLong: began < ended ? began..<ended : nil)
  }

  /// It may wait in a mode that is none of the common ones, which no observer of ours is told of.
  var isIdleAfterAll: Bool {
    installed.withLock { $0.loop.map { CFRunLoopIsWaiting($0) } ?? false }
  }

  func end() {
    let observer = installed.withLock { installed in
      defer { installed = Installed(isOver: true) }
      return installed.observer
    }
    if let observer { CFRunLoopObserverInvalidate(observer) }
  }
}
