#if Detection
  internal import CHangcheck
  public import Dispatch
  internal import Recorder

  /// A `DispatchQueue` whose deadlocks `Watchdog` explains.
  ///
  /// Spelled like `DispatchQueue`, so that `typealias DispatchQueue = InstrumentedQueue` swaps it
  /// throughout a module; what takes the original takes a drop-in as well (`Dispatch+Queues.swift`).
  /// Each is an original and a few words more, and every block goes to the original unchanged.
  ///
  /// `sync` costs at most a third more than the original's, `async` nothing; making one costs one
  /// allocation more. Before a call that libdispatch would end the program at (a sync onto a queue
  /// that the thread is on, a resume too many), the watchdog is given the time to say so. Cannot
  /// see what other modules do with the same queue through the original, and for a concurrent queue
  /// not which threads run blocks of `async` on it.
  public final class InstrumentedQueue: @unchecked Sendable {
    /// The same as the original's.
    public typealias Attributes = Dispatch.DispatchQueue.Attributes
    /// The same as the original's.
    public typealias AutoreleaseFrequency = Dispatch.DispatchQueue.AutoreleaseFrequency
    /// The same as the original's.
    public typealias GlobalQueuePriority = Dispatch.DispatchQueue.GlobalQueuePriority

    /// The queue that does the work, for what takes no drop-in.
    public var original: Dispatch.DispatchQueue { storage }

    // Written by the initialisers; `var` and unchecked, for a `let` cannot be asked whether it is
    // the only reference.
    @exclusivity(unchecked) private final var storage: Dispatch.DispatchQueue
    final let object: DispatchObjects.Object?
    /// The word of whoever has the queue to itself; 0 where nothing is recorded.
    final let word: ResourceWord
    /// The word of a `sync` without a barrier.
    final let syncWord: ResourceWord
    private final let creation: CreationMark

    private init(
      wrapping queue: Dispatch.DispatchQueue, created: (fileID: StaticString, line: UInt)?
    ) {
      storage = queue
      object = DispatchObjects.object(behind: queue)
      word = DispatchObjects.word(object, HCK_QUEUE)
      let isShared = object.map { hck_queue_width($0) > 1 } ?? false
      syncWord = isShared ? word | sharedBit : word
      creation = CreationMark(
        created == nil ? nil : object, fileID: created?.fileID ?? "", line: created?.line ?? 0)
    }

    private func made(_ frame: UnsafeRawPointer) {
      guard let object, let slot = recordingSlot(word) else { return }
      tallyCreation(slot, word, value: UInt64(hck_queue_width(object)), frame)
    }

    /// Makes a queue; equals `DispatchQueue.init(label:qos:attributes:autoreleaseFrequency:target:)`.
    @inline(never) public convenience init(
      label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = [],
      autoreleaseFrequency: AutoreleaseFrequency = .inherit, target: InstrumentedQueue? = nil,
      fileID: StaticString = #fileID, line: UInt = #line
    ) {
      self.init(
        wrapping: Dispatch.DispatchQueue(
          label: label, qos: qos, attributes: attributes,
          autoreleaseFrequency: autoreleaseFrequency, target: target?.original),
        created: (fileID, line))
      made(hck_frame())
    }

    /// Makes a queue whose target is no drop-in.
    @inline(never) @_disfavoredOverload public convenience init(
      label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = [],
      autoreleaseFrequency: AutoreleaseFrequency = .inherit, target: Dispatch.DispatchQueue?,
      fileID: StaticString = #fileID, line: UInt = #line
    ) {
      self.init(
        wrapping: Dispatch.DispatchQueue(
          label: label, qos: qos, attributes: attributes,
          autoreleaseFrequency: autoreleaseFrequency, target: target),
        created: (fileID, line))
      made(hck_frame())
    }

    /// A drop-in for a queue that somebody else made: both are the same queue.
    public static func wrapping(_ original: Dispatch.DispatchQueue) -> InstrumentedQueue {
      InstrumentedQueue(wrapping: original, created: nil)
    }

    deinit {
      let frame = hck_frame()
      creation.end(object)
      guard let object, recordingSlot(word) != nil, isKnownUniquelyReferenced(&storage),
        hck_do_outer_references(object) == 0
      else { return }
      if hck_queue_is_suspended(object) != 0 {
        raise(
          HCK_ALARM_RELEASED_SUSPENDED, word,
          other: hck_queue_is_inactive(object) != 0 ? 1 : 0, waits: true, frame)
      }
    }
  }

  extension InstrumentedQueue {
    private static let mainQueue = wrapping(Dispatch.DispatchQueue.main)
    private static let background = wrapping(Dispatch.DispatchQueue.global(qos: .background))
    private static let utility = wrapping(Dispatch.DispatchQueue.global(qos: .utility))
    private static let normal = wrapping(Dispatch.DispatchQueue.global(qos: .default))
    private static let userInitiated = wrapping(Dispatch.DispatchQueue.global(qos: .userInitiated))
    private static let interactive = wrapping(Dispatch.DispatchQueue.global(qos: .userInteractive))
    private static let unspecified = wrapping(Dispatch.DispatchQueue.global(qos: .unspecified))

    /// The main queue; equals `DispatchQueue.main`.
    public class var main: InstrumentedQueue { mainQueue }

    /// A global queue; equals `DispatchQueue.global(qos:)`.
    public class func global(qos: DispatchQoS.QoSClass = .default) -> InstrumentedQueue {
      switch qos {
      case .background: background
      case .utility: utility
      case .default: normal
      case .userInitiated: userInitiated
      case .userInteractive: interactive
      case .unspecified: unspecified
      }
    }

    /// A global queue; equals `DispatchQueue.global(priority:)`.
    public class func global(priority: GlobalQueuePriority) -> InstrumentedQueue {
      wrapping(Dispatch.DispatchQueue.global(priority: priority))
    }

    /// Runs `work` so many times on as many threads as there are processors; equals
    /// `DispatchQueue.concurrentPerform(iterations:execute:)`. Nothing is recorded of it.
    public class func concurrentPerform(
      iterations: Int, execute work: @Sendable (Int) -> Void
    ) {
      if RaceOrder.isOn {
        let back = Handoff()
        var block = RaceBlock(on: nil)
        block.before = RaceOrder.key(back)
        Dispatch.DispatchQueue.concurrentPerform(iterations: iterations) { [block] index in
          block.run { work(index) }
        }
        return RaceOrder.acquire(RaceOrder.key(back))
      }
      Dispatch.DispatchQueue.concurrentPerform(iterations: iterations, execute: work)
    }

    /// What the current queue or one of its targets has for `key`; equals
    /// `DispatchQueue.getSpecific(key:)`.
    public class func getSpecific<T>(key: DispatchSpecificKey<T>) -> T? {
      Dispatch.DispatchQueue.getSpecific(key: key)
    }

    /// What this queue has for `key`; equals `DispatchQueue.getSpecific(key:)` of an instance.
    public func getSpecific<T>(key: DispatchSpecificKey<T>) -> T? { original.getSpecific(key: key) }

    /// Sets what this queue has for `key`; equals `DispatchQueue.setSpecific(key:value:)`.
    public func setSpecific<T>(key: DispatchSpecificKey<T>, value: T?) {
      original.setSpecific(key: key, value: value)
    }

    /// What reports call the queue; equals `DispatchQueue.label`.
    public var label: String { original.label }

    /// The queue's quality of service; equals `DispatchQueue.qos`.
    public var qos: DispatchQoS { original.qos }
  }
#endif
