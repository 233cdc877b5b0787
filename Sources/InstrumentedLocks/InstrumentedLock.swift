#if Detection
  internal import CHangcheck
  public import Foundation
  internal import Recorder

  /// An `NSLock` whose deadlocks `Watchdog` explains.
  ///
  /// Spelled like `NSLock`, so that `typealias NSLock = InstrumentedLock` swaps it throughout a
  /// module; over the same kind of mutex, so that whatever works or hangs with one does with the
  /// other.
  ///
  /// Costs at most half as much again as the original, and some 80 bytes more a lock. Cannot see
  /// who waits for or holds a lock that is no drop-in: a cycle through a plain `NSLock`, a queue or
  /// a semaphore is not found.
  open class InstrumentedLock: NSObject, NSLocking, @unchecked Sendable {
    private final let core: LockCore
    private final var isNamed = false

    /// A lock that reports call `name` or, without one, by the place where it was made.
    public init(name: String?, fileID: StaticString = #fileID, line: UInt = #line) {
      core = LockCore(isRecursive: false, fileID: fileID, line: line)
      self.name = name
      super.init()
      tellName()
    }

    /// A lock without a name, as `NSLock()` makes it.
    public init(fileID: StaticString = #fileID, line: UInt = #line) {
      core = LockCore(isRecursive: false, fileID: fileID, line: line)
      super.init()
    }

    /// What subclasses override and a reference to `init` without arguments means.
    @_disfavoredOverload public override init() {
      core = LockCore(isRecursive: false, fileID: #fileID, line: 0)
      super.init()
    }

    deinit { core.end(wasNamed: isNamed, hck_frame()) }

    /// What reports call the lock; equals `NSLock.name`. 55 bytes of it are kept.
    open var name: String? {
      didSet { tellName() }
    }

    private final func tellName() {
      if name == nil && !isNamed { return }
      isNamed = name != nil
      core.setName(name)
    }

    /// Takes the lock, waiting for it as long as it takes; equals `NSLock.lock()`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func lock() { RecordedMutex(pointer: core.mutex).lock(hck_frame()) }

    /// Takes the lock if it is free; equals `NSLock.try()`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func `try`() -> Bool {
      RecordedMutex(pointer: core.mutex).tryLock(hck_frame())
    }

    /// Takes the lock, or gives up at `limit`; equals `NSLock.lock(before:)`, down to its trap at
    /// dates beyond 2262. Such a wait ends by itself and is no part of a deadlock.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func lock(before limit: Date) -> Bool {
      let frame = hck_frame()
      let mutex = RecordedMutex(pointer: core.mutex)
      if mutex.tryLock(isAll: false, frame) { return true }
      guard var time = LockCore.time(until: limit) else { return mutex.gaveUp(frame) }
      return mutex.lock(until: &time, frame)
    }

    /// Gives the lock back; equals `NSLock.unlock()`, also where another thread took it.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inline(never) open func unlock() { RecordedMutex(pointer: core.mutex).unlock(hck_frame()) }
  }

  extension InstrumentedLock {
    /// Runs `body` with the lock held; equals `NSLocking.withLock(_:)`.
    @inlinable @inline(__always)
    public final func withLock<R, E>(_ body: () throws(E) -> R) throws(E) -> R {
      lock()
      defer { unlock() }
      return try body()
    }
  }
#endif
