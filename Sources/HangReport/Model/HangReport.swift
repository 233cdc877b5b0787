/// What hangcheck found out, in the exact form of the JSON report (schema `hangcheck/1`).
///
/// Text and every other format are renderings of this value. Times are seconds. What is not known
/// is absent.
public struct HangReport: Codable, Sendable, Equatable {
  public static let schema = "hangcheck/1"

  public enum Mode: String, Codable, Sendable { case run, attach, core, inProcess }

  public struct Tool: Codable, Sendable, Equatable {
    public var name: String
    public var version: String
    public init(name: String = "hangcheck", version: String) {
      self.name = name
      self.version = version
    }
    /// This version.
    public static let current = Tool(version: "0.1.0")
  }

  public var schema: String
  public var tool: Tool
  public var mode: Mode
  public var process: WatchedProcess
  public var findings: [Finding]
  /// Findings that do not count, because a suppression or a baseline says so; absent for none.
  public var suppressed: [SuppressedFinding]?
  /// As they stood when the worst finding was made.
  public var threads: [Thread]
  /// Those that a thread holds or waits for, or that a finding names.
  public var resources: [Resource]
  /// The programs of other processes whose threads are listed, and of the process itself once it
  /// runs another one than it was started as.
  public var processes: [WatchedProcess]?
  /// What could not be seen, one sentence each.
  public var limits: [String]?

  public init(
    tool: Tool, mode: Mode, process: WatchedProcess, findings: [Finding] = [],
    threads: [Thread] = [], resources: [Resource] = [], limits: [String]? = nil
  ) {
    schema = HangReport.schema
    self.tool = tool
    self.mode = mode
    self.process = process
    self.findings = findings
    self.threads = threads
    self.resources = resources
    self.limits = limits
  }
}

/// The process that a report is about.
public struct WatchedProcess: Codable, Sendable, Equatable {
  /// How it ended; exactly one of the two is set.
  public struct Exit: Codable, Sendable, Equatable {
    public var status: Int32?
    public var signal: Int32?
    public init(status: Int32? = nil, signal: Int32? = nil) {
      self.status = status
      self.signal = signal
    }
  }
  public var pid: Int32
  public var executable: String
  public var arguments: [String]
  public var exit: Exit?
  /// Why all of it stands still for the moment.
  public enum Stop: String, Codable, Sendable { case signal, tracer }
  public var stopped: Stop?
  public init(pid: Int32, executable: String, arguments: [String], exit: Exit? = nil) {
    self.pid = pid
    self.executable = executable
    self.arguments = arguments
    self.exit = exit
  }
  /// A process that has not ended says so with null.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(pid, forKey: .pid)
    try container.encode(executable, forKey: .executable)
    try container.encode(arguments, forKey: .arguments)
    try container.encode(exit, forKey: .exit)
    try container.encodeIfPresent(stopped, forKey: .stopped)
  }
}

/// One call site in a stack; inlined frames come before the frame they were inlined into.
public struct Frame: Codable, Sendable, Hashable {
  public var address: Address
  /// Path of the binary, or "" where no mapping holds the address.
  public var image: String
  /// The call's address in the image's file, as addr2line takes it; not known for all images.
  public var offset: Address?
  /// Demangled.
  public var symbol: String?
  public var file: String?
  public var line: Int?
  public var column: Int?
  public var inlined: Bool
  /// Of the language runtime, libdispatch, glibc or this tool: text output folds it.
  public var runtime: Bool
  public init(
    address: Address, image: String, offset: Address? = nil, symbol: String? = nil,
    file: String? = nil, line: Int? = nil,
    column: Int? = nil, inlined: Bool = false, runtime: Bool = false
  ) {
    self.address = address
    self.image = image
    self.offset = offset
    self.symbol = symbol
    self.file = file
    self.line = line
    self.column = column
    self.inlined = inlined
    self.runtime = runtime
  }
}

/// An address of the watched process; "0x…" in JSON. Never dereferenced.
public struct Address: Codable, Sendable, Hashable, Comparable {
  public var rawValue: UInt64
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard text.hasPrefix("0x"), let value = UInt64(text.dropFirst(2), radix: 16) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "an address is written as 0x… in hexadecimal")
    }
    rawValue = value
  }
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
  public static func < (a: Address, b: Address) -> Bool { a.rawValue < b.rawValue }
}

extension Address: CustomStringConvertible {
  public var description: String { "0x" + String(rawValue, radix: 16) }
}
