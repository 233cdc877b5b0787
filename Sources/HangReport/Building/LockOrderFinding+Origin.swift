extension LockOrderFinding {
  /// Whether some thread of the cycle asks for its lock in code that is not the system's own: nobody
  /// who reads the report can mend a cycle inside of the Swift runtime or of Foundation.
  public static func isProgrammed(_ steps: [Step]) -> Bool {
    var hasInner = false
    for step in steps {
      let user = step.asks.firstIndex { !$0.runtime }
      if user == nil, step.asks.contains(where: isInner) {
        hasInner = true
      } else if step.asks[..<(user ?? step.asks.endIndex)].allSatisfy(isWrapper) {
        if user != nil { return true }
      } else {
        hasInner = true
      }
    }
    // Where the callers of a wrapper were not kept they may be anybody.
    return !hasInner
  }

  /// Code of the language's runtime, which has locks of its own.
  private static func isInner(_ frame: Frame) -> Bool {
    ["libswiftCore.so", "libswift_Concurrency.so", "libdispatch.so"].contains {
      frame.image.hasSuffix($0)
    }
  }

  /// A function that takes the lock on behalf of its caller.
  private static func isWrapper(_ frame: Frame) -> Bool {
    guard let symbol = frame.symbol else { return true }
    return wrappers.contains { symbol.contains($0) }
  }

  private static let wrappers = [
    "Lock", "Condition", "Mutex", "DispatchQueue", "DispatchSemaphore", "dispatch_", "pthread_",
    "mtx_", "once", "unsafeMutableAddressor", "thunk", "partial apply", "withLock",
  ]
}
