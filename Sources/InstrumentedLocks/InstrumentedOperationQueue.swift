#if Detection
  internal import CHangcheck
  public import Foundation
  internal import Recorder

  /// An `OperationQueue` whose waits `Watchdog` explains.
  ///
  /// Spelled like `OperationQueue`, so that `typealias OperationQueue = InstrumentedOperationQueue`
  /// swaps it throughout a module; it is one, and goes wherever one goes.
  ///
  /// Costs next to nothing beside what the original's calls cost. Cannot see who runs on it without
  /// being an `InstrumentedOperation`, and a circle of dependencies only when one of those is in it.
  open class InstrumentedOperationQueue: Foundation.OperationQueue, @unchecked Sendable {
    // Where it was made, found by its mark in the object's memory.
    private final var created: hck_creation
    private final var isNamed = false
    private final var hasOwnQuality = false
    private final var word: ResourceWord {
      resourceWord(Unmanaged.passUnretained(self).toOpaque(), HCK_OPERATION_QUEUE)
    }

    /// A queue that reports call `name` or, without one, by the place where it was made.
    public init(name: String?, fileID: StaticString = #fileID, line: UInt = #line) {
      InProcess.begin()
      created = hck_creation(fileID: fileID, line: line)
      super.init()
      if let name { self.name = name }
    }

    /// A queue without a name, as `OperationQueue()` makes it.
    public init(fileID: StaticString = #fileID, line: UInt = #line) {
      InProcess.begin()
      created = hck_creation(fileID: fileID, line: line)
      super.init()
    }

    /// What subclasses override and a reference to `init` without arguments means.
    @_disfavoredOverload public override init() {
      InProcess.begin()
      created = hck_creation(fileID: #fileID, line: 0)
      super.init()
    }

    deinit {
      created.mark = 0
      if isNamed { InProcess.name(word & HCK_ADDRESS_MASK, nil) }
    }

    /// What reports call the queue; equals `OperationQueue.name`. 55 bytes of it are kept.
    open override var name: String? {
      didSet {
        isNamed = true
        InProcess.name(word & HCK_ADDRESS_MASK, name)
      }
    }

    /// How urgent what it runs is; equals `OperationQueue.qualityOfService`.
    open override var qualityOfService: QualityOfService {
      didSet { hasOwnQuality = true }
    }

    /// Adds an operation; equals `OperationQueue.addOperation(_:)`.
    @inline(never) open override func addOperation(_ operation: Foundation.Operation) {
      let frame = hck_frame()
      RaceOrder.release(RaceOrder.key(operation))
      super.addOperation(operation)
      queued([operation], frame)
    }

    /// Adds an operation that runs `block`; equals `OperationQueue.addOperation(_:)` with a block.
    open override func addOperation(_ block: @escaping @Sendable () -> Void) {
      let operation = InstrumentedBlockOperation(block: block)
      if hasOwnQuality { operation.qualityOfService = qualityOfService }
      addOperation(operation)
    }

    /// Adds operations and, if `wait` says so, waits until they are finished; equals
    /// `OperationQueue.addOperations(_:waitUntilFinished:)`.
    @available(*, noasync, message: "Use addBarrierBlock or a dependent Operation instead")
    @inline(never) open override func addOperations(
      _ operations: [Foundation.Operation], waitUntilFinished wait: Bool
    ) {
      let frame = hck_frame()
      for operation in operations { RaceOrder.release(RaceOrder.key(operation)) }
      super.addOperations(operations, waitUntilFinished: false)
      queued(operations, frame)
      guard wait else { return }
      waiting(frame) { for operation in operations { operation.waitUntilFinished() } }
      RaceOrder.acquireAll()
    }

    /// Waits until the queue is empty; equals `OperationQueue.waitUntilAllOperationsAreFinished()`.
    @available(*, noasync, message: "Use completionBlock or a dependent Operation instead")
    @inline(never) open override func waitUntilAllOperationsAreFinished() {
      let frame = hck_frame()
      waiting(frame) { super.waitUntilAllOperationsAreFinished() }
      RaceOrder.acquireAll()
    }

    /// Adds a block that runs when all operations before it have finished, and before all after it;
    /// equals `OperationQueue.addBarrierBlock(_:)`.
    open override func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) {
      super.addBarrierBlock(Self.ordered(barrier))
    }

    /// A block that comes after all that was done so far, and before all that is done later.
    static func ordered(_ block: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
      guard RaceOrder.isOn else { return block }
      var told = RaceBlock(on: nil)
      (told.beginsUnseen, told.endsUnseen) = (true, true)
      return { [told] in told.run(block) }
    }

    private func queued(_ operations: [Foundation.Operation], _ frame: UnsafeRawPointer) {
      guard currentSlot() != nil else { return }
      for case let operation as InstrumentedOperation in operations { operation.wasQueued(frame) }
    }

    /// The wait for an operation that is a drop-in is more exact, and goes before this one.
    @inline(__always) private func waiting(_ frame: UnsafeRawPointer, _ body: () -> Void) {
      guard let slot = currentSlot() else { return body() }
      let before = beginWait(slot, word, in: frame)
      body()
      endWait(slot, before)
    }

    private static let mainQueue = OtherOperationQueue(Foundation.OperationQueue.main)

    /// The main thread's queue; equals `OperationQueue.main`: what is added here is added there.
    open override class var main: InstrumentedOperationQueue { mainQueue }

    /// The queue that runs the operation that calls; equals `OperationQueue.current`.
    open override class var current: InstrumentedOperationQueue? {
      guard let current = Foundation.OperationQueue.current else { return nil }
      if current === mainQueue.original { return mainQueue }
      return current as? InstrumentedOperationQueue ?? OtherOperationQueue(current)
    }
  }
#endif
