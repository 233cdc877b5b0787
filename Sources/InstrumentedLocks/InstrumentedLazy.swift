internal import CHangcheck

/// A value that is made when it is first asked for, once for all threads: what a `static let` or a
/// global is, with an `InstrumentedOnce` below, so that `Watchdog` sees who makes it and who waits.
///
/// Costs and sees what `InstrumentedOnce` does.
public final class InstrumentedLazy<Value>: @unchecked Sendable {
  private let once: InstrumentedOnce
  private let memory: UnsafeMutablePointer<Value>
  private let make: @Sendable () -> Value

  /// A value that `make` makes; reports call it `name` or, without one, by the place where this was
  /// made.
  public init(
    name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line,
    _ make: @escaping @Sendable () -> Value
  ) {
    once = InstrumentedOnce(name: name, fileID: fileID, line: line)
    memory = .allocate(capacity: 1)
    self.make = make
  }

  deinit {
    if once.isDone { memory.deinitialize(count: 1) }
    memory.deallocate()
  }

  /// The value, which is made now unless it was made before.
  public var value: Value {
    @inline(never) get {
      if once.isDone {
        once.comeAfter()
      } else {
        once.run({ memory.initialize(to: make()) }, hck_frame())
      }
      return memory.pointee
    }
  }
}
