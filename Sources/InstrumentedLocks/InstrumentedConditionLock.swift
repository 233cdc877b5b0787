#if Detection
  internal import CHangcheck
  public import Foundation
  internal import Recorder

  /// An `NSConditionLock` whose deadlocks `Watchdog` explains.
  ///
  /// Spelled like `NSConditionLock`, so that `typealias NSConditionLock =
  /// InstrumentedConditionLock` swaps it throughout a module. The lock itself is a mutex here,
  /// which has an owner; the original's is a flag. Whoever wants another condition than there is
  /// waits on a condition variable.
  ///
  /// Unlike the original on Linux, `lock()` and `lock(whenCondition:)` wait when they have to: that
  /// one converts `Date.distantFuture` to nanoseconds and traps. Costs less than the original, and
  /// some 80 bytes more a lock. Cannot see who would have set the condition that is waited for.
  open class InstrumentedConditionLock: NSObject, NSLocking, @unchecked Sendable {
    private final let core: ConditionLockCore
    private final var isNamed = false

    /// A lock that reports call `name` or, without one, by the place where it was made.
    public init(
      condition: Int, name: String?, fileID: StaticString = #fileID, line: UInt = #line
    ) {
      core = ConditionLockCore(condition, fileID: fileID, line: line)
      self.name = name
      super.init()
      tellName()
    }

    /// A lock without a name; equals `NSConditionLock(condition:)`.
    public init(condition: Int, fileID: StaticString = #fileID, line: UInt = #line) {
      core = ConditionLockCore(condition, fileID: fileID, line: line)
      super.init()
    }

    /// What subclasses override and a reference to `init(condition:)` means.
    @_disfavoredOverload public init(condition: Int) {
      core = ConditionLockCore(condition, fileID: #fileID, line: 0)
      super.init()
    }

    /// A lock whose condition is 0, as `NSConditionLock()` makes it.
    public init(fileID: StaticString = #fileID, line: UInt = #line) {
      core = ConditionLockCore(0, fileID: fileID, line: line)
      super.init()
    }

    /// What subclasses override and a reference to `init` without arguments means.
    @_disfavoredOverload public override init() {
      core = ConditionLockCore(0, fileID: #fileID, line: 0)
      super.init()
    }

    deinit { core.end(wasNamed: isNamed, hck_frame()) }

    /// What reports call the lock; equals `NSConditionLock.name`. 55 bytes of it are kept.
    open var name: String? {
      didSet { tellName() }
    }

    private final func tellName() {
      if name == nil && !isNamed { return }
      isNamed = name != nil
      core.setName(name)
    }

    /// The present condition; equals `NSConditionLock.condition`.
    open var condition: Int { core.value }

    /// Takes the lock whatever its condition; equals `NSConditionLock.lock()`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func lock() { core.lock.lock(hck_frame()) }

    /// Gives the lock back; equals `NSConditionLock.unlock()`, also where another thread took it.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func unlock() { core.unlock(setting: nil, hck_frame()) }

    /// Takes the lock once its condition is this; equals `NSConditionLock.lock(whenCondition:)`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func lock(whenCondition condition: Int) {
      _ = core.lock(when: condition, until: nil, hck_frame())
    }

    /// Takes the lock if it is free; equals `NSConditionLock.try()`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func `try`() -> Bool { core.lock.tryLock(hck_frame()) }

    /// Takes the lock if it is free and its condition is this; equals
    /// `NSConditionLock.tryLock(whenCondition:)`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func tryLock(whenCondition condition: Int) -> Bool {
      core.tryLock(when: condition, hck_frame())
    }

    /// Sets the condition and gives the lock back; equals `NSConditionLock.unlock(withCondition:)`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func unlock(withCondition condition: Int) {
      core.unlock(setting: condition, hck_frame())
    }

    /// Takes the lock, or gives up at `limit`; equals `NSConditionLock.lock(before:)`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func lock(before limit: Date) -> Bool {
      let frame = hck_frame()
      if core.lock.tryLock(isAll: false, frame) { return true }
      guard var time = LockCore.time(until: limit) else { return core.lock.gaveUp(frame) }
      return core.lock.lock(until: &time, frame)
    }

    /// Takes the lock once its condition is this, or gives up at `limit`; equals
    /// `NSConditionLock.lock(whenCondition:before:)`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func lock(whenCondition condition: Int, before limit: Date) -> Bool {
      let frame = hck_frame()
      if core.tryLock(when: condition, frame) { return true }
      guard var time = LockCore.time(until: limit) else { return false }
      return core.lock(when: condition, until: &time, frame)
    }
  }

  extension InstrumentedConditionLock {
    /// Runs `body` with the lock held; equals `NSLocking.withLock(_:)`.
    @inlinable @inline(__always)
    public final func withLock<R, E>(_ body: () throws(E) -> R) throws(E) -> R {
      lock()
      defer { unlock() }
      return try body()
    }
  }
#endif
