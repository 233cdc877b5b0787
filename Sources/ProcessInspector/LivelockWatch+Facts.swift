internal import HangReport
internal import WaitForGraph

extension ReportAssembler {
  /// What a report says of a livelock; `resources` gets what is held by nobody just now.
  func facts(
    of found: LivelockWatch.Found, _ resources: inout [Resource]
  ) -> LivelockFacts {
    let members = found.members.compactMap { member -> LivelockFacts.Member? in
      guard
        let thread = found.look.threads.first(where: {
          $0.tid == member.tid && $0.isAlive && $0.kind == .thread
        })
      else { return nil }
      let lock = listed(member.lock, found.look, &resources)
      let taken =
        member.taken.map { acquisition($0, live: []) }
        ?? member.takenAt.map {
          symbolizer.frames(for: [RawFrame(pc: $0, cfa: 0, isExact: false)])
        }
        ?? permitTaken(member, by: found, lock)
      return .init(
        thread: thread.id, failures: member.failures, wanted: lock,
        tried: acquisition(member.tried, live: []), taken: taken)
    }
    // One that has ended is in no circle.
    return LivelockFacts(
      members: members.count == found.members.count ? members : [], seconds: found.seconds)
  }

  /// Its number in the report, to which it is added where nobody holds it or waits for it.
  func listed(_ key: ResourceKey, _ look: Look, _ resources: inout [Resource]) -> ResourceID {
    let kind = ResourceKind(recorded: key.kind)
    let address = Address(key.address)
    if let known = resources.first(where: { $0.address == address && $0.kind == kind }) {
      return known.id
    }
    let seen = look.resources.firstIndex(of: key).map { ResourceID($0 + 1) }
    let id =
      seen ?? ResourceID(max(look.resources.count, resources.map(\.id.rawValue).max() ?? 0) + 1)
    resources.append(
      Resource(
        id: id, kind: kind, name: name(key), address: address, owners: [], waiters: []))
    return id
  }

  /// Of a semaphore: where the next member takes its permits.
  private func permitTaken(
    _ member: LivelockWatch.Member, by found: LivelockWatch.Found, _ lock: ResourceID
  ) -> [Frame] {
    guard let index = found.members.firstIndex(where: { $0.tid == member.tid }) else { return [] }
    let next = found.members[(index + 1) % found.members.count].tid
    let thread = found.look.threads.first { $0.tid == next && $0.isAlive }
    return events(of: member.lock, found.look).first {
      $0.action == .took && $0.thread == thread?.id
    }?.stack ?? []
  }
}
