import WaitForGraph

/// A snapshot in a few words: `"1 holds a, waits b"`, one thread a line.
///
/// Words: `holds X`, `reads X` (holds shared), `waits X`, `wantsRead X`, `timed X`, `joins N`, `gone`. Resources get
/// their kind from the first letter: `w…` rwlock, `r…` recursive mutex, `k…` condition, `y…` barrier, `s…` and `t…`
/// semaphore, `u…` forsaken semaphore, `o…` semaphore that nobody but its wakers
/// signals (`ou…`: the rest is proved), `p…` pool, `g…` open group; others are mutexes. Also `andWaits X`, `wakes X`, `idle`, `gone`; a line `closed`:
/// nothing from outside can act.
struct Situation: CustomStringConvertible, Sendable {
  var description: String
  var expected: [String]

  init(_ description: String, _ expected: String...) {
    self.description = description
    self.expected = expected
  }

  var snapshot: Snapshot { parse(description).snapshot }
  private var names: [ResourceID: String] { parse(description).names }

  /// Deadlocks as `"1-a>2 2-b>1 | 3 4"`: edges, then victims.
  var found: [String] {
    let names = names
    return WaitForGraph(snapshot).deadlocks().map { deadlock in
      let edges = deadlock.edges.map {
        "\($0.thread.rawValue)-\(names[$0.resource]!)>\($0.owner?.rawValue ?? -1)"
      }
      var words = edges
      if deadlock.cause == .ownerGone { words.append("gone") }
      if deadlock.cause == .forsaken { words.append("forsaken") }
      if deadlock.cause == .nobodyCanWake { words.append("nobody") }
      if !deadlock.victims.isEmpty { words += ["|"] + deadlock.victims.map { "\($0.rawValue)" } }
      return words.joined(separator: " ")
    }
  }
}

private func parse(_ text: String) -> (snapshot: Snapshot, names: [ResourceID: String]) {
  var ids: [String: ResourceID] = [:]
  var snapshot = Snapshot(threads: [], resources: [])
  func resource(_ name: String, joins: Int? = nil) -> ResourceID {
    if let known = ids[name] { return known }
    let id = ResourceID(ids.count + 1)
    ids[name] = id
    var made = Snapshot.Resource(id: id, kind: .mutex)
    switch name.first {
    case "w": made.kind = .rwlock
    case "r": made.isReentrant = true
    case "k":
      made.kind = .condition
      made.isOpen = true
    case "y":
      made.kind = .barrier
      made.isOpen = true
    case "s", "t":
      made.kind = .semaphore
      made.isOpen = true
    case "u":
      made.kind = .semaphore
      made.isOpen = true
      made.isForsaken = true
    case "o":
      made.kind = .semaphore
      made.hasOnlyWakers = true
      made.needsOne = true
      made.isOpen = false
      made.isForsaken = name.hasPrefix("ou")
    case "p":
      made.kind = .pool
      made.needsOne = true
    case "g":
      made.kind = .group
      made.isOpen = true
    default: break
    }
    if let joins {
      made.kind = .thread
      made.thread = ThreadID(joins)
    }
    snapshot.resources.append(made)
    return id
  }
  for line in text.split(separator: ";") {
    let words = line.split(whereSeparator: { " ,".contains($0) }).map(String.init)
    if words[0] == "closed" {
      snapshot.hasOpenings = false
      continue
    }
    var thread = Snapshot.Thread(id: ThreadID(Int(words[0])!))
    var index = 1
    while index < words.count {
      let word = words[index]
      let name = index + 1 < words.count ? words[index + 1] : ""
      index += 2
      switch word {
      case "holds": thread.holds.append(.init(resource: resource(name), mode: .exclusive))
      case "reads": thread.holds.append(.init(resource: resource(name), mode: .shared))
      case "waits": thread.wait = .init(resource: resource(name), mode: .exclusive)
      case "wantsRead": thread.wait = .init(resource: resource(name), mode: .shared)
      case "timed":
        thread.wait = .init(resource: resource(name), mode: .exclusive, isTimed: true)
      case "joins":
        thread.wait = .init(resource: resource("j" + name, joins: Int(name)!), mode: .exclusive)
      case "gone":
        thread.isAlive = false
        index -= 1
      case "idle":
        thread.isIdle = true
        index -= 1
      case "andWaits":
        thread.moreWaits.append(.init(resource: resource(name), mode: .exclusive))
      case "wakes":
        let id = resource(name)
        let at = snapshot.resources.firstIndex { $0.id == id }!
        snapshot.resources[at].wakers.append(thread.id)
      default: fatalError("unknown word \(word)")
      }
    }
    snapshot.threads.append(thread)
  }
  return (snapshot, Dictionary(uniqueKeysWithValues: ids.map { ($1, $0) }))
}
