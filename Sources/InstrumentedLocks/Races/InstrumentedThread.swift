// Foundation's Thread has stored properties of CoreFoundation's types, without which there is no
// subclass of it.
#if Detection
  internal import CHangcheck
  internal import CoreFoundation
  public import Foundation

  /// A `Thread` whose beginning `RaceChecked` sees.
  ///
  /// Spelled like `Thread`, so that `typealias Thread = InstrumentedThread` swaps it throughout a
  /// module; it is one. A plain thread's first step is taken to come after all that any thread did
  /// before, and its end before all that comes later, so that some races are missed; with this one,
  /// what comes before `start()` comes before it, what was done by its end comes before who sees
  /// `isFinished`, and nothing else is taken for granted.
  ///
  /// Costs a load more than the original while there is no checked value.
  open class InstrumentedThread: Foundation.Thread {
    private final var block: (@Sendable () -> Void)?

    /// A thread whose work is in `main()`; equals `Thread.init()`.
    public override init() { super.init() }

    /// A thread that runs `block`; equals `Thread.init(block:)`.
    public convenience init(block: @Sendable @escaping () -> Void) {
      self.init()
      self.block = block
    }

    deinit {
      RaceOrder.ends(RaceOrder.key(self))
      RaceOrder.ends(RaceOrder.endKey(self))
    }

    /// Begins to run; equals `Thread.start()`.
    open override func start() {
      RaceOrder.release(RaceOrder.key(self))
      super.start()
    }

    /// What the thread does; equals `Thread.main()`.
    open override func main() {
      if hck_is_racing() != 0, hck_race_thread_get() == nil {
        _ = RaceThreads.enroll(isKnown: true, mayBeWorker: false)
      }
      RaceOrder.acquire(RaceOrder.key(self))
      if let block { block() } else { super.main() }
      RaceOrder.release(RaceOrder.endKey(self))
    }

    /// Whether it has ended; equals `Thread.isFinished`.
    open override var isFinished: Bool {
      let isFinished = super.isFinished
      if isFinished { RaceOrder.acquire(RaceOrder.endKey(self)) }
      return isFinished
    }

    /// Runs `block` in a thread of its own; equals `Thread.detachNewThread(_:)`.
    open override class func detachNewThread(_ block: @Sendable @escaping () -> Void) {
      InstrumentedThread(block: block).start()
    }
  }
#else
  public import Foundation

  /// With the package's trait `Detection` off, the original itself.
  public typealias InstrumentedThread = Foundation.Thread
#endif
