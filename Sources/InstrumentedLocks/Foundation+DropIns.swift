#if Detection
  internal import Dispatch
  public import Foundation

  // Foundation's properties whose types a typealias changes, once more with the drop-in's type. In
  // extensions of the classes themselves they would hide the originals from this module.

  /// What `OperationQueue` alone conforms to; of no use to programs.
  public protocol _OperationQueueProperties: AnyObject {}
  extension Foundation.OperationQueue: _OperationQueueProperties {}

  extension _OperationQueueProperties where Self: Foundation.OperationQueue {
    /// The queue that operations run on; equals the property of the same name with the original
    /// queue.
    @_disfavoredOverload public var underlyingQueue: InstrumentedQueue? {
      get {
        let original: Dispatch.DispatchQueue? = (self as Foundation.OperationQueue).underlyingQueue
        return original.map(InstrumentedQueue.wrapping)
      }
      set {
        let original: Dispatch.DispatchQueue? = newValue?.original
        (self as Foundation.OperationQueue).underlyingQueue = original
      }
    }

    /// Those operations that are drop-ins; the property of the same name has all.
    @_disfavoredOverload public var operations: [InstrumentedOperation] {
      let all: [Foundation.Operation] = (self as Foundation.OperationQueue).operations
      return all.compactMap { $0 as? InstrumentedOperation }
    }
  }

  /// What `Operation` alone conforms to; of no use to programs.
  public protocol _OperationProperties: AnyObject {}
  extension Foundation.Operation: _OperationProperties {}

  extension _OperationProperties where Self: Foundation.Operation {
    /// Those dependencies that are drop-ins; the property of the same name has all.
    @_disfavoredOverload public var dependencies: [InstrumentedOperation] {
      let all: [Foundation.Operation] = (self as Foundation.Operation).dependencies
      return all.compactMap { $0 as? InstrumentedOperation }
    }
  }
#endif
