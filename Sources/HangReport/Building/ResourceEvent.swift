internal import WaitForGraph

/// What one thread did, from one place in the code, to a resource that nobody holds as one holds a
/// lock: a semaphore, a group, a condition, something suspended.
public struct ResourceEvent: Hashable, Sendable {
  public enum Action: Hashable, Sendable { case made, took, gave, askedToBeNotified }
  public var action: Action
  /// How often; the initial value of what was made.
  public var count: Int
  /// As reports quote it; nil where not known.
  public var thread: String?
  /// Seconds since the last time; nil where not known.
  public var secondsAgo: Double?
  public var stack: [Frame]
  public init(
    action: Action, count: Int, thread: String?, secondsAgo: Double?, stack: [Frame]
  ) {
    self.action = action
    self.count = count
    self.thread = thread
    self.secondsAgo = secondsAgo
    self.stack = stack
  }

  /// `"worker" entered group 0x1 here, twice, last 1.2 s ago`.
  func label(_ resource: String, _ kind: ResourceKind?) -> String {
    let who = thread ?? "somebody"
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
