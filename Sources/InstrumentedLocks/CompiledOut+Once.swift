#if !Detection
  internal import CHangcheck
  // Its library has the function.
  internal import Dispatch

  /// A `dispatch_once` as an object: with the package's trait `Detection` off, nothing more.
  public final class InstrumentedOnce: @unchecked Sendable {
    private let token: UnsafeMutablePointer<Int>

    /// A once that has not run; neither its name nor where it was made is kept.
    public init(name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line) {
      token = .allocate(capacity: 1)
      token.initialize(to: 0)
    }

    deinit { token.deallocate() }

    /// Whether the block has run to its end.
    public var isDone: Bool {
      hck_load64(UnsafeRawPointer(token).assumingMemoryBound(to: UInt64.self)) == UInt64.max
    }

    /// Runs `body` unless one has run, and waits for one that runs; equals `dispatch_once`.
    public func callAsFunction(_ body: () -> Void) { run(body) }

    /// Runs `body` unless one has run, and waits for one that runs; equals `dispatch_once`.
    public func run(_ body: () -> Void) {
      if isDone { return }
      withoutActuallyEscaping(body) { body in
        var body = body
        withUnsafeMutablePointer(to: &body) { body in
          dispatchOnce(token, body) { $0?.assumingMemoryBound(to: (() -> Void).self).pointee() }
        }
      }
    }

    func run(_ body: () -> Void, _ frame: UnsafeRawPointer) { run(body) }
    func comeAfter() {}
  }
#endif
