internal import CHangcheck
internal import Synchronization

/// An unfair lock whose deadlocks `Watchdog` explains: `OSAllocatedUnfairLock` as Apple's platforms
/// spell it, for programs that are written for those.
///
/// There is none on Linux; this is an `InstrumentedMutex` that may be copied, each copy the same
/// lock. Recursion and unlocking by another thread end the program, as with the original. Costs and
/// sees what `InstrumentedMutex` does. With detection compiled out it is a `Mutex` in a box, and
/// `precondition(_:)` tells only a free lock from one that is held.
public struct InstrumentedUnfairLock<State>: @unchecked Sendable {
  // The mutex guards the state.
  private final class Box: @unchecked Sendable {
    let mutex: InstrumentedMutex<Void>
    var state: State

    init(_ state: State, _ name: String?, _ fileID: StaticString, _ line: UInt) {
      mutex = InstrumentedMutex((), name: name, fileID: fileID, line: line)
      self.state = state
    }
  }
  private let box: Box

  /// Who a thread may be to a lock.
  public enum Ownership: Hashable, Sendable {
    /// The calling thread holds it.
    case owner
    /// The calling thread does not hold it.
    case notOwner
  }

  /// A lock around a value; equals `OSAllocatedUnfairLock.init(uncheckedState:)`.
  public init(
    uncheckedState initialState: State, name: String? = nil, fileID: StaticString = #fileID,
    line: UInt = #line
  ) {
    box = Box(initialState, name, fileID, line)
  }

  /// Runs `body` with the lock held; equals `withLockUnchecked(_:)` of the original.
  @inline(never)
  public func withLockUnchecked<R>(_ body: (inout State) throws -> R) rethrows -> R {
    box.mutex._lock(from: hck_frame())
    defer { box.mutex._unsafeUnlock() }
    return try body(&box.state)
  }

  /// Runs `body` with the lock held; equals `withLock(_:)` of the original.
  @inline(never)
  public func withLock<R: Sendable>(_ body: @Sendable (inout State) throws -> R) rethrows -> R {
    box.mutex._lock(from: hck_frame())
    defer { box.mutex._unsafeUnlock() }
    return try body(&box.state)
  }

  /// Runs `body` if the lock is free; equals `withLockIfAvailableUnchecked(_:)` of the original.
  @inline(never)
  public func withLockIfAvailableUnchecked<R>(_ body: (inout State) throws -> R) rethrows -> R? {
    guard box.mutex._tryLock(from: hck_frame()) else { return nil }
    defer { box.mutex._unsafeUnlock() }
    return try body(&box.state)
  }

  /// Runs `body` if the lock is free; equals `withLockIfAvailable(_:)` of the original.
  @inline(never)
  public func withLockIfAvailable<R: Sendable>(
    _ body: @Sendable (inout State) throws -> R
  ) rethrows -> R? {
    guard box.mutex._tryLock(from: hck_frame()) else { return nil }
    defer { box.mutex._unsafeUnlock() }
    return try body(&box.state)
  }

  /// Traps when the calling thread is not this to the lock; equals `precondition(_:)` of the
  /// original.
  public func precondition(_ condition: Ownership) {
    Swift.precondition(
      box.mutex._mayBeHeldHere(condition == .owner),
      condition == .owner ? "the lock is not held here" : "the lock is held here")
  }
}

extension InstrumentedUnfairLock where State: Sendable {
  /// A lock around a value; equals `OSAllocatedUnfairLock.init(initialState:)`.
  public init(
    initialState: State, name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line
  ) {
    box = Box(initialState, name, fileID, line)
  }
}

extension InstrumentedUnfairLock where State == () {
  /// A lock around nothing; equals `OSAllocatedUnfairLock.init()`.
  public init(name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line) {
    box = Box((), name, fileID, line)
  }

  /// Runs `body` with the lock held; equals `withLockUnchecked(_:)` of the original.
  @inline(never)
  public func withLockUnchecked<R>(_ body: () throws -> R) rethrows -> R {
    box.mutex._lock(from: hck_frame())
    defer { box.mutex._unsafeUnlock() }
    return try body()
  }

  /// Runs `body` with the lock held; equals `withLock(_:)` of the original.
  @inline(never)
  public func withLock<R: Sendable>(_ body: @Sendable () throws -> R) rethrows -> R {
    box.mutex._lock(from: hck_frame())
    defer { box.mutex._unsafeUnlock() }
    return try body()
  }

  /// Runs `body` if the lock is free; equals `withLockIfAvailable(_:)` of the original.
  @inline(never)
  public func withLockIfAvailable<R: Sendable>(_ body: @Sendable () throws -> R) rethrows -> R? {
    guard box.mutex._tryLock(from: hck_frame()) else { return nil }
    defer { box.mutex._unsafeUnlock() }
    return try body()
  }

  /// Takes the lock; equals `lock()` of the original.
  @available(*, noasync, message: "Use async-safe scoped locking instead")
  @inline(never)
  public func lock() { box.mutex._lock(from: hck_frame()) }

  /// Gives the lock back; equals `unlock()` of the original.
  @available(*, noasync, message: "Use async-safe scoped locking instead")
  @inline(never)
  public func unlock() { box.mutex._unsafeUnlock() }

  /// Takes the lock if it is free; equals `lockIfAvailable()` of the original.
  @available(*, noasync, message: "Use async-safe scoped locking instead")
  @inline(never)
  public func lockIfAvailable() -> Bool { box.mutex._tryLock(from: hck_frame()) }
}
