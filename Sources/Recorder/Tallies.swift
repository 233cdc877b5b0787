// Permits and enters: what a thread did to resources that have no owner in the sense of a lock.
public import CHangcheck

/// Counts one operation on a resource, by call site; the site is kept the first time. Touches memory
/// of the calling thread alone while the site is known. Async-signal-safe.
@inlinable @inline(__always)
public func tally(
  _ slot: Slot, _ word: ResourceWord, _ operation: hck_operation, _ frame: UnsafeRawPointer
) {
}
