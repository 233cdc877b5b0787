#if Detection
  internal import CHangcheck
  internal import Foundation

  // What orders operations. A block's operation says itself when it is done; of others only the end
  // of `start()` is seen, by when those that depend on them may have begun, so that who comes after
  // them comes after all that was done so far.
  extension InstrumentedOperation {
    /// Runs `start`, which begins after what came before it was queued and after its dependencies.
    final func runInOrder(_ start: () -> Void) {
      guard RaceOrder.isOn else { return start() }
      guard hck_is_racing() != 0,
        let thread = hck_race_thread_get() ?? RaceThreads.enroll(isKnown: true)
      else {
        RaceOrder.acquire(RaceOrder.key(self))
        for operation in (self as Foundation.Operation).dependencies { Self.comeAfter(operation) }
        return start()
      }
      thread.pointee.depth += 1
      SyncClocks.acquire(RaceOrder.key(self), thread)
      for operation in (self as Foundation.Operation).dependencies { Self.comeAfter(operation) }
      if Self.isSerial(Foundation.OperationQueue.current) { RaceThreads.joinAll(thread) }
      start()
      if thread.pointee.depth > 0 { thread.pointee.depth -= 1 }
    }

    /// What the operation has done comes before what the thread does next.
    static func comeAfter(_ operation: Foundation.Operation) {
      guard RaceOrder.isOn else { return }
      if let operation = operation as? InstrumentedOperation, operation.tellsItsEnd {
        RaceOrder.acquire(RaceOrder.endKey(operation))
      } else {
        RaceOrder.acquireAll()
      }
    }

    private static func isSerial(_ queue: Foundation.OperationQueue?) -> Bool {
      guard let queue else { return false }
      return queue.maxConcurrentOperationCount == 1 || queue.underlyingQueue != nil
    }

    /// The same block, after the operation.
    final func afterwards(_ block: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
      { [weak self] in
        guard RaceOrder.isOn else { return block() }
        guard hck_is_racing() != 0,
          let thread = hck_race_thread_get() ?? RaceThreads.enroll(isKnown: true)
        else {
          if let self { Self.comeAfter(self) } else { RaceOrder.acquireAll() }
          return block()
        }
        thread.pointee.depth += 1
        if let self { Self.comeAfter(self) } else { RaceThreads.joinAll(thread) }
        block()
        if thread.pointee.depth > 0 { thread.pointee.depth -= 1 }
      }
    }
  }
#endif
