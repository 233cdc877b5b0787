#if !Detection
  public import Dispatch
  public import Foundation

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedQueue = DispatchQueue

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedGroup = DispatchGroup

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedOperation = Operation

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedBlockOperation = BlockOperation

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedOperationQueue = OperationQueue

  extension DispatchQueue {
    /// The queue itself.
    public var original: DispatchQueue { self }

    /// The queue itself.
    public static func wrapping(_ original: DispatchQueue) -> DispatchQueue { original }
  }

  extension DispatchGroup {
    /// The group itself.
    public var original: DispatchGroup { self }

    /// A group; its name and where it was made are not kept.
    public convenience init(name: String?, fileID: StaticString = #fileID, line: UInt = #line) {
      self.init()
    }
  }

  extension Operation {
    /// An operation with a name; where it was made is not kept.
    public convenience init(name: String?, fileID: StaticString = #fileID, line: UInt = #line) {
      self.init()
      self.name = name
    }
  }

  extension OperationQueue {
    /// A queue with a name; where it was made is not kept.
    public convenience init(name: String?, fileID: StaticString = #fileID, line: UInt = #line) {
      self.init()
      if let name { self.name = name }
    }
  }
#endif
