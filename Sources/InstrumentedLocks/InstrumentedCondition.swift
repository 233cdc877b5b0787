#if Detection
  internal import CHangcheck
  public import Foundation
  internal import Recorder

  /// An `NSCondition` whose deadlocks `Watchdog` explains.
  ///
  /// Spelled like `NSCondition`, so that `typealias NSCondition = InstrumentedCondition` swaps it
  /// throughout a module; over the same kinds of mutex and condition variable. Its mutex is held
  /// and waited for like any lock, and given back while a thread waits for the condition. Who
  /// signals is counted by call site.
  ///
  /// Costs at most half as much again as the original, and some 80 bytes more a condition. Cannot
  /// see who would have signalled: a wait has no owner.
  open class InstrumentedCondition: NSObject, NSLocking, @unchecked Sendable {
    private final let core: ConditionCore
    private final var isNamed = false

    /// A condition that reports call `name` or, without one, by the place where it was made.
    public init(name: String?, fileID: StaticString = #fileID, line: UInt = #line) {
      core = ConditionCore(fileID: fileID, line: line)
      self.name = name
      super.init()
      tellName()
    }

    /// A condition without a name, as `NSCondition()` makes it.
    public init(fileID: StaticString = #fileID, line: UInt = #line) {
      core = ConditionCore(fileID: fileID, line: line)
      super.init()
    }

    /// What subclasses override and a reference to `init` without arguments means.
    @_disfavoredOverload public override init() {
      core = ConditionCore(fileID: #fileID, line: 0)
      super.init()
    }

    deinit { core.end(wasNamed: isNamed, hck_frame()) }

    /// What reports call the condition and its mutex; equals `NSCondition.name`. 55 bytes of it are
    /// kept.
    open var name: String? {
      didSet { tellName() }
    }

    private final func tellName() {
      if name == nil && !isNamed { return }
      isNamed = name != nil
      core.setName(name)
    }

    /// Takes the mutex, waiting for it as long as it takes; equals `NSCondition.lock()`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func lock() { core.mutex.lock(hck_frame()) }

    /// Gives the mutex back; equals `NSCondition.unlock()`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func unlock() { core.mutex.unlock(hck_frame()) }

    /// Gives the mutex back until signalled; equals `NSCondition.wait()`, which may also return
    /// without a signal.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func wait() { _ = core.wait(until: nil, hck_frame()) }

    /// Gives the mutex back until signalled, or gives up at `limit`; equals
    /// `NSCondition.wait(until:)`, down to its trap at dates beyond 2262.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func wait(until limit: Date) -> Bool {
      guard var time = LockCore.time(until: limit) else { return false }
      return core.wait(until: &time, hck_frame()) == 0
    }

    /// Wakes one thread that waits; equals `NSCondition.signal()`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func signal() { core.signal(hck_frame()) }

    /// Wakes all threads that wait; equals `NSCondition.broadcast()`.
    @inline(never) open func broadcast() { core.broadcast(hck_frame()) }
  }

  extension InstrumentedCondition {
    /// Runs `body` with the mutex held; equals `NSLocking.withLock(_:)`.
    @inlinable @inline(__always)
    public final func withLock<R, E>(_ body: () throws(E) -> R) throws(E) -> R {
      lock()
      defer { unlock() }
      return try body()
    }
  }
#endif
