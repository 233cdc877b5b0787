internal import CHangcheck

/// An order between threads that no drop-in makes, said to the checks of `RaceChecked`: what comes
/// before a `release()` comes before what follows an `acquire()` that is made after it.
///
/// For an atomic flag, a lock-free list, a pipe: release before it is set or written, acquire after
/// it was seen. Any thread may call both. Costs two loads while there is no checked value, some fifty
/// nanoseconds after; nothing with detection compiled out. Cannot see whether what is said is true.
public final class HappensBefore: Sendable {
  /// An order that nothing was released to yet.
  public init() {}

  #if Detection
    deinit { RaceOrder.ends(RaceOrder.key(self)) }

    /// What this thread has done comes before what follows a later `acquire()`.
    @inline(never) public func release() { RaceOrder.release(RaceOrder.key(self)) }

    /// What was done before each earlier `release()` comes before what this thread does next.
    @inline(never) public func acquire() { RaceOrder.acquire(RaceOrder.key(self)) }
  #else
    /// Says nothing.
    public func release() {}

    /// Says nothing.
    public func acquire() {}
  #endif
}
