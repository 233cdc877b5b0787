#if Detection
  internal import CHangcheck
  public import Dispatch
  internal import Recorder
  internal import Synchronization

  /// A `DispatchGroup` whose missing and surplus `leave`s `Watchdog` explains.
  ///
  /// Spelled like `DispatchGroup`, so that `typealias DispatchGroup = InstrumentedGroup` swaps it
  /// throughout a module; each is an original and a few words more.
  ///
  /// `enter` and `leave` cost at most twice the original's. Before a `leave` that libdispatch would
  /// end the program at, the watchdog is given the time to say so. Cannot see who enters and leaves
  /// through the original in other modules, and not at which line a block of `async(group:)` is.
  public final class InstrumentedGroup: @unchecked Sendable {
    /// The group that does the counting, for what takes no drop-in.
    public var original: Dispatch.DispatchGroup { storage }

    // As in InstrumentedQueue.
    @exclusivity(unchecked) private final var storage: Dispatch.DispatchGroup
    private final let object: DispatchObjects.Object?
    private final let word: ResourceWord
    private final let creation: CreationMark
    private final let isNamed: Bool
    /// Blocks leave by themselves, so what is outstanding at the end need not be a mistake.
    private final let hadBlocks: Atomic<Bool>

    /// What `RaceOrder` knows it by.
    final var orderKey: UInt64 {
      word == 0 ? RaceOrder.key(storage) : word & HCK_ADDRESS_MASK
    }

    private init(
      wrapping group: Dispatch.DispatchGroup, name: String?, _ fileID: StaticString, _ line: UInt
    ) {
      storage = group
      object = DispatchObjects.object(behind: group)
      word = DispatchObjects.word(object, HCK_GROUP)
      creation = CreationMark(object, fileID: fileID, line: line)
      isNamed = name != nil && word != 0
      hadBlocks = Atomic(false)
      if isNamed { InProcess.name(word & HCK_ADDRESS_MASK, name) }
    }

    /// A group that reports call `name` or, without one, by the place where it was made.
    @inline(never) public convenience init(
      name: String?, fileID: StaticString = #fileID, line: UInt = #line
    ) {
      self.init(wrapping: Dispatch.DispatchGroup(), name: name, fileID, line)
      made(hck_frame())
    }

    /// A group without a name, as `DispatchGroup()` makes it.
    @inline(never) public convenience init(fileID: StaticString = #fileID, line: UInt = #line) {
      self.init(wrapping: Dispatch.DispatchGroup(), name: nil, fileID, line)
      made(hck_frame())
    }

    /// What a reference to `init` without arguments means.
    @inline(never) @_disfavoredOverload public convenience init() {
      self.init(wrapping: Dispatch.DispatchGroup(), name: nil, #fileID, 0)
      made(hck_frame())
    }

    private func made(_ frame: UnsafeRawPointer) {
      if let slot = recordingSlot(word) { tallyCreation(slot, word, value: 0, frame) }
    }

    deinit {
      let frame = hck_frame()
      creation.end(object)
      RaceOrder.ends(orderKey)
      if isNamed { InProcess.name(word & HCK_ADDRESS_MASK, nil) }
      guard let object, recordingSlot(word) != nil, isKnownUniquelyReferenced(&storage),
        hck_do_outer_references(object) == 0, let arena = hck_arena_get()
      else { return }
      let entered = hck_group_count(object)
      if entered == 0 {
        forgetTallies(word, in: arena)
      } else if !hadBlocks.load(ordering: .relaxed) {
        raise(HCK_ALARM_GROUP_ABANDONED, word, other: UInt64(entered), frame)
      }
    }

    /// Says that something begins that the group is to wait for; equals `DispatchGroup.enter()`.
    @inline(never) public func enter() {
      let frame = hck_frame()
      guard let object else { return original.enter() }
      if let slot = currentSlot() { tally(slot, word, HCK_TAKE, frame) }
      hck_dispatch_group_enter(object)
    }

    /// Says that one such thing is done; equals `DispatchGroup.leave()`.
    @inline(never) public func leave() {
      let frame = hck_frame()
      RaceOrder.release(orderKey)
      guard let object else { return original.leave() }
      if let slot = currentSlot() {
        if hck_group_count(object) == 0 { leftTooOften(frame) }
        tally(slot, word, HCK_GIVE, frame)
      }
      hck_dispatch_group_leave(object)
    }

    @inline(never) private func leftTooOften(_ frame: UnsafeRawPointer) {
      raise(HCK_ALARM_GROUP_OVERLEFT, word, waits: true, frame)
    }

    /// A block is about to be submitted that leaves the group by itself: an enter.
    func willRunBlock(_ frame: UnsafeRawPointer) {
      guard let slot = recordingSlot(word) else { return }
      if !hadBlocks.load(ordering: .relaxed) { hadBlocks.store(true, ordering: .relaxed) }
      tally(slot, word, HCK_TAKE_BY_BLOCK, frame)
    }
  }

  extension InstrumentedGroup {
    /// Waits until everything is done; equals `DispatchGroup.wait()`.
    @inline(never) public func wait() {
      let frame = hck_frame()
      defer { RaceOrder.acquire(orderKey) }
      guard let slot = recordingSlot(word) else { return original.wait() }
      let before = beginWait(slot, word, in: frame)
      original.wait()
      endWait(slot, before)
    }

    /// Waits until everything is done, or gives up at `timeout`; equals
    /// `DispatchGroup.wait(timeout:)`. Such a wait ends by itself, unless it is
    /// `.distantFuture`.
    @inline(never) public func wait(timeout: DispatchTime) -> DispatchTimeoutResult {
      let frame = hck_frame()
      defer { RaceOrder.acquire(orderKey) }
      guard let slot = recordingSlot(word) else { return original.wait(timeout: timeout) }
      let isTimed = timeout != .distantFuture
      let before = beginWait(slot, isTimed ? word | timedBit : word, in: frame)
      defer { endWait(slot, before) }
      return original.wait(timeout: timeout)
    }

    /// Waits until everything is done, or gives up at a time of day; equals
    /// `DispatchGroup.wait(wallTimeout:)`.
    @inline(never) public func wait(wallTimeout timeout: DispatchWallTime) -> DispatchTimeoutResult
    {
      let frame = hck_frame()
      defer { RaceOrder.acquire(orderKey) }
      guard let slot = recordingSlot(word) else { return original.wait(wallTimeout: timeout) }
      let isTimed = timeout != .distantFuture
      let before = beginWait(slot, isTimed ? word | timedBit : word, in: frame)
      defer { endWait(slot, before) }
      return original.wait(wallTimeout: timeout)
    }

    /// Submits a block once everything is done; equals
    /// `DispatchGroup.notify(qos:flags:queue:execute:)`.
    @inline(never) public func notify(
      qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], queue: InstrumentedQueue,
      execute work: @escaping @convention(block) () -> Void
    ) {
      willNotify(hck_frame())
      original.notify(
        qos: qos, flags: flags, queue: queue.original,
        execute: ordered(work, on: queue.original, flags))
    }

    /// Submits a block to a queue that is no drop-in once everything is done.
    @inline(never) @_disfavoredOverload public func notify(
      qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
      queue: Dispatch.DispatchQueue, execute work: @escaping @convention(block) () -> Void
    ) {
      willNotify(hck_frame())
      original.notify(
        qos: qos, flags: flags, queue: queue, execute: ordered(work, on: queue, flags))
    }

    /// Submits a work item once everything is done; equals `DispatchGroup.notify(queue:work:)`.
    @inline(never) public func notify(queue: InstrumentedQueue, work: DispatchWorkItem) {
      willNotify(hck_frame())
      notify(work, on: queue.original)
    }

    /// Submits a work item to a queue that is no drop-in once everything is done.
    @inline(never) @_disfavoredOverload public func notify(
      queue: Dispatch.DispatchQueue, work: DispatchWorkItem
    ) {
      willNotify(hck_frame())
      notify(work, on: queue)
    }

    private func notify(_ item: DispatchWorkItem, on queue: Dispatch.DispatchQueue) {
      guard RaceOrder.isOn else { return original.notify(queue: queue, work: item) }
      let isBarrier = RaceBlock.isBarrier(item)
      var block = RaceBlock(on: RaceBlock.object(queue), isBarrier: isBarrier)
      block.after = orderKey
      original.notify(
        flags: isBarrier ? .barrier : [], queue: queue, execute: block.performing(item))
    }

    private func ordered(
      _ work: @escaping @convention(block) () -> Void, on queue: Dispatch.DispatchQueue,
      _ flags: DispatchWorkItemFlags
    ) -> @convention(block) () -> Void {
      guard RaceOrder.isOn else { return work }
      var block = RaceBlock(on: RaceBlock.object(queue), isBarrier: flags.contains(.barrier))
      block.after = orderKey
      return block.wrapping(once: work)
    }

    private func willNotify(_ frame: UnsafeRawPointer) {
      if let slot = recordingSlot(word) { tally(slot, word, HCK_NOTIFY, frame) }
    }

    /// Sets the queue that the group is finalised on; equals `DispatchObject.setTarget(queue:)`.
    public func setTarget(queue: InstrumentedQueue) { original.setTarget(queue: queue.original) }

    /// Does nothing to a group; equals `DispatchObject.activate()`.
    public func activate() { original.activate() }

    /// Does nothing to a group; equals `DispatchObject.suspend()`.
    public func suspend() { original.suspend() }

    /// Does nothing to a group; equals `DispatchObject.resume()`.
    public func resume() { original.resume() }
  }
#endif
