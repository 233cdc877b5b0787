#if !Detection
  public import Dispatch
  public import Foundation
  public import Synchronization

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedCondition = NSCondition

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedConditionLock = NSConditionLock

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedSemaphore = DispatchSemaphore

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedMutex = Mutex

  extension NSCondition {
    /// A condition with a name; where it was made is not kept.
    public convenience init(name: String?, fileID: StaticString = #fileID, line: UInt = #line) {
      self.init()
      self.name = name
    }
  }

  extension NSConditionLock {
    /// A lock with a name; where it was made is not kept.
    public convenience init(
      condition: Int, name: String?, fileID: StaticString = #fileID, line: UInt = #line
    ) {
      self.init(condition: condition)
      self.name = name
    }
  }

  extension DispatchSemaphore {
    /// A semaphore; neither its name nor where it was made is kept.
    public convenience init(
      value: Int, name: String?, fileID: StaticString = #fileID, line: UInt = #line
    ) {
      self.init(value: value)
    }

    /// The semaphore itself.
    public var dispatchSemaphore: DispatchSemaphore { self }
  }

  extension Mutex where Value: ~Copyable {
    /// A mutex; neither its name nor where it was made is kept.
    @inlinable
    public init(
      _ initialValue: consuming sending Value, name: String?, fileID: StaticString = #fileID,
      line: UInt = #line
    ) {
      self.init(initialValue)
    }
  }

  extension Mutex where Value == () {
    @inline(__always) borrowing func _lock(from frame: UnsafeRawPointer) { _unsafeLock() }

    @inline(__always) borrowing func _tryLock(from frame: UnsafeRawPointer) -> Bool {
      _unsafeTryLock()
    }

    /// A free lock is nobody's; more the original does not say.
    borrowing func _mayBeHeldHere(_ isHeld: Bool) -> Bool {
      guard isHeld, _unsafeTryLock() else { return true }
      _unsafeUnlock()
      return false
    }
  }
#endif
