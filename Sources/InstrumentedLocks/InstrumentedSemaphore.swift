#if Detection
  internal import CHangcheck
  public import Dispatch
  internal import Recorder

  /// A `DispatchSemaphore` whose deadlocks and misuse `Watchdog` explains.
  ///
  /// Spelled like `DispatchSemaphore`, so that `typealias DispatchSemaphore =
  /// InstrumentedSemaphore` swaps it throughout a module; a real one lies below, and can be had
  /// where one is asked for. Who took permits and who gave them is counted by call site.
  ///
  /// Costs at most half as much again as the original. Cannot see waits and signals on the semaphore
  /// below itself, nor who is about to signal.
  public final class InstrumentedSemaphore: @unchecked Sendable {
    // Written by the initializer alone; a variable only to ask whether it is the last reference.
    private final var raw: DispatchSemaphore
    // libdispatch's object: what the wrapper adds to a call is a call.
    private final let object: UnsafeRawPointer
    private final let isNamed: Bool
    private final let created: CreationMark

    /// The semaphore below.
    public var dispatchSemaphore: DispatchSemaphore { raw }

    /// A semaphore with so many permits; equals `DispatchSemaphore(value:)`. Reports call it `name`
    /// or, without one, by the place where it was made. 55 bytes of the name are kept.
    @inline(never)
    public init(
      value: Int, name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line
    ) {
      InProcess.begin()
      raw = DispatchSemaphore(value: value)
      // Behind the header of the wrapper, a Swift object.
      object = UnsafeRawPointer(Unmanaged.passUnretained(raw).toOpaque())
        .load(fromByteOffset: 16, as: UnsafeRawPointer.self)
      isNamed = name != nil
      created = CreationMark(UnsafeMutableRawPointer(mutating: object), fileID: fileID, line: line)
      if let name { InProcess.name(UInt64(UInt(bitPattern: object)), name) }
      if let slot = currentSlot() {
        tallyCreation(slot, word, value: UInt64(max(0, value)), hck_frame())
      }
    }

    /// What a reference to `init(value:)` means.
    @_disfavoredOverload public convenience init(value: Int) {
      self.init(value: value, name: nil, fileID: #fileID, line: 0)
    }

    deinit {
      if isNamed { InProcess.name(UInt64(UInt(bitPattern: object)), nil) }
      RaceOrder.ends(word & HCK_ADDRESS_MASK)
      defer { created.end(UnsafeMutableRawPointer(mutating: object)) }
      // Another reference to the one below may still be signalled.
      guard hck_arena_get() != nil, isKnownUniquelyReferenced(&raw) else { return }
      let missing = hck_semaphore_first(object) - hck_semaphore_value(object)
      // What comes next is libdispatch's trap.
      if missing > 0 {
        raise(HCK_ALARM_SEMAPHORE_LOW, word, other: UInt64(missing), waits: true, hck_frame())
      }
    }

    /// Takes a permit, waiting for it as long as it takes; equals `DispatchSemaphore.wait()`.
    @inline(never) public func wait() { _ = wait(until: UInt64.max, hck_frame()) }

    /// Takes a permit, or gives up at `timeout`; equals `DispatchSemaphore.wait(timeout:)`.
    @inline(never) public func wait(timeout: DispatchTime) -> DispatchTimeoutResult {
      wait(until: timeout.rawValue, hck_frame()) == 0 ? .success : .timedOut
    }

    /// Takes a permit, or gives up at `wallTimeout`; equals `DispatchSemaphore.wait(wallTimeout:)`.
    @inline(never) public func wait(wallTimeout: DispatchWallTime) -> DispatchTimeoutResult {
      wait(until: wallTimeout.rawValue, hck_frame()) == 0 ? .success : .timedOut
    }

    /// Gives a permit back and says whether a thread was woken; equals
    /// `DispatchSemaphore.signal()`.
    @discardableResult @inline(never) public func signal() -> Int {
      let frame = hck_frame()
      // Before, for whoever is woken may be done with the semaphore at once.
      if let slot = currentSlot() {
        tally(slot, word, HCK_GIVE, frame)
        if hck_semaphore_is_full(object) != 0 { raise(HCK_ALARM_SEMAPHORE_HIGH, word, frame) }
      }
      RaceOrder.release(word & HCK_ADDRESS_MASK)
      return dispatchSignal(object)
    }

    @inline(__always) private var word: ResourceWord { resourceWord(object, HCK_SEMAPHORE) }

    /// 0 or another number where the time has come.
    @inline(__always) private func wait(until time: UInt64, _ frame: UnsafeRawPointer) -> Int {
      defer { RaceOrder.acquire(word & HCK_ADDRESS_MASK) }
      guard let slot = currentSlot() else { return dispatchWait(object, time) }
      slot.pointee.wait_frame = UInt64(UInt(bitPattern: frame))
      // DISPATCH_TIME_FOREVER.
      let before = beginWait(slot, time == UInt64.max ? word : word | timedBit)
      let result = dispatchWait(object, time)
      endWait(slot, before)
      if result == 0 {
        tally(slot, word, HCK_TAKE, frame)
      } else {
        triedInVain(word, frame)
      }
      return result
    }
  }
#endif
