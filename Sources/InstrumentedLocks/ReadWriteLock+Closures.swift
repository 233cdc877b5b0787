extension InstrumentedReadWriteLock {
  /// Runs `body` with the lock held for reading.
  @inlinable @inline(__always)
  public func withReadLock<R, E>(_ body: () throws(E) -> R) throws(E) -> R {
    readLock()
    defer { unlock() }
    return try body()
  }

  /// Runs `body` with the lock held for writing.
  @inlinable @inline(__always)
  public func withWriteLock<R, E>(_ body: () throws(E) -> R) throws(E) -> R {
    writeLock()
    defer { unlock() }
    return try body()
  }
}
