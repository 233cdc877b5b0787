/// Reads reports out of ThreadSanitizer's output as it comes, piece by piece. A value: give it what
/// was printed, take what it returns.
///
/// TSan hands over what it prints call by call, and one line may come in several pieces without their
/// line breaks: what belongs behind the piece before it begins with neither two spaces nor a word
/// that begins a line.
public struct SanitizerReader: Sendable {
  private var report: SanitizerReport?
  private var line = ""
  private var target = Target.nothing

  /// What the calls that follow a line belong to.
  private enum Target {
    case nothing, access, location, mutex, thread
  }

  public init() {}

  /// One piece, without a line break; the report that it completes.
  public mutating func add(_ piece: some StringProtocol) -> SanitizerReport? {
    guard begins(piece) else {
      line += piece
      return nil
    }
    let whole = line
    line = String(piece)
    if let kind = Self.kind(of: line) { report = SanitizerReport(kind: kind) }
    read(whole)
    // The one is missing with print_summary=0, the other comes last.
    guard line.hasPrefix("SUMMARY: ") || line.hasPrefix("=====") else { return nil }
    defer {
      report = nil
      target = .nothing
    }
    return report
  }

  private func begins(_ piece: some StringProtocol) -> Bool {
    piece.isEmpty || piece.hasPrefix("  ")
      || ["=====", "WARNING: ", "SUMMARY: ", "ThreadSanitizer", "FATAL: "].contains {
        piece.hasPrefix($0)
      }
  }

  /// `WARNING: ThreadSanitizer: data race (pid=1)`.
  private static func kind(of line: String) -> String? {
    guard let match = line.wholeMatch(of: /WARNING: ThreadSanitizer: (.+) \(pid=\d+\).*/) else {
      return nil
    }
    return String(match.1)
  }

  private mutating func read(_ line: String) {
    guard report != nil, !line.isEmpty else { return }
    if let call = Self.call(line) { return add(call) }
    if line.hasPrefix("    ") { return }
    target = .nothing
    if let access = Self.access(line) {
      report?.accesses.append(access)
      target = .access
    } else if let location = Self.location(line) {
      if report?.location == nil { report?.location = location }
      target = .location
    } else if let match = line.firstMatch(of: #/^  Mutex M(\d+) \(0x([0-9a-f]+)\) created at:/#) {
      report?.mutexes.append(
        .init(number: Self.number(match.1), address: Self.address(match.2), stack: []))
      target = .mutex
    } else if let thread = Self.thread(line) {
      report?.threads.append(thread)
      target = .thread
    }
  }

  private mutating func add(_ call: SanitizerReport.Call) {
    guard var report else { return }
    switch target {
    case .nothing: return
    case .access: report.accesses[report.accesses.count - 1].stack.append(call)
    case .location: report.locationStack.append(call)
    case .mutex: report.mutexes[report.mutexes.count - 1].stack.append(call)
    case .thread: report.threads[report.threads.count - 1].stack.append(call)
    }
    self.report = report
  }
}

extension SanitizerReader {
  /// `    #0 f /src/main.swift:17:57 (app+0xfce8f) (BuildId: …)`; of a stack that was printed in
  /// another form (stack_trace_format) nothing is known.
  private static func call(_ line: String) -> SanitizerReport.Call? {
    guard
      let match = line.firstMatch(
        of: #/^ +#\d+ (.*?) ?\(([^()]+)\+0x([0-9a-f]+)\)(?: \(BuildId.*)?$/#)
    else { return nil }
    var call = SanitizerReport.Call(
      image: String(match.2), offset: address(match.3), function: nil, file: nil, line: nil)
    var words = match.1
    if words.hasSuffix(" <null>") {
      words = words.dropLast(7)
    } else if let path = words.firstMatch(of: #/^(.*) (\/.*?)(?::(\d+))?(?::\d+)?$/#) {
      call.file = String(path.2)
      call.line = path.3.map(number)
      words = path.1
    }
    if !words.isEmpty, words != "<null>" { call.function = String(words) }
    return call
  }

  /// `  Previous atomic write of size 8 at 0x7… by thread T1 (mutexes: write M0):`,
  /// `  Modifying access of Swift variable at 0x7… by main thread:`.
  private static func access(_ line: String) -> SanitizerReport.Access? {
    guard
      let match = line.firstMatch(
        of:
          #/^  (?:Previous )?([A-Za-z -]+) of (?:size (\d+)|.+?) at 0x([0-9a-f]+) by ([^(:]+)(.*)$/#
      ),
      let who = who(match.4)
    else { return nil }
    return .init(
      action: match.1.lowercased(), address: address(match.3), size: match.2.map(number), who: who,
      mutexes: match.5.matches(of: /M(\d+)/).map { number($0.1) }, stack: [])
  }

  private static func location(_ line: String) -> SanitizerReport.Location? {
    guard let match = line.firstMatch(of: #/^  Location is (.+)$/#) else { return nil }
    let words = match.1
    if let heap = words.firstMatch(
      of: #/^heap block of size (\d+) at 0x[0-9a-f]+ allocated by ([^:]+):?/#),
      let who = who(heap.2)
    {
      return .heap(size: number(heap.1), by: who)
    }
    if let global = words.firstMatch(of: #/^global '(.+)' /#), global.1 != "<null>" {
      return .global(String(global.1))
    }
    if let owner = words.firstMatch(of: #/^(stack|TLS) of ([^.]+)\./#), let who = who(owner.2) {
      return owner.1 == "TLS" ? .threadLocal(of: who) : .stack(of: who)
    }
    return words.firstMatch(of: #/^file descriptor (\d+)/#).map { .descriptor(number($0.1)) }
  }

  /// `  Thread T1 'name' (tid=4712, running) created by main thread at:`.
  private static func thread(_ line: String) -> SanitizerReport.Origin? {
    guard
      let match = line.firstMatch(
        of:
          #/^  Thread T(\d+)(?: '(.*)')? \(tid=(\d+), (\w+)\) created by (main thread|thread T\d+)/#
      ),
      let tid = Int32(match.3), let creator = who(match.5)
    else { return nil }
    return .init(
      number: number(match.1), name: match.2.map(String.init) ?? "", tid: tid,
      isRunning: match.4 == "running", creator: creator, stack: [])
  }

  private static func who(_ words: Substring) -> SanitizerReport.Who? {
    if words.hasPrefix("main thread") { return .main }
    return words.firstMatch(of: #/^thread T(\d+)/#).map { .thread(number($0.1)) }
  }

  private static func number(_ digits: Substring) -> Int { Int(digits) ?? 0 }
  private static func address(_ digits: Substring) -> UInt64 { UInt64(digits, radix: 16) ?? 0 }
}
