internal import Glibc

/// The environment that the program gets: the inherited one, byte for byte and in its order, plus
/// the entries that the agent needs.
package struct LaunchEnvironment {
  private var entries: [UnsafeMutablePointer<CChar>] = []

  /// Borrows the process's own environment.
  package init(inherited: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = environ) {
    var next = inherited
    while let entry = next?.pointee {
      entries.append(entry)
      next = next.map { $0 + 1 }
    }
  }

  package init(_ strings: [String]) { entries = strings.compactMap { strdup($0) } }

  /// The value of the last entry with that name, which is the one that the loader obeys.
  package func value(of name: String) -> String? {
    bytes(of: name).map { String(decoding: $0, as: UTF8.self) }
  }

  package func bytes(of name: String) -> [UInt8]? {
    guard let index = index(of: name) else { return nil }
    let value = entries[index] + name.utf8.count + 1
    return UnsafeBufferPointer(start: value, count: strlen(value)).map { UInt8(bitPattern: $0) }
  }

  /// Puts the agent behind what is preloaded already and names the socket.
  package mutating func add(agent: String, link: String) {
    if let index = index(of: "LD_PRELOAD") {
      let old = entries[index]
      let bytes = UnsafeBufferPointer(start: old, count: strlen(old)).map { UInt8(bitPattern: $0) }
      let parts = bytes.dropFirst("LD_PRELOAD=".utf8.count)
        .split { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: " ") }
      let isEmpty = bytes.last == UInt8(ascii: "=")
      // hangcheck may itself run under hangcheck.
      let isThere = parts.contains { $0.elementsEqual(agent.utf8) }
      if !isThere {
        set(bytes + (isEmpty ? "" : ":").utf8 + agent.utf8, at: index)
      }
    } else {
      set(Array("LD_PRELOAD=\(agent)".utf8), at: nil)
    }
    set(Array("HANGCHECK_LINK=\(link)".utf8), at: index(of: "HANGCHECK_LINK"))
    let options = bytes(of: "TSAN_OPTIONS") ?? []
    set(
      "TSAN_OPTIONS=".utf8 + options + (options.isEmpty ? "" : ":").utf8
        + Self.sanitizerWord.utf8, at: index(of: "TSAN_OPTIONS"))
  }

  /// Makes ThreadSanitizer, in whatever program is built with it, say to the agent as well what it
  /// prints (`HCK_SANITIZER_WORD`); the agent takes it out again.
  private static let sanitizerWord = "log_to_syslog=1"

  package var array: CStringArray { CStringArray(entries) }
  package var strings: [String] { entries.map { String(cString: $0) } }

  private func index(of name: String) -> Int? {
    let key = name + "="
    return entries.lastIndex { strncmp($0, key, key.utf8.count) == 0 }
  }

  // The copy lives as long as the process, like the entries around it.
  private mutating func set(_ entry: [UInt8], at index: Int?) {
    let terminated = (entry + [0]).map { CChar(bitPattern: $0) }
    guard let copy = terminated.withUnsafeBufferPointer({ $0.baseAddress.flatMap { strdup($0) } })
    else { return }
    if let index { entries[index] = copy } else { entries.append(copy) }
  }
}

/// What the agent is told: `<abstract socket name>;<flags, comma-separated>[;<steering plan>]`.
package struct AgentLink: Sendable, Hashable, CustomStringConvertible {
  package var socketName: String
  package var followsChildren: Bool
  /// `full`, `site` or `none`.
  package var stacks: String
  /// Whether lock orders are learned, and whether semaphores count as locks there.
  package var learnsOrders: Bool
  package var learnsSemaphores: Bool
  package var plan: SteeringPlan?
  package init(
    socketName: String, followsChildren: Bool, stacks: String, learnsOrders: Bool = false,
    learnsSemaphores: Bool = false, plan: SteeringPlan? = nil
  ) {
    self.socketName = socketName
    self.followsChildren = followsChildren
    self.stacks = stacks
    self.learnsOrders = learnsOrders
    self.learnsSemaphores = learnsSemaphores
    self.plan = plan
  }
  package var description: String {
    "\(socketName);\(followsChildren ? "follow" : "nofollow"),stacks=\(stacks)"
      + (learnsOrders ? ",orders" : "") + (learnsSemaphores ? ",semaphores" : "")
      + (plan.map { ";\($0)" } ?? "")
  }
}
