public import WaitForGraph

/// Makes the finding of a data race from a report of ThreadSanitizer: message, evidence, fingerprint.
///
/// Of its other reports none is taken: lock orders and locks used wrongly are seen by this tool
/// itself, with fewer false alarms; leaked threads and calls in signal handlers have no kind here.
public struct SanitizerFinding {
  private let names: Names
  private let who: [SanitizerReport.Who: ThreadID]
  private let isSure: Bool
  private let frames: (SanitizerReport.Call) -> [Frame]

  /// `who`: the report's threads among `threads`. `isSure`: false where TSan cannot see libdispatch,
  /// and so calls much racy that is not. `frames` names a call.
  public init(
    threads: [Thread], process: WatchedProcess?, who: [SanitizerReport.Who: ThreadID],
    isSure: Bool = true, frames: @escaping (SanitizerReport.Call) -> [Frame]
  ) {
    names = Names(threads: threads, resources: [], process: process)
    self.who = who
    self.isSure = isSure
    self.frames = frames
  }

  /// The finding; nil where the report is about no race, or about one inside of libraries that are
  /// not instrumented: TSan then sees neither all accesses nor what orders them.
  public func finding(for report: SanitizerReport, time: String = UTCTime.now()) -> Finding? {
    guard report.isRace else { return nil }
    let accesses = report.accesses.prefix(2).map { Access($0, frames) }
    guard accesses.contains(where: \.isOwn), !isRelease(accesses) else { return nil }
    let object = object(report)
    let message =
      "\(name(accesses[0])) \(accesses[0].verb.now) \(object)\(accesses[0].place) while"
      + " \(name(accesses[1])) \(accesses[1].verb.now) it\(accesses[1].place);"
      + " no happens-before edge orders them"
    let stacks = accesses.map(\.stack).sorted { Fingerprint.site($0) < Fingerprint.site($1) }
    var global = ""
    if case .global(let name) = report.location { global = name }
    return Finding(
      kind: .dataRace, severity: isSure ? .error : .warning,
      certainty: isSure ? .certain : .possible, message: message,
      threads: accesses.compactMap { who[$0.report.who] },
      evidence: evidence(report, accesses, object),
      fingerprint: Fingerprint.sites(.dataRace, [global], stacks: stacks), time: time)
  }

  /// The last reference went: what counts references is not instrumented, so that TSan misses that
  /// all uses of the memory came before. Where one of them is code that the compiler made, that is all.
  private func isRelease(_ accesses: [Access]) -> Bool {
    accesses.contains(where: \.isFree)
      && accesses.contains { !$0.isFree && $0.stack.first?.runtime ?? true }
  }

  private func evidence(
    _ report: SanitizerReport, _ accesses: [Access], _ object: String
  ) -> [Finding.Evidence] {
    var evidence = accesses.enumerated().map { index, access in
      Finding.Evidence(
        label: "\(name(access)) \(index == 0 ? access.verb.now : access.verb.before) it here"
          + holding(access.report, report),
        thread: who[access.report.who], stack: access.stack)
    }
    func add(_ label: String, _ by: SanitizerReport.Who?, _ calls: [SanitizerReport.Call]) {
      let stack = calls.flatMap(frames)
      guard !stack.isEmpty else { return }
      evidence.append(.init(label: label, thread: by.flatMap { who[$0] }, stack: stack))
    }
    switch report.location {
    case .heap(_, let by):
      add("\(name(by)) allocated the memory here", by, report.locationStack)
    case .descriptor: add("it was opened here", nil, report.locationStack)
    default: break
    }
    let held = Set(accesses.flatMap(\.report.mutexes))
    for mutex in report.mutexes where held.contains(mutex.number) {
      add("mutex \(Address(mutex.address)) was made here", nil, mutex.stack)
    }
    for access in accesses {
      guard let origin = report.threads.first(where: { .thread($0.number) == access.report.who })
      else { continue }
      add(
        "\(name(access)) was started here by \(name(origin.creator))", origin.creator, origin.stack)
    }
    return evidence
  }

  /// `, holding mutex 0x55… and mutex 0x56…`.
  private func holding(_ access: SanitizerReport.Access, _ report: SanitizerReport) -> String {
    let held = access.mutexes.map { number in
      report.mutexes.first { $0.number == number }.map { "mutex \(Address($0.address))" }
        ?? "a mutex that is no more"
    }
    return held.isEmpty ? "" : ", holding " + joined(held)
  }

  private func name(_ access: Access) -> String { name(access.report.who) }

  private func name(_ who: SanitizerReport.Who) -> String { names.short(self.who[who]) }

  /// What the memory is, as one says it.
  private func object(_ report: SanitizerReport) -> String {
    switch report.location {
    case .heap(let size, _): return "a heap block of \(counted(size, "byte"))"
    case .global(let name): return "the global \(cleaned(Demangler.variable(name)))"
    case .stack(let owner): return "a variable on the stack of \(name(owner))"
    case .threadLocal(let owner): return "a thread-local variable of \(name(owner))"
    case .descriptor(let number): return "file descriptor \(number)"
    case nil: return "memory at \(Address(report.accesses[0].address))"
    }
  }
}

/// One of the two accesses, with names.
private struct Access {
  let report: SanitizerReport.Access
  let stack: [Frame]
  let isFree: Bool
  let verb: (now: String, before: String)
  /// The program's own code, not a library that it called.
  let isOwn: Bool

  init(_ access: SanitizerReport.Access, _ frames: (SanitizerReport.Call) -> [Frame]) {
    report = access
    let calls = access.stack.map { (call: $0, frames: frames($0)) }
    stack = calls.flatMap(\.frames)
    // TSan's own word comes first: the table of its runtime has other names for the function.
    let top = calls.first.map { $0.call.function ?? $0.frames.last?.symbol ?? "" } ?? ""
    isFree =
      top == "free" || top.hasSuffix("interceptor_free") || top.hasPrefix("operator delete")
    if isFree {
      verb = ("frees", "freed")
    } else if access.action.contains("modifying") {
      verb = ("modifies", "modified")
    } else {
      let isWrite = access.action.contains("write")
      verb = isWrite ? ("writes", "wrote") : ("reads", "read")
    }
    // Behind the runtime's own function that stands in front of libc's.
    let image = calls.first { !Self.isInterceptor($0.frames) }?.frames.last
    isOwn = image.map { !RuntimeCode.isRuntime(image: "/" + fileName($0.image)) } ?? true
  }

  private static func isInterceptor(_ frames: [Frame]) -> Bool {
    frames.last.map { $0.file.map(RuntimeCode.isSanitizer(file:)) ?? false } ?? false
  }

  /// ` at main.swift:17 in conn()`.
  var place: String {
    guard let frame = stack.first(where: { !$0.runtime }) ?? stack.first else { return "" }
    let line = frame.line.map { $0 > 0 ? ":\($0)" : "" } ?? ""
    let file = frame.file.map { " at \(cleaned(fileName($0)))\(line)" } ?? ""
    return file + (frame.symbol.map { " in \(cleaned($0))" } ?? "")
  }
}
