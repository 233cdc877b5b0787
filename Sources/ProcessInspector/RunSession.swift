internal import CHangcheck
internal import Glibc
package import HangReport
internal import WaitForGraph

/// The eyes of `hangcheck run`: takes the arenas of the program and its children, and turns
/// deadlocks into reports.
package final class RunSession: RunWatch {
  let setup: RunSetup
  private(set) var processes: [ProcessID: RunProcess] = [:]
  private var waiting: Set<Int32> = []
  var report: HangReport
  package private(set) var predictions: [Prediction] = []
  /// All threads of a process stand in the report.
  private(set) var hasPicture = false
  private var rootWasSeen = false
  private let started: UInt64

  package init(_ setup: RunSetup) {
    self.setup = setup
    started = hck_monotonic_ns()
    report = HangReport(
      tool: setup.tool, mode: .run,
      process: WatchedProcess(
        pid: setup.pid, executable: setup.executable, arguments: setup.arguments))
  }

  deinit { for connection in waiting { close(connection) } }

  package var connections: [Int32] { waiting.sorted() }

  package func accept(_ connection: Int32, peer: Peer) {
    // Only the program's own user, or root, may tell us what it does.
    guard peer.uid == getuid() || peer.uid == 0 || getuid() == 0 else {
      close(connection)
      return
    }
    waiting.insert(connection)
    peers[connection] = ProcessID(peer.pid)
    _ = readable(connection)
  }
  private var peers: [Int32: ProcessID] = [:]

  /// A hello is one message; after it the agent has closed its side.
  package func readable(_ connection: Int32) -> [RunEvent] {
    var hello = hck_hello()
    var descriptor: Int32 = -1
    let error = hck_hello_receive(connection, &hello, &descriptor)
    if error == EAGAIN || error == EINTR { return [] }
    // The kernel's word on who sent it, not the message's.
    if error == 0, let pid = peers[connection] {
      let isRoot = pid.rawValue == setup.pid
      if let process = RunProcess(pid: pid, descriptor: descriptor, isRoot: isRoot) {
        process.confirmsAtExit = { [watch = process.watch] alarm, _ in
          watch.confirmsAtExit(alarm, now: hck_monotonic_ns())
        }
        processes[pid] = process
        if isRoot { rootWasSeen = true }
        _ = process.tick(now: hck_monotonic_ns())
      }
    } else if error == EPROTONOSUPPORT {
      addLimit("an agent of another version of hangcheck answered: check HANGCHECK_AGENT")
    }
    if descriptor >= 0 { close(descriptor) }
    close(connection)
    waiting.remove(connection)
    peers[connection] = nil
    return []
  }

  package func tick(now: UInt64) -> [RunEvent] {
    var events: [RunEvent] = []
    for pid in processes.keys.sorted() {
      guard let process = processes[pid] else { continue }
      // What the last tick returned has been written by now.
      process.settleAlarms()
      let confirmed = process.tick(now: now)
      if !confirmed.isEmpty { events.append(tell(confirmed, process)) }
      if let event = tellBlocking(of: process, now: now) { events.append(event) }
      if let event = tellLongWaits(of: process, now: now) { events.append(event) }
      if isEndOfProgram(process) { events.append(.report(report, mainThreadIsStuck: true)) }
      if let event = tellInversions(of: process, now: now) { events.append(event) }
      if let event = tellStranded(of: process, now: now) { events.append(event) }
      if let event = tellFamily(of: process, now: now) { events.append(event) }
      if let event = tellPools(of: process, now: now) { events.append(event) }
      if let event = tellHangs(of: process, now: now) { events.append(event) }
      if let event = tellLivelocks(of: process, now: now) { events.append(event) }
      if let event = tellAlarms(of: process, now: now) { events.append(event) }
      if let event = tellRaces(of: process) { events.append(event) }
      let isGone = !process.isRoot && !process.isAlive
      if addOrders(of: process, now: now, isLast: isGone) {
        events.append(.report(report, mainThreadIsStuck: false))
      }
      // The program's own arena is kept: it is what is known when it was killed.
      if isGone {
        if let event = tellInversions(of: process, now: now, isLast: true) { events.append(event) }
        if let event = tellAlarms(of: process, now: now) { events.append(event) }
        if let event = tellRaces(of: process) { events.append(event) }
        countHangs(of: process)
        processes[pid] = nil
      }
    }
    return events
  }

  /// Behind a deadlock that was told the program has come to stand still as a whole: what its main
  /// thread serves, if only as the main task, will never end. True once.
  private func isEndOfProgram(_ process: RunProcess) -> Bool {
    guard process.isRoot, !endWasTold, process.watch.standsStill,
      report.findings.contains(where: { $0.kind == .deadlock && $0.certainty == .certain })
    else { return false }
    endWasTold = true
    return true
  }
  private var endWasTold = false
  /// Of blocking calls in tasks: by fingerprint and severity.
  var toldBlocking: Set<String> = []

  /// What became certain in one look is one picture and one event: stopping all threads, and
  /// writing the report, once for each of a thousand deadlocks would take minutes.
  private func tell(_ all: [ConfirmedDeadlock], _ process: RunProcess) -> RunEvent {
    let look = all[0].look
    let picture = process.picture(of: look, deadlocks: all.map(\.deadlock))
    let builder = DeadlockFinding(
      threads: picture.threads, resources: picture.resources, process: report.process,
      history: picture.history)
    let findings = all.map { builder.finding(for: $0.deadlock, isGuess: $0.isGuess) }
    for guess in all where guess.isGuess { addLimit(builder.doubt(guess.deadlock)) }
    let main = look.threads.first { $0.tid.rawValue == process.pid.rawValue && $0.isAlive }
    let certain = all.filter { !$0.isGuess }
    let stuck = Set(certain.flatMap { $0.deadlock.edges.map(\.thread) + $0.deadlock.victims })
    // Where nothing can move any more the program is at its end, though its main thread may be parked.
    let mainIsStuck =
      main.map { stuck.contains($0.id) } ?? false
      || all.contains { $0.deadlock.needsStandstill }
    add(findings, picture, of: process)
    return .report(
      report, mainThreadIsStuck: mainIsStuck && process.isRoot,
      stuckChildren: mainIsStuck && !process.isRoot ? [process.pid.rawValue] : [])
  }

  /// Findings in the numbers of a picture, and what they need of it. `isWhole`: all of the process's
  /// threads are in it.
  func add(
    _ findings: [Finding], _ picture: RunProcess.Picture, of process: RunProcess,
    isWhole: Bool = true
  ) {
    nameProgram(of: process)
    let wanted = Set(findings.flatMap { $0.threads + $0.cycle.compactMap(\.ownedBy) })
    var picture = picture
    picture.threads.removeAll { $0.kind ?? .thread != .thread && !wanted.contains($0.id) }
    let adopted = adopt(picture, of: process)
    let findings = findings.map { renumbered($0, adopted) }
    let threads = Set(findings.flatMap { $0.threads + $0.cycle.compactMap(\.ownedBy) })
    add(
      adopted, named: hasPicture || !isWhole ? threads : nil,
      resources: Set(findings.flatMap(\.resources)), replaces: isWhole)
    if isWhole { hasPicture = true }
    for limit in picture.limits { addLimit(limit) }
    report.findings += findings
  }

  /// A finding that was told, as it is by now, in the numbers of a picture of then or of now.
  func replace(
    _ index: Int, by finding: Finding, _ picture: RunProcess.Picture, of process: RunProcess
  ) {
    let adopted = adopt(picture, of: process)
    let finding = renumbered(finding, adopted)
    add(
      adopted, named: Set(finding.threads), resources: Set(finding.resources), replaces: false)
    report.findings[index] = finding
  }

  /// A child, and a process that has become another program, are called by what they run.
  private func nameProgram(of process: RunProcess) {
    let running = process.program
    let isAsStarted =
      process.isRoot && fileName(running.executable) == fileName(report.process.executable)
    guard !isAsStarted, !running.executable.isEmpty else { return }
    report.processes = (report.processes ?? []).filter { $0.pid != running.pid } + [running]
  }

  private func fileName(_ path: String) -> Substring {
    path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]
  }

  /// One thread and one resource have one number in the whole report, however often they are seen.
  private struct Numbers {
    struct ThreadKey: Hashable {
      var pid: Int32?
      var tid: Int32
      /// Of what is no thread.
      var address: Address?
    }
    struct ResourceKey: Hashable {
      var pid: Int32
      var kind: ResourceKind
      var address: Address
    }
    var threads: [ThreadKey: ThreadID] = [:]
    var resources: [ResourceKey: ResourceID] = [:]
    var lastThread = 0
  }
  private var numbers = Numbers()

  /// A picture in the report's numbers, and how its own map to them.
  private struct Adopted {
    var picture: RunProcess.Picture
    var threads: [ThreadID: ThreadID] = [:]
    var resources: [ResourceID: ResourceID] = [:]
  }

  private func adopt(_ picture: RunProcess.Picture, of process: RunProcess) -> Adopted {
    var result = Adopted(picture: picture)
    var taken: Set<ThreadID> = []
    for thread in picture.threads {
      let key = Numbers.ThreadKey(pid: thread.pid, tid: thread.tid, address: thread.address)
      var id = numbers.threads[key]
      // An owner that has ended may share its id with a thread of today.
      if id == nil || taken.contains(id ?? ThreadID(0)) {
        numbers.lastThread += 1
        id = ThreadID(numbers.lastThread)
      }
      if let id { taken.insert(id) }
      result.threads[thread.id] = id
      numbers.threads[key] = id
    }
    for resource in picture.resources {
      let key = Numbers.ResourceKey(
        pid: process.pid.rawValue, kind: resource.kind, address: resource.address)
      let id = numbers.resources[key] ?? ResourceID(numbers.resources.count + 1)
      numbers.resources[key] = id
      result.resources[resource.id] = id
    }
    func thread(_ id: ThreadID) -> ThreadID { result.threads[id] ?? id }
    func resource(_ id: ResourceID) -> ResourceID { result.resources[id] ?? id }
    result.picture.threads = picture.threads.map { old in
      var new = old
      new.id = thread(old.id)
      if let wait = old.waitsFor { new.waitsFor?.resource = resource(wait.resource) }
      for index in new.holds.indices {
        new.holds[index].resource = resource(new.holds[index].resource)
      }
      return new
    }
    result.picture.resources = picture.resources.map { old in
      var new = old
      new.id = resource(old.id)
      new.owners = old.owners.map(thread)
      new.waiters = old.waiters.map(thread)
      return new
    }
    return result
  }

  private func renumbered(_ finding: Finding, _ adopted: Adopted) -> Finding {
    func thread(_ id: ThreadID) -> ThreadID { adopted.threads[id] ?? id }
    func resource(_ id: ResourceID) -> ResourceID { adopted.resources[id] ?? id }
    var finding = finding
    for index in finding.cycle.indices {
      finding.cycle[index].thread = thread(finding.cycle[index].thread)
      finding.cycle[index].waitsFor = resource(finding.cycle[index].waitsFor)
      finding.cycle[index].ownedBy = finding.cycle[index].ownedBy.map(thread)
    }
    finding.threads = finding.threads.map(thread)
    finding.resources = finding.resources.map(resource)
    for index in finding.evidence.indices {
      finding.evidence[index].thread = finding.evidence[index].thread.map(thread)
    }
    return finding
  }

  /// The first picture whole; of a later one what its findings name, which replaces what was known.
  /// What is known of no moment (`replaces` false) takes nobody's place.
  private func add(
    _ adopted: Adopted, named: Set<ThreadID>?, resources: Set<ResourceID>, replaces: Bool
  ) {
    guard let named else {
      let seen = Set(adopted.picture.threads.map(\.id))
      report.threads = adopted.picture.threads + report.threads.filter { !seen.contains($0.id) }
      report.resources = adopted.picture.resources
      return
    }
    for thread in adopted.picture.threads where named.contains(thread.id) {
      if let index = report.threads.firstIndex(where: { $0.id == thread.id }) {
        if replaces { report.threads[index] = thread }
      } else {
        report.threads.append(thread)
      }
    }
    let listed = Set(report.threads.map(\.id))
    for var resource in adopted.picture.resources {
      resource.owners = resource.owners.filter(listed.contains)
      resource.waiters = resource.waiters.filter(listed.contains)
      if let index = report.resources.firstIndex(where: { $0.id == resource.id }) {
        if replaces { report.resources[index] = resource }
      } else if !resource.owners.isEmpty || !resource.waiters.isEmpty
        || resources.contains(resource.id)
      {
        report.resources.append(resource)
      }
    }
  }

  package func finish(exit: RunEnd) -> HangReport {
    switch exit {
    case .status(let status): report.process.exit = .init(status: status)
    case .signal(let signal): report.process.exit = .init(signal: signal)
    }
    for pid in processes.keys.sorted() {
      guard let process = processes[pid] else { continue }
      _ = tellInversions(of: process, now: hck_monotonic_ns(), isLast: true)
      addLastAlarms(of: process, now: hck_monotonic_ns())
      addRaces(of: process)
      _ = addOrders(of: process, now: hck_monotonic_ns(), isLast: true)
      countHangs(of: process)
    }
    if case .signal(SIGKILL) = exit, !hasPicture, let root = processes[ProcessID(setup.pid)] {
      let picture = root.lastPicture(now: hck_monotonic_ns())
      report.threads = picture.threads
      report.resources = picture.resources
      for limit in picture.limits { addLimit(limit) }
    }
    for limit in setup.limits { addLimit(limit) }
    if !rootWasSeen && setup.limits.isEmpty {
      addLimit("the agent did not start in the program, so its locks were not seen")
    }
    return report
  }

  /// Lock orders that could deadlock; whether any is new.
  private func addOrders(of process: RunProcess, now: UInt64, isLast: Bool) -> Bool {
    guard setup.predicts,
      let (findings, picture, predicted) = process.orderFindings(
        now: now, isLast: isLast, process: report.process, without: deadlocked(process))
    else { return false }
    predictions += predicted
    add(findings, picture, of: process, isWhole: false)
    return true
  }

  /// The addresses of what is in each deadlock that was told of a process.
  private func deadlocked(_ process: RunProcess) -> [Set<UInt64>] {
    let pid = process.isRoot ? nil : process.pid.rawValue
    return report.findings.filter { $0.kind == .deadlock }.map { finding in
      guard report.threads.contains(where: { finding.threads.contains($0.id) && $0.pid == pid })
      else { return [] }
      return Set(
        report.resources.filter { finding.resources.contains($0.id) }.map(\.address.rawValue))
    }
  }

  func addLimit(_ text: String) {
    if report.limits?.contains(text) == true { return }
    report.limits = (report.limits ?? []) + [text]
  }
}
