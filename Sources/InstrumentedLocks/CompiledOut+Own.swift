#if !Detection
  public import Foundation

  /// A `pthread_rwlock_t` as an object: with the package's trait `Detection` off, nothing more.
  public final class InstrumentedReadWriteLock: @unchecked Sendable {
    @usableFromInline let lock: UnsafeMutablePointer<pthread_rwlock_t>
    /// Kept for whoever asks.
    public var name: String?

    /// A lock that nobody holds; where it was made is not kept.
    public init(name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line) {
      lock = .allocate(capacity: 1)
      lock.initialize(to: pthread_rwlock_t())
      pthread_rwlock_init(lock, nil)
      self.name = name
    }

    deinit {
      pthread_rwlock_destroy(lock)
      lock.deinitialize(count: 1)
      lock.deallocate()
    }

    /// Takes the lock for reading; equals `pthread_rwlock_rdlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @discardableResult @inlinable public func readLock() -> Int32 { pthread_rwlock_rdlock(lock) }

    /// Takes the lock for writing; equals `pthread_rwlock_wrlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @discardableResult @inlinable public func writeLock() -> Int32 { pthread_rwlock_wrlock(lock) }

    /// Takes the lock for reading if it can be had at once; equals `pthread_rwlock_tryrdlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inlinable public func tryReadLock() -> Bool { pthread_rwlock_tryrdlock(lock) == 0 }

    /// Takes the lock for writing if it is free; equals `pthread_rwlock_trywrlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @inlinable public func tryWriteLock() -> Bool { pthread_rwlock_trywrlock(lock) == 0 }

    /// Takes the lock for reading, or gives up at `limit`; equals `pthread_rwlock_timedrdlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    public func readLock(before limit: Date) -> Bool {
      guard var time = Self.time(until: limit) else { return pthread_rwlock_tryrdlock(lock) == 0 }
      return pthread_rwlock_timedrdlock(lock, &time) == 0
    }

    /// Takes the lock for writing, or gives up at `limit`; equals `pthread_rwlock_timedwrlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    public func writeLock(before limit: Date) -> Bool {
      guard var time = Self.time(until: limit) else { return pthread_rwlock_trywrlock(lock) == 0 }
      return pthread_rwlock_timedwrlock(lock, &time) == 0
    }

    /// Gives the lock back, however it was taken; equals `pthread_rwlock_unlock`.
    @available(*, noasync, message: "Use async-safe scoped locking instead")
    @discardableResult @inlinable public func unlock() -> Int32 { pthread_rwlock_unlock(lock) }

    private static func time(until limit: Date) -> timespec? {
      guard limit.timeIntervalSinceNow > 0 else { return nil }
      let nanoseconds = Int64(limit.timeIntervalSince1970 * 1e9)
      return timespec(
        tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    }
  }

  /// The recursive lock of an object that is synchronized on.
  final class Monitor: @unchecked Sendable {
    private let lock = NSRecursiveLock()

    func beginUse(_ fileID: StaticString, _ line: UInt) {}
    func lock(_ frame: UnsafeRawPointer) { lock.lock() }
    func unlock(_ frame: UnsafeRawPointer) { lock.unlock() }
    func identityChanged(_ frame: UnsafeRawPointer) {}
  }
#endif
