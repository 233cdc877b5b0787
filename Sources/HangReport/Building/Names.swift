internal import WaitForGraph

/// What the threads and resources of one report are called in sentences.
struct Names {
  private(set) var threads: [ThreadID: Thread] = [:]
  private(set) var resources: [ResourceID: Resource] = [:]
  private var quoted: [ThreadID: String] = [:]
  private let process: WatchedProcess?
  private var pids: Set<Int32> = []

  private let others: [Int32: WatchedProcess]

  init(
    threads list: [Thread], resources: [Resource], process: WatchedProcess?,
    processes: [WatchedProcess] = []
  ) {
    self.process = process
    others = Dictionary(processes.map { ($0.pid, $0) }) { $1 }
    for resource in resources { self.resources[resource.id] = resource }
    var uses: [String: Int] = [:]
    for thread in list {
      threads[thread.id] = thread
      if let name = ownName(of: thread) { uses[name, default: 0] += 1 }
      if let pid = thread.pid ?? process?.pid { pids.insert(pid) }
    }
    var blocks: [String: Int] = [:]
    for thread in list where thread.kind == .block { blocks[thread.queue ?? "", default: 0] += 1 }
    var counted: [String: Int] = [:]
    for thread in list {
      if let kind = thread.kind, kind != .thread {
        let queue = thread.queue ?? ""
        counted[queue, default: 0] += kind == .block ? 1 : 0
        quoted[thread.id] = Self.name(
          thread, kind, number: blocks[queue] == 1 ? nil : counted[queue])
        continue
      }
      guard let name = ownName(of: thread) else { continue }
      quoted[thread.id] = "\"\(name)\"" + (uses[name] == 1 ? "" : " (tid \(thread.tid))")
    }
  }

  /// `the block queued on "work"`, `task 12`, `operation "upload"`.
  private static func name(
    _ thread: Thread, _ kind: Snapshot.Thread.Kind, number: Int?
  ) -> String {
    switch kind {
    case .thread: return "thread \(thread.tid)"
    case .block:
      let queue =
        thread.queue == mainQueue
        ? " queued on the main queue"
        : thread.queue.map { " queued on \"\(cleaned($0))\"" } ?? ""
      return (number.map { "block \($0)" } ?? "the block") + queue
    case .task, .operation:
      if thread.name.isEmpty {
        return kind.rawValue + (thread.address.map { " \($0)" } ?? "")
      }
      let isNumber = thread.name.utf8.allSatisfy { $0 >= 48 && $0 <= 57 }
      return kind.rawValue + (isNumber ? " \(thread.name)" : " \"\(cleaned(thread.name))\"")
    }
  }

  /// One of libdispatch's, which bear the last 15 letters of a global queue's label.
  static func isWorker(_ thread: Thread) -> Bool {
    thread.name.hasSuffix("-qos") || thread.name == "-qos.overcommit"
  }

  /// A thread that was never named inherits the program's name: that tells nothing.
  private func ownName(of thread: Thread) -> String? {
    guard !thread.name.isEmpty, !isMain(thread), thread.kind ?? .thread == .thread,
      !Self.isWorker(thread)
    else { return nil }
    let program =
      (others[thread.pid ?? process?.pid ?? 0] ?? process).map { fileName($0.executable) } ?? ""
    // The kernel keeps 15 bytes of a name.
    guard program.isEmpty || thread.name != String(decoding: program.utf8.prefix(15), as: UTF8.self)
    else { return nil }
    return cleaned(thread.name)
  }

  /// Whether a thread of that name was never named itself: it has the program's.
  func isProgram(_ name: String) -> Bool {
    let program = process.map { fileName($0.executable) } ?? ""
    return !program.isEmpty && name == String(decoding: program.utf8.prefix(15), as: UTF8.self)
  }

  func isMain(_ thread: Thread) -> Bool { thread.tid == thread.pid ?? process?.pid }

  /// `"cancel"`, `main thread` or `thread 4712`; the tid is added where two threads share a name.
  func short(_ id: ThreadID?) -> String {
    guard let id else { return "an unknown thread" }
    guard let thread = threads[id] else { return "an unlisted thread" }
    if let name = quoted[id] { return name }
    if isMain(thread) {
      guard let pid = thread.pid, pids.count > 1 else { return "main thread" }
      return "main thread of process \(pid)"
    }
    return "\(Self.isWorker(thread) ? "worker" : "thread") \(thread.tid)"
  }

