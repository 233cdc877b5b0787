#if !Detection
  public import Foundation

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedLock = NSLock

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedRecursiveLock = NSRecursiveLock

  extension NSLock {
    /// A lock with a name; where it was made is not kept.
    public convenience init(name: String?, fileID: StaticString = #fileID, line: UInt = #line) {
      self.init()
      self.name = name
    }
  }

  extension NSRecursiveLock {
    /// A lock with a name; where it was made is not kept.
    public convenience init(name: String?, fileID: StaticString = #fileID, line: UInt = #line) {
      self.init()
      self.name = name
    }
  }
#endif
