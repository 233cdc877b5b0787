import WaitForGraph

/// Lock orders in a few words: `"1: a b; 2: b a"`, a stack of locks taken and given back by one
/// thread a line, in the order of time.
///
/// A lock is a letter, and perhaps a digit: locks of one letter are of one class. `r` and `w` are
/// read-write locks, `w` with writers preferred. `a'` is taken shared, `a?` without waiting for it;
/// `a-` gives it back. Other lines: `1 makes 2` (a thread begins), `1 joins 2`, `1 tells 2` (any
/// other hand-over), `1 ends`. Threads that are not made know nothing of each other. A site is a
/// lock's letter and mode, and `a=7` says otherwise.
struct OrderSituation: CustomStringConvertible, Sendable {
  var description: String
  var expected: [String]

  init(_ description: String, _ expected: String...) {
    self.description = description
    self.expected = expected
  }

  /// Cycles as `"1:a>b 2:b>a"`: the thread, what it holds of the cycle, what it waits for; and
  /// `one` before those of one thread.
  var found: [String] {
    let (record, names) = parse(description)
    return record.potentialDeadlocks().map { deadlock in
      let steps = deadlock.steps.map { step in
        let occurrence = record.occurrences[step.occurrence]
        let held = names[record.nodes[step.held].lock]
        return "\(occurrence.thread):\(held)>\(names[record.nodes[occurrence.node].lock])"
      }
      return ((deadlock.isOfOneThread ? ["one"] : []) + steps).joined(separator: " ")
    }
  }
}

private func parse(_ text: String) -> (record: LockOrderRecord, names: [String]) {
  let lines = text.split(separator: ";").map { line in
    line.split(whereSeparator: { " :".contains($0) }).map(String.init)
  }
  let verbs = ["makes", "joins", "tells", "ends"]
  var names: [String] = []
  for line in lines where !verbs.contains(line[1]) {
    for word in line.dropFirst() {
      let name = String(word.prefix { $0.isLetter || $0.isNumber })
      if !names.contains(name) { names.append(name) }
    }
  }
  var recorder = OrderRecorder(
    locks: names.map { name in
      .init(
        kind: name.hasPrefix("w") || name.hasPrefix("r") ? .rwlock : .mutex,
        blocksReaders: name.hasPrefix("w"), classID: code(name))
    })
  var known: Set<Int> = []
  func begin(_ thread: Int, _ clock: OrderRecorder.Clock = []) {
    if known.insert(thread).inserted { recorder.start(thread, knowing: clock) }
  }
  var last: [Int: OrderRecorder.Clock] = [:]
  for line in lines {
    let thread = Int(line[0])!
    begin(thread)
    switch line[1] {
    case "makes": begin(Int(line[2])!, recorder.handOver(thread))
    case "tells":
      begin(Int(line[2])!)
      recorder.learn(Int(line[2])!, recorder.handOver(thread))
    case "ends": last[thread] = recorder.end(thread)
    case "joins":
      let ended = Int(line[2])!
      recorder.learn(thread, last[ended] ?? recorder.end(ended))
    default:
      var held: [Int] = []
      for word in line.dropFirst() {
        let name = String(word.prefix { $0.isLetter || $0.isNumber })
        let lock = names.firstIndex(of: name)!
        let rest = word.dropFirst(name.count)
        if rest == "-" {
          recorder.give(thread, lock)
          held.remove(at: held.lastIndex(of: lock)!)
          continue
        }
        let mode = rest.contains("'") ? Mode.shared : .exclusive
        let site =
          rest.firstIndex(of: "=").map { Int(rest[rest.index(after: $0)...])! }
          ?? code(name) * 2 + (mode == .shared ? 1 : 0)
        recorder.take(thread, lock, mode, isRequest: !rest.contains("?"), site: site + 1000)
        held.append(lock)
      }
      for lock in held.reversed() { recorder.give(thread, lock) }
    }
  }
  return (recorder.record, names)
}

private func code(_ name: String) -> Int { Int(name.unicodeScalars.first!.value) }
