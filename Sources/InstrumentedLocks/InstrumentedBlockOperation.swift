#if Detection
  internal import Foundation
  internal import Synchronization

  /// A `BlockOperation` whose waits and circles of dependencies `Watchdog` explains.
  ///
  /// Spelled like `BlockOperation`, so that `typealias BlockOperation = InstrumentedBlockOperation`
  /// swaps it throughout a module. It is an `InstrumentedOperation` and no `BlockOperation`, whose
  /// behaviour it repeats; it costs what an `InstrumentedOperation` costs, and cannot see what that
  /// cannot.
  open class InstrumentedBlockOperation: InstrumentedOperation, @unchecked Sendable {
    private final var blocks: [@Sendable () -> Void] = []
    private final let blocksLock = Foundation.NSLock()

    /// An operation without blocks that reports call `name`.
    public override init(name: String?, fileID: StaticString = #fileID, line: UInt = #line) {
      super.init(name: name, fileID: fileID, line: line)
    }

    /// An operation without blocks, as `BlockOperation()` makes it.
    public override init(fileID: StaticString = #fileID, line: UInt = #line) {
      super.init(fileID: fileID, line: line)
    }

    /// What subclasses override and a reference to `init` without arguments means.
    @_disfavoredOverload public override init() { super.init() }

    /// An operation that runs `block`; equals `BlockOperation.init(block:)`.
    public convenience init(
      block: @escaping @Sendable () -> Void, fileID: StaticString = #fileID, line: UInt = #line
    ) {
      self.init(fileID: fileID, line: line)
      blocks = [block]
    }

    /// What a reference to `init(block:)` means.
    @_disfavoredOverload public convenience init(block: @escaping @Sendable () -> Void) {
      self.init()
      blocks = [block]
    }

    /// Adds a block, which runs after those that are there; equals
    /// `BlockOperation.addExecutionBlock(_:)`, down to its trap once the operation runs.
    open func addExecutionBlock(_ block: @escaping @Sendable () -> Void) {
      if isExecuting || isFinished {
        fatalError(
          "blocks cannot be added after the operation has started executing or finished")
      }
      blocksLock.lock()
      defer { blocksLock.unlock() }
      blocks.append(block)
    }

    /// The blocks, in the order that they run in; equals `BlockOperation.executionBlocks`.
    open var executionBlocks: [@Sendable () -> Void] {
      blocksLock.lock()
      defer { blocksLock.unlock() }
      return blocks
    }

    /// Runs the blocks, one after the other; equals `BlockOperation.main()`.
    open override func main() {
      for block in executionBlocks { block() }
      RaceOrder.release(RaceOrder.endKey(self))
      isDone.store(true, ordering: .releasing)
    }

    // A subclass may do more.
    private final let isDone = Atomic(false)
    override var tellsItsEnd: Bool {
      type(of: self) == InstrumentedBlockOperation.self && isDone.load(ordering: .acquiring)
    }
  }
#endif