  /// The same with the tid, and the process when several are in the report.
  func long(_ id: ThreadID?) -> String {
    let short = short(id)
    guard let id, let thread = threads[id] else { return short }
    var details: [String] = []
    if thread.kind ?? .thread != .thread { return short }
    if !short.hasSuffix("\(thread.tid)"), !short.hasSuffix("(tid \(thread.tid))") {
      details.append("tid \(thread.tid)")
    }
    if pids.count > 1, let pid = thread.pid, !isMain(thread) { details.append("process \(pid)") }
    if let queue = thread.queue { details.append("queue \(cleaned(queue))") }
    return details.isEmpty ? short : "\(short) (\(details.joined(separator: ", ")))"
  }

  /// `threads "a" and "b"`, or without the word where a name says it already.
  func list(_ ids: [ThreadID]) -> String {
    let names = ids.map(short)
    let word = names.allSatisfy { $0.hasPrefix("\"") } ? "threads " : ""
    return names.count > 1 ? word + joined(names) : names.first ?? ""
  }

  /// `a mutex`, `an operation`, `the main queue`.
  func some(_ id: ResourceID) -> String {
    if isMainQueue(id) { return "the main queue" }
    let kind = kind(id)
    let vowels: Set<Character> = ["a", "e", "i", "u"]
    let isOpen = kind.first.map { vowels.contains($0) } ?? false
    return (isOpen || kind.hasPrefix("operation") ? "an " : "a ") + kind
  }

  /// Of a pipe: it waits to be read, not to be written.
  func isFull(_ id: ResourceID) -> Bool { resources[id]?.name?.hasPrefix("full") ?? false }

  private func isMainQueue(_ id: ResourceID) -> Bool {
    resources[id].map { $0.kind == .queue && $0.name == Self.mainQueue } ?? false
  }

  static let mainQueue = "com.apple.main-thread"

  /// `mutex "cache" at 0x55d0c0de1040`.
  func resource(_ id: ResourceID) -> String {
    guard let resource = resources[id] else { return "an unknown resource" }
    if isMainQueue(id) { return "the main queue" }
    switch resource.kind {
    case .pipe, .process:
      let name = resource.kind == .process ? resource.name.map { " \"\(cleaned($0))\"" } : nil
      return "\(kind(id)) \(resource.address.rawValue)\(name ?? "")"
    case .fileLock: return kind(id) + (resource.name.map { " on \(cleaned($0))" } ?? "")
    default: break
    }
    let name = resource.name.map { " \"\(cleaned($0))\" at" } ?? ""
    return "\(kind(id))\(name) \(resource.address)"
  }

  func kind(_ id: ResourceID) -> String {
    guard let kind = resources[id]?.kind else { return "lock" }
    return switch kind {
    case .rwlock: "read-write lock"
    case .operationQueue: "operation queue"
    case .workItem: "work item"
    case .taskGroup: "task group"
    case .once: "one-time initialisation"
    case .pool: "cooperative pool"
    case .futex: "futex"
    case .pipe: resources[id]?.name ?? "pipe"
    case .fileLock: "file lock"
    default: kind.rawValue
    }
  }

  var program: String { program(of: []) }

  /// The program that these threads are of: the process itself, or a child that was followed.
  func program(of list: [ThreadID]) -> String {
    guard let process else { return "" }
    let pid = list.first.flatMap { threads[$0]?.pid } ?? process.pid
    let it = others[pid] ?? (pid == process.pid ? process : nil)
    let name =
      it.map { cleaned(fileName($0.executable)) }
      ?? "a child of \(cleaned(fileName(process.executable)))"
    return "\(name) (pid \(pid)\(pid == process.pid ? "" : ", started by pid \(process.pid)"))"
  }
}

/// `a, b and c`.
func joined(_ words: [String]) -> String {
  guard words.count > 1, let last = words.last else { return words.first ?? "" }
  return words.dropLast().joined(separator: ", ") + " and " + last
}

/// Names come from the watched program: what would move a terminal's cursor or hide text is written
/// out.
func cleaned(_ text: String) -> String {
  func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: false
    default: true
    }
  }
  guard !text.unicodeScalars.allSatisfy(isHarmless) else { return text }
  return text.unicodeScalars.reduce(into: "") { result, scalar in
    if isHarmless(scalar) {
      result.unicodeScalars.append(scalar)
    } else {
      result += "\\u{\(String(scalar.value, radix: 16))}"
    }
  }
}

func counted(_ count: Int, _ noun: String) -> String {
  count == 1 ? "1 \(noun)" : "\(count) \(noun)s"
}
