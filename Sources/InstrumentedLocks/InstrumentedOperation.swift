#if Detection
  internal import CHangcheck
  public import Foundation
  internal import Recorder
  internal import Synchronization

  /// An `Operation` whose waits and circles of dependencies `Watchdog` explains.
  ///
  /// Spelled like `Operation`, so that `typealias Operation = InstrumentedOperation` swaps it
  /// throughout a module; it is one, and goes wherever one goes.
  ///
  /// Costs some 50 bytes and nanoseconds for each that runs, and a look at the dependencies of what
  /// is depended on for each dependency added. Cannot see an operation that is still executing after
  /// its `start()` has returned.
  open class InstrumentedOperation: Foundation.Operation, @unchecked Sendable {
    // Where it was made, found by its mark in the object's memory.
    private final var created: hck_creation
    private final var isNamed = false
    private final let isInCircle = Atomic(false)
    private final let isQueued = Atomic(false)
    private final var word: ResourceWord {
      resourceWord(Unmanaged.passUnretained(self).toOpaque(), HCK_OPERATION)
    }

    /// An operation that reports call `name` or, without one, by the place where it was made.
    public init(name: String?, fileID: StaticString = #fileID, line: UInt = #line) {
      InProcess.begin()
      created = hck_creation(fileID: fileID, line: line)
      super.init()
      self.name = name
    }

    /// An operation without a name, as `Operation()` makes it.
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
      RaceOrder.ends(RaceOrder.key(self))
      RaceOrder.ends(RaceOrder.endKey(self))
    }

    /// Whether `main()` says when it is done, to `RaceOrder`.
    var tellsItsEnd: Bool { false }

    /// Runs once the operation is finished; equals `Operation.completionBlock`.
    open override var completionBlock: (@Sendable () -> Void)? {
      get { super.completionBlock }
      set { super.completionBlock = RaceOrder.isOn ? newValue.map(afterwards) : newValue }
    }

    /// What reports call the operation; equals `Operation.name`. 55 bytes of it are kept.
    open override var name: String? {
      didSet {
        if name == nil && !isNamed { return }
        isNamed = name != nil
        InProcess.name(word & HCK_ADDRESS_MASK, name)
      }
    }

    /// Runs the operation on the calling thread; equals `Operation.start()`.
    @inline(never) open override func start() {
      let frame = hck_frame()
      guard let slot = currentSlot() else { return runInOrder { super.start() } }
      acquired(slot, word, frame)
      runInOrder { super.start() }
      released(slot, word)
    }

    /// Waits until the operation is finished; equals `Operation.waitUntilFinished()`.
    @available(*, noasync, message: "Use completionBlock or a dependent Operation instead")
    @inline(never) open override func waitUntilFinished() {
      let frame = hck_frame()
      defer { Self.comeAfter(self) }
      guard let slot = currentSlot() else { return super.waitUntilFinished() }
      if isInCircle.load(ordering: .relaxed) { checkCircle(frame) }
      let before = beginWait(slot, word, in: frame)
      super.waitUntilFinished()
      endWait(slot, before)
    }

    /// Lets the operation wait for `operation`; equals `Operation.addDependency(_:)`, which never
    /// returns when both are one.
    @inline(never) open override func addDependency(_ operation: Foundation.Operation) {
      let frame = hck_frame()
      guard let slot = currentSlot() else { return super.addDependency(operation) }
      guard operation !== self else {
        raise(HCK_ALARM_OPERATION_CYCLE, word, frame)
        let before = beginWait(slot, word, in: frame)
        super.addDependency(operation)
        endWait(slot, before)
        return
      }
      super.addDependency(operation)
      let further = operation.dependencies
      if !further.isEmpty { lookForCircle(operation, further, frame) }
    }

    private func lookForCircle(
      _ operation: Foundation.Operation, _ further: [Foundation.Operation],
      _ frame: UnsafeRawPointer
    ) {
      guard let circle = OperationCircles.circle(from: operation, through: further),
        circle.contains(where: { $0 === self })
      else { return }
      // Until one of them is to run it may be a program that has not finished its arrangements.
      var isWanted = false
      for case let member as InstrumentedOperation in circle {
        member.isInCircle.store(true, ordering: .relaxed)
        if member.isQueued.load(ordering: .relaxed) { isWanted = true }
      }
      if isWanted { checkCircle(frame) }
    }

    /// Somebody waits for it, or wants it to run.
    private func checkCircle(_ frame: UnsafeRawPointer) {
      guard let circle = OperationCircles.circle(from: self, through: dependencies) else {
        isInCircle.store(false, ordering: .relaxed)
        return
      }
      // Once is enough.
      for case let member as InstrumentedOperation in circle {
        member.isInCircle.store(false, ordering: .relaxed)
      }
      raise(HCK_ALARM_OPERATION_CYCLE, word, frame)
    }

    /// It has been added to a queue.
    func wasQueued(_ frame: UnsafeRawPointer) {
      isQueued.store(true, ordering: .relaxed)
      if isInCircle.load(ordering: .relaxed) { checkCircle(frame) }
    }
  }
#endif
