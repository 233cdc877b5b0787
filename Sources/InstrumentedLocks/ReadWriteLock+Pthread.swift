// swift-format-ignore-file: AlwaysUseLowerCamelCase

// pthread's functions for the drop-in, so that a module that calls them may be swapped as well. The
// attributes are not looked at.
public import Foundation

/// The drop-in where the original's address is asked for: `&lock`, or memory that holds one.
public typealias ReadWriteLockPointer = UnsafeMutablePointer<InstrumentedReadWriteLock>

/// Makes a lock that nobody holds of one that was not used yet.
@discardableResult @inlinable public func pthread_rwlock_init(
  _ lock: ReadWriteLockPointer, _ attributes: UnsafePointer<pthread_rwlockattr_t>?
) -> Int32 { 0 }

/// Ends the use of a lock, which goes with its last reference.
@discardableResult @inlinable public func pthread_rwlock_destroy(_ lock: ReadWriteLockPointer)
  -> Int32
{ 0 }

/// Takes the lock for reading; 0 or an errno.
@discardableResult @inlinable @inline(__always)
public func pthread_rwlock_rdlock(_ lock: ReadWriteLockPointer) -> Int32 {
  lock.pointee.readLock()
}

/// Takes the lock for writing; 0 or an errno.
@discardableResult @inlinable @inline(__always)
public func pthread_rwlock_wrlock(_ lock: ReadWriteLockPointer) -> Int32 {
  lock.pointee.writeLock()
}

/// Takes the lock for reading if it can be had at once; 0 or EBUSY.
@discardableResult @inlinable @inline(__always)
public func pthread_rwlock_tryrdlock(_ lock: ReadWriteLockPointer) -> Int32 {
  lock.pointee.tryReadLock() ? 0 : EBUSY
}

/// Takes the lock for writing if it is free; 0 or EBUSY.
@discardableResult @inlinable @inline(__always)
public func pthread_rwlock_trywrlock(_ lock: ReadWriteLockPointer) -> Int32 {
  lock.pointee.tryWriteLock() ? 0 : EBUSY
}

/// Gives the lock back; 0 or an errno.
@discardableResult @inlinable @inline(__always)
public func pthread_rwlock_unlock(_ lock: ReadWriteLockPointer) -> Int32 {
  lock.pointee.unlock()
}
