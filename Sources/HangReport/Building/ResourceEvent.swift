public import WaitForGraph

/// What one thread did, from one place in the code, to a resource that nobody holds as one holds a
/// lock: a semaphore, a group, a condition, something suspended.
public struct ResourceEvent: Hashable, Sendable {
  public enum Action: Hashable, Sendable { case made, took, gave, askedToBeNotified }
  public var action: Action
  /// How often; the initial value of what was made.
  public var count: Int
  /// Of the report; nil where it has ended, or is not known.
  public var thread: ThreadID?
  /// What it was called, where it has ended.
  public var threadName: String?
  /// How many threads did so.
  public var threads = 1
  /// Seconds since the last time; nil where not known.
  public var secondsAgo: Double?
  public var stack: [Frame]
  public init(
    action: Action, count: Int, thread: ThreadID?, threadName: String? = nil,
    secondsAgo: Double?, stack: [Frame]
  ) {
    self.action = action
    self.count = count
    self.thread = thread
    self.threadName = threadName
    self.secondsAgo = secondsAgo
    self.stack = stack
  }

  /// Whether another thread did the same from the same line.
  public func isAtSamePlace(as other: ResourceEvent) -> Bool {
    action == other.action && action != .made && stack.count == other.stack.count
      && zip(stack, other.stack).allSatisfy { a, b in
        a.symbol == b.symbol && a.file == b.file && a.line == b.line && a.column == b.column
      }
  }

  /// Adds what another thread did at the same place.
  public mutating func add(_ other: ResourceEvent) {
    count += other.count
    threads += other.threads
    thread = nil
    threadName = nil
    secondsAgo = [secondsAgo, other.secondsAgo].compactMap { $0 }.min()
  }

  /// `"worker" entered group 0x1 here, twice, last 1.2 s ago`.
  func label(_ id: ResourceID, _ names: Names) -> String {
    let (resource, kind) = (names.resource(id), names.resources[id]?.kind)
    let ended = threadName.flatMap { names.isProgram($0) ? nil : $0 }.map {
      "\"\(cleaned($0))\", which has ended,"
    }
    let who =
      threads > 1
      ? "\(threads) threads" : thread.map(names.short) ?? ended ?? "a thread that has ended"
    if action == .made {
      let value = kind == .semaphore ? " with the value \(count)" : ""
      return "\(resource) was made here\(value)"
    }
    let times = count == 1 ? "" : count == 2 ? ", twice" : ", \(count) times"
    let ago = secondsAgo.map { ", \(count == 1 ? "" : "last ")\(TextPage.duration($0)) ago" } ?? ""
    return "\(who) \(verb(kind)) \(resource) here\(times)\(ago)"
  }

  private func verb(_ kind: ResourceKind?) -> String {
    switch (action, kind) {
    case (.made, _): "made"
    case (.took, .group?): "entered"
    case (.took, .semaphore?): "took a permit of"
    case (.took, _): "suspended"
    case (.gave, .group?): "left"
    case (.gave, .semaphore?), (.gave, .condition?): "signalled"
    case (.gave, _): "resumed"
    case (.askedToBeNotified, _): "asked to be notified by"
    }
  }
}
