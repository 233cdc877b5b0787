#if Detection
  internal import Foundation

  /// A drop-in for a queue that somebody else made: hands everything on to it and is equal to it.
  /// Foundation's `operations` and `operationCount` cannot be handed on.
  final class OtherOperationQueue: InstrumentedOperationQueue, @unchecked Sendable {
    let original: Foundation.OperationQueue

    init(_ original: Foundation.OperationQueue) {
      self.original = original
      super.init(name: nil)
    }

    override func addOperation(_ operation: Foundation.Operation) {
      RaceOrder.release(RaceOrder.key(operation))
      original.addOperation(operation)
    }
    override func addOperation(_ block: @escaping @Sendable () -> Void) {
      original.addOperation(Self.ordered(block))
    }
    @available(*, noasync, message: "Use addBarrierBlock or a dependent Operation instead")
    override func addOperations(_ operations: [Foundation.Operation], waitUntilFinished wait: Bool)
    {
      for operation in operations { RaceOrder.release(RaceOrder.key(operation)) }
      original.addOperations(operations, waitUntilFinished: wait)
      if wait { RaceOrder.acquireAll() }
    }
    override func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) {
      original.addBarrierBlock(Self.ordered(barrier))
    }
    override func cancelAllOperations() { original.cancelAllOperations() }
    @available(*, noasync, message: "Use completionBlock or a dependent Operation instead")
    override func waitUntilAllOperationsAreFinished() {
      original.waitUntilAllOperationsAreFinished()
      RaceOrder.acquireAll()
    }

    override var name: String? {
      get { original.name }
      set { original.name = newValue }
    }
    override var qualityOfService: QualityOfService {
      get { original.qualityOfService }
      set { original.qualityOfService = newValue }
    }
    override var maxConcurrentOperationCount: Int {
      get { original.maxConcurrentOperationCount }
      set { original.maxConcurrentOperationCount = newValue }
    }
    override var isSuspended: Bool {
      get { original.isSuspended }
      set { original.isSuspended = newValue }
    }
    override var underlyingQueue: DispatchQueue? {
      get { original.underlyingQueue }
      set { original.underlyingQueue = newValue }
    }
    override var progress: Progress { original.progress }

    override func isEqual(_ object: Any?) -> Bool {
      if let other = object as? OtherOperationQueue { return other.original.isEqual(original) }
      return original.isEqual(object)
    }
    override var hash: Int { original.hash }
  }
#endif
