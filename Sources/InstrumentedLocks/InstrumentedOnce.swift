#if Detection
  internal import CHangcheck
  // Its library has the function.
  internal import Dispatch
  internal import Recorder

  /// A `dispatch_once` whose deadlocks `Watchdog` explains.
  ///
  /// Swift has no `dispatch_once` left; this is one as an object, over libdispatch's. The thread
  /// that runs the block holds it, and others wait for that one. A block that asks for its own once
  /// ends the program as in the original, once it has been reported.
  ///
  /// Costs a load once it is done. Cannot see Swift's own lazy globals and static properties; make
  /// those that matter an `InstrumentedLazy`.
  public final class InstrumentedOnce: @unchecked Sendable {
    private struct Memory {
      var token = 0
      var created: hck_creation
    }
    private struct Running {
      var slot: Slot
      var before: ResourceWord
      var word: ResourceWord
      var frame: UnsafeRawPointer
      var body: () -> Void
    }
    private let memory: UnsafeMutablePointer<Memory>
    // The first member.
    private var token: UnsafeMutablePointer<Int> {
      UnsafeMutableRawPointer(memory).assumingMemoryBound(to: Int.self)
    }
    private let isNamed: Bool

    /// A once that has not run; reports call it `name` or, without one, by the place where it was
    /// made. 55 bytes of the name are kept.
    public init(name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line) {
      InProcess.begin()
      memory = .allocate(capacity: 1)
      memory.initialize(to: Memory(created: hck_creation(fileID, line)))
      isNamed = name != nil
      if let name { InProcess.name(UInt64(UInt(bitPattern: memory)), name) }
    }

    deinit {
      if isNamed { InProcess.name(UInt64(UInt(bitPattern: memory)), nil) }
      RaceOrder.ends(orderKey)
      memory.pointee.created.mark = 0
      memory.deinitialize(count: 1)
      memory.deallocate()
    }

    /// Whether the block has run to its end.
    public var isDone: Bool { state == UInt64.max }

    private var state: UInt64 {
      hck_load64(UnsafeRawPointer(memory).assumingMemoryBound(to: UInt64.self))
    }

    /// Runs `body` unless one has run, and waits for one that runs; equals `dispatch_once`.
    @inline(never) public func callAsFunction(_ body: () -> Void) {
      if isDone { comeAfter() } else { run(body, hck_frame()) }
    }

    /// Runs `body` unless one has run, and waits for one that runs; equals `dispatch_once`.
    @inline(never) public func run(_ body: () -> Void) {
      if isDone { comeAfter() } else { run(body, hck_frame()) }
    }

    private var orderKey: UInt64 { UInt64(UInt(bitPattern: memory)) }

    /// The block's end comes before what the thread does next.
    func comeAfter() { RaceOrder.acquire(orderKey) }

    @inline(never) func run(_ body: () -> Void, _ frame: UnsafeRawPointer) {
      func told() {
        body()
        RaceOrder.release(orderKey)
      }
      defer { comeAfter() }
      withoutActuallyEscaping(told) { body in
        guard let slot = currentSlot() else {
          var body = body
          withUnsafeMutablePointer(to: &body) { body in
            dispatchOnce(token, body) { $0?.assumingMemoryBound(to: (() -> Void).self).pointee() }
          }
          return
        }
        let word = resourceWord(memory, HCK_ONCE)
        slot.pointee.wait_frame = UInt64(UInt(bitPattern: frame))
        let before = beginWait(slot, word)
        let owner = state & 0x3fff_ffff
        if state != 0, !isDone, owner == UInt64(slot.pointee.tid) {
          // What comes next is libdispatch's trap.
          raise(HCK_ALARM_ONCE_REENTERED, word, other: owner, waits: true, frame)
        }
        var running = Running(slot: slot, before: before, word: word, frame: frame, body: body)
        withUnsafeMutablePointer(to: &running) { running in
          dispatchOnce(token, running) { context in
            guard let running = context?.assumingMemoryBound(to: Running.self) else { return }
            let slot = running.pointee.slot
            endWait(slot, running.pointee.before)
            acquired(slot, running.pointee.word, running.pointee.frame)
            running.pointee.body()
            released(slot, running.pointee.word)
          }
        }
        endWait(slot, before)
      }
    }
  }
#endif
