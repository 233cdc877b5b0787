import Glibc
import HangReport
import ProcessInspector

/// The command line from the outside: arguments in, exit status out.
enum Tool {
  static let identity = HangReport.Tool(version: Help.version)

  static func main(_ arguments: [String]) -> Int32 {
    let words = Array(arguments.dropFirst())
    let invocation: Invocation
    do {
      let environment = getenv("HANGCHECK_OPTIONS").map { String(cString: $0) }
      invocation = try Invocation.parse(words, environment: environment)
    } catch {
      say(error.message)
      StandardStreams.write(Help.usage, to: 2)
      return 64
    }
    switch invocation.command {
    case .help:
      StandardStreams.write(Help.full, to: 1)
      return 0
    case .version:
      StandardStreams.write("hangcheck \(Help.version)\n", to: 1)
      return 0
    case .explain(let kind):
      StandardStreams.write(Explanations.page(for: kind), to: 1)
      return 0
    case .core(let file, let executable):
      if let line = invocation.options.unavailable { return refuse(line) }
      return CoreCommand(options: invocation.options, file: file, executable: executable).run()
    case .attach(let pid):
      if let line = invocation.options.unavailable { return refuse(line) }
      return AttachCommand(options: invocation.options, pid: pid).run()
    case .report(let file):
      if let line = invocation.options.unavailable { return refuse(line) }
      return ReportCommand(file: file, options: invocation.options).run()
    case .run(let index):
      if let line = invocation.options.unavailable { return refuse(line) }
      return RunCommand(options: invocation.options, firstWord: index + 1).run()
    }
  }

  private static func refuse(_ line: String) -> Int32 {
    say(line)
    return 64
  }

  /// One line of the tool's own on standard error.
  static func say(_ line: String) {
    StandardStreams.write("hangcheck: \(line)\n", to: 2)
  }
}

/// Descriptors 0 to 2.
enum StandardStreams {
  /// Puts /dev/null, close-on-exec, where one was inherited closed: the program finds it closed.
  static func hold() {
    for fd: Int32 in 0...2 where fcntl(fd, F_GETFD) < 0 {
      _ = open("/dev/null", O_RDWR | O_CLOEXEC)
    }
  }

  /// Whether the program has it open too.
  static func isInherited(_ fd: Int32) -> Bool {
    let flags = fcntl(fd, F_GETFD)
    return flags >= 0 && flags & FD_CLOEXEC == 0
  }

  static func write(_ text: String, to fd: Int32) {
    var bytes = ArraySlice(Array(text.utf8))
    while !bytes.isEmpty {
      let size = bytes.withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
      if size < 0 && errno == EINTR { continue }
      guard size > 0 else { return }
      bytes = bytes.dropFirst(size)
    }
  }
}
