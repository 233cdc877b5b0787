/// One report of ThreadSanitizer, read from the text that it prints.
///
/// Compiler-rt has no other form of it that a preloaded library could reach: the functions of its
/// debugging interface stay inside the executable. Clang's and GCC's runtimes print alike.
public struct SanitizerReport: Sendable, Equatable {
  /// Who did something, as TSan numbers threads within a report.
  public enum Who: Sendable, Hashable {
    case main
    case thread(Int)
  }

  /// A call, at an offset of an image that is named by its file alone, and what TSan's own symbolizer
  /// said of it.
  public struct Call: Sendable, Hashable {
    public var image: String
    public var offset: UInt64
    public var function: String?
    public var file: String?
    public var line: Int?
  }

  public struct Access: Sendable, Equatable {
    /// `write`, `atomic read`, `modifying access`.
    public var action: String
    public var address: UInt64
    /// nil for an access of a Swift variable as a whole.
    public var size: Int?
    public var who: Who
    /// Held during it.
    public var mutexes: [Int]
    public var stack: [Call]
  }

  /// What the memory is.
  public enum Location: Sendable, Equatable {
    case heap(size: Int, by: Who)
    case global(String)
    case stack(of: Who)
    case threadLocal(of: Who)
    case descriptor(Int)
  }

  public struct Mutex: Sendable, Equatable {
    public var number: Int
    public var address: UInt64
    public var stack: [Call]
  }

  public struct Origin: Sendable, Equatable {
    public var number: Int
    public var name: String
    /// In the program's own process namespace.
    public var tid: Int32
    public var isRunning: Bool
    public var creator: Who
    public var stack: [Call]
  }

  /// `data race`, `thread leak`.
  public var kind: String
  /// The one that was found first, then those before it.
  public var accesses: [Access] = []
  public var location: Location?
  /// Where the memory was allocated, or the descriptor opened.
  public var locationStack: [Call] = []
  public var mutexes: [Mutex] = []
  public var threads: [Origin] = []

  /// Two threads touched the same memory: a race in the sense of this tool's findings.
  public var isRace: Bool {
    accesses.count > 1 && accesses[0].who != accesses[1].who
  }
}

extension SanitizerReport.Call {
  /// What TSan itself said, for want of the image.
  public var frame: Frame {
    Frame(
      address: Address(0), image: image, offset: Address(offset),
      symbol: function.map(Demangler.name), file: file, line: line,
      runtime: RuntimeCode.isRuntime(image: "/" + image)
        || file.map(RuntimeCode.isToolchain(file:)) ?? false)
  }
}
