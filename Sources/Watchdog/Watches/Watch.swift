internal import Glibc
internal import ProcessInspector
internal import Synchronization

extension Watchdog {
  /// Something that is watched for progress, until `stop`. It need not be kept. Safe to use from any
  /// thread.
  public final class Watch: Sendable {
    let probe: any Probe
    private let isOver = Atomic<Bool>(false)
    private let pid = getpid()

    init(_ probe: any Probe) { self.probe = probe }

    /// As reports call it.
    public var name: String { probe.subject.name }

    /// A child that was forked watches nothing of its parent's.
    var isStopped: Bool { isOver.load(ordering: .acquiring) || pid != getpid() }

    /// Ends the watch. A hang that has been told is told to be over, within a tenth of a second.
    public func stop() {
      if !isOver.exchange(true, ordering: .acquiringAndReleasing) { probe.end() }
    }
  }
}

/// All watches of this process, from `watch` to `stop`; they outlast a stop of the watchdog.
final class WatchList: Sendable {
  private let watches = Mutex<[Watchdog.Watch]>([])

  func add(_ watch: Watchdog.Watch) { watches.withLock { $0.append(watch) } }

  /// Those that go on.
  func current() -> [Watchdog.Watch] {
    watches.withLock { list in
      list.removeAll(where: \.isStopped)
      return list
    }
  }
}
