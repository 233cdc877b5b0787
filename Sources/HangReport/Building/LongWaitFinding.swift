public import WaitForGraph

/// Makes the note that a thread waited long for one thing and no cycle explains it.
public struct LongWaitFinding: Sendable {
  private let names: Names
  private let history: [ResourceID: [ResourceEvent]]

  public init(
    threads: [Thread], resources: [Resource], process: WatchedProcess? = nil,
    history: [ResourceID: [ResourceEvent]] = [:]
  ) {
    names = Names(threads: threads, resources: resources, process: process)
    self.history = history
  }

  /// The note; nil for a thread that does not wait.
  public func finding(for thread: Thread, time: String = UTCTime.now()) -> Finding? {
    guard let wait = thread.waitsFor else { return nil }
    let resource = names.resources[wait.resource]
    let tenths = Int((wait.seconds ?? 0) * 10)
    let owners = resource?.owners.map { names.short($0) } ?? []
    let held =
      owners.isEmpty ? "nobody is known to hold it" : "held by " + owners.joined(separator: ", ")
    var evidence = [
      Finding.Evidence(
        label: "\(names.short(thread.id)) waits here", thread: thread.id, stack: wait.stack)
    ]
    for owner in resource?.owners ?? [] {
      guard let hold = names.threads[owner]?.holds.last(where: { $0.resource == wait.resource }),
        !hold.stack.isEmpty
      else { continue }
      evidence.append(
        .init(label: "\(names.short(owner)) took it here", thread: owner, stack: hold.stack))
    }
    for event in history[wait.resource] ?? [] {
      evidence.append(
        .init(label: event.label(wait.resource, names), thread: nil, stack: event.stack))
    }
    return Finding(
      kind: .longWait, severity: .note, certainty: .possible,
      message: "\(names.short(thread.id)) has waited \(tenths / 10).\(tenths % 10) s for"
        + " \(names.resource(wait.resource)); \(held)",
      threads: [thread.id], resources: [wait.resource],
      evidence: evidence,
      fingerprint: Fingerprint.sites(
        .longWait, [resource?.kind.rawValue ?? ""], stacks: [wait.stack]),
      time: time)
  }
}
