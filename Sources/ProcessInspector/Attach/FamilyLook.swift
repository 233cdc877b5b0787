internal import CHangcheck
internal import Glibc
internal import HangReport
internal import WaitForGraph

/// Several processes in one graph: those whose threads wait, in the kernel, for what others of them
/// have to do. Confined to one thread.
///
/// A wait for a pipe ends when any thread of any process that has its other end open acts; one for a
/// child when the child does. Who cannot be looked at may act at any time.
final class FamilyLook {
  /// What a thread waits for in the kernel.
  private struct KernelWait: Hashable {
    var kind: ResourceKind
    /// A pipe's or file's inode, a process's id.
    var number: UInt64
    /// A pipe that is to be read by others, not written.
    var isFull = false
    var processes: Set<ProcessID>
  }
  private struct Place: Hashable {
    var pid: ProcessID
    var tid: KernelThreadID
  }
  /// A look at all of them.
  struct Found {
    var looks: [Look]
    var snapshot: Snapshot
    var resources: [ResourceID: (kind: ResourceKind, number: UInt64, isFull: Bool)]
    var deadlocks: [Deadlock]
    /// Only the first threads of processes were taken for those who could act.
    var isLenient = false
    /// Threads in `Process.waitUntilExit()`, which looks after its child every 50 ms.
    var lookingAfter: Set<ThreadID> = []
  }

  let root: AttachSession
  private(set) var members: [AttachSession] = []
  private var waits: [Place: KernelWait] = [:]
  private var opaque: Set<ProcessID> = []
  private static let most = 32

  /// Nil where no thread of the process waits for another process.
  init?(_ root: AttachSession) {
    self.root = root
    members = [root]
    var next = 0
    while next < members.count {
      let member = members[next]
      next += 1
      addWaits(of: member)
      guard !waits.isEmpty else { return nil }
      let wanted = waits.filter { $0.key.pid == member.pid }.values.flatMap(\.processes)
      for pid in (wanted + children(of: member)).sorted() { follow(pid) }
    }
  }

  private func follow(_ pid: ProcessID) {
    guard !opaque.contains(pid), !members.contains(where: { $0.pid == pid }) else { return }
    guard members.count < Self.most,
      let member = try? AttachSession(pid: pid.rawValue, setup: root.setup)
    else {
      opaque.insert(pid)
      return
    }
    _ = member.prepare()
    members.append(member)
  }

  private func children(of member: AttachSession) -> [ProcessID] {
    member.files.threads().flatMap { tid in
      (member.proc.text("task/\(tid.rawValue)/children") ?? "").split(separator: " ")
        .compactMap { Int32($0) }
    }.map { ProcessID($0) }.filter { pid in
      guard let state = ProcReader(pid).state(KernelThreadID(pid.rawValue)) else { return false }
      return state != UInt8(ascii: "Z") || ProcessFiles(pid).threads().count > 1
    }
  }

  // MARK: - Waits in the kernel

  private func addWaits(of member: AttachSession) {
    var calls: [KernelThreadID: SystemCall] = [:]
    for tid in member.files.threads() { calls[tid] = member.proc.systemCall(tid)?.call }
    var links: [KernelThreadID: (link: String, reads: Bool)] = [:]
    for (tid, call) in calls {
      guard let reads = SystemCalls.reads(call.number),
        let link = member.proc.link("fd/\(Int32(truncatingIfNeeded: call.arguments[0]))")
      else { continue }
      if link.hasPrefix("pipe:[") {
        links[tid] = (link, reads)
      } else if let peer = DescriptorTable.peer(of: link, member.proc) {
        links[tid] = (peer, reads)
      }
    }
    let table = DescriptorTable(of: Set(links.values.map(\.link)))
    for (tid, call) in calls {
      let place = Place(pid: member.pid, tid: tid)
      if let (link, reads) = links[tid] {
        // Who writes waits for readers.
        guard let others = table.processes(link, reading: !reads, for: member.pid), !others.isEmpty,
          let inode = link.split(separator: "[").last.flatMap({ UInt64($0.dropLast()) })
        else { continue }
        waits[place] = KernelWait(
          kind: .pipe, number: inode, isFull: !reads, processes: others)
      } else if let child = Self.awaitedChild(call) {
        waits[place] = wait(forChild: child, of: member)
      } else if member.waitForProcess.contains(tid) {
        waits[place] = wait(forChild: -1, of: member)
      } else if call.number == 72 || call.number == 73,
        let (holder, inode) = DescriptorTable.lockHolder(of: member.pid)
      {
        waits[place] = KernelWait(kind: .fileLock, number: inode, processes: [holder])
      }
    }
  }

  /// The child that a call waits for; -1 for any.
  private static func awaitedChild(_ call: SystemCall) -> Int32? {
    switch call.number {
    case SystemCalls.wait4:
      let pid = Int32(truncatingIfNeeded: call.arguments[0])
      return pid > 0 || pid == -1 ? pid : nil
    case SystemCalls.waitid:
      // P_ALL, P_PID
      return call.arguments[0] == 0
        ? -1
        : call.arguments[0] == 1
          ? Int32(truncatingIfNeeded: call.arguments[1]) : nil
    default: return nil
    }
  }

  private func wait(forChild child: Int32, of member: AttachSession) -> KernelWait? {
    let all = children(of: member)
    let processes = child > 0 ? all.filter { $0.rawValue == child } : all
    guard let first = processes.min() else { return nil }
    return KernelWait(
      kind: .process, number: UInt64(first.rawValue), processes: Set(processes))
  }

  // MARK: - The graph

  /// Deadlocks in which one of these waits takes part, or that the process stands behind.
  ///
  /// `lenient`: of a process that could act, its first thread is the one that would. Others might, though
  /// they do something else now, so that what is found is possible and no more.
  private func look(lenient: Bool) -> Found {
    let looks = members.map { $0.watch.look(.kernel, now: hck_monotonic_ns()) }
    var found = Found(
      looks: looks, snapshot: Snapshot(threads: [], resources: [], hasOpenings: false),
      resources: [:], deadlocks: [])
    var offsets: [(threads: Int, resources: Int)] = []
    for look in looks {
      let offset = (found.snapshot.threads.count, found.snapshot.resources.count)
      offsets.append(offset)
      found.snapshot.threads += look.snapshot.threads.map { $0.moved(offset.0, offset.1) }
      found.snapshot.resources += look.snapshot.resources.map { $0.moved(offset.0, offset.1) }
    }
    var known: [KernelWait: ResourceID] = [:]
    for (place, wait) in waits.sorted(by: { ($0.key.pid, $0.key.tid) < ($1.key.pid, $1.key.tid) }) {
      guard let at = members.firstIndex(where: { $0.pid == place.pid }),
        let index = looks[at].threads.firstIndex(where: { $0.isAlive && $0.tid == place.tid }),
        wait.processes.allSatisfy({ pid in members.contains { $0.pid == pid } })
      else { continue }
      let thread = offsets[at].threads + index
      let id = known[wait] ?? ResourceID(found.snapshot.resources.count + 1)
      if known[wait] == nil {
        known[wait] = id
        found.resources[id] = (wait.kind, wait.number, wait.isFull)
        found.snapshot.resources.append(
          Snapshot.Resource(id: id, kind: wait.kind, isOpen: false, needsOne: true))
        for (number, member) in members.enumerated() where wait.processes.contains(member.pid) {
          for (index, seen) in looks[number].threads.enumerated()
          where seen.isAlive && seen.kind == .thread
            && (!lenient || seen.tid.rawValue == member.pid.rawValue)
          {
            found.snapshot.threads[offsets[number].threads + index].holds.append(
              Snapshot.Hold(resource: id, mode: .exclusive))
          }
        }
      }
      found.snapshot.threads[thread].isIdle = false
      if members[at].waitForProcess.contains(place.tid) {
        found.lookingAfter.insert(found.snapshot.threads[thread].id)
      }
      found.snapshot.threads[thread].isMain = at == 0 && place.tid.rawValue == place.pid.rawValue
      found.snapshot.threads[thread].wait = Snapshot.Wait(
        resource: id, mode: .exclusive, seconds: members[at].watch.quiet[place.tid])
    }
    for (number, look) in looks.enumerated() {
      for (index, seen) in look.threads.enumerated()
      where seen.isAlive && seen.kind == .thread && watchesFamily(members[number], seen.tid) {
        found.snapshot.threads[offsets[number].threads + index].isIdle = true
      }
    }
    found.snapshot.hasOpenings = hasOpenings(found, offsets.map(\.threads))
    let first = Set((1...max(1, looks[0].threads.count)).map { ThreadID($0) })
    found.isLenient = lenient
    found.deadlocks = WaitForGraph(found.snapshot).deadlocks().filter { deadlock in
      !first.isDisjoint(with: deadlock.edges.map(\.thread) + deadlock.victims)
        && (!lenient || deadlock.edges.contains { found.resources[$0.resource]?.kind == .pipe })
    }
    return found
  }

  /// Whether a thread selects nothing but sockets whose other ends these processes have, as Foundation's
  /// does for the ends of children.
  private func watchesFamily(_ member: AttachSession, _ tid: KernelThreadID) -> Bool {
    guard let call = member.proc.systemCall(tid)?.call,
      call.number == SystemCalls.select || call.number == SystemCalls.pselect,
      call.arguments[4] == 0, call.arguments[3] == 0, call.arguments[0] > 0,
      call.arguments[0] <= 65_536
    else { return false }
    let size = Int(call.arguments[0] + 63) / 64 * 8
    var links: Set<String> = []
    for set in [call.arguments[1], call.arguments[2]] where set != 0 {
      guard let bits = RemoteBytes(member.memory, set, size) else { return false }
      for descriptor in 0..<(size * 8) where bits.byte(descriptor / 8) & 1 << (descriptor % 8) != 0
      {
        guard let link = member.proc.link("fd/\(descriptor)"),
          let peer = DescriptorTable.peer(of: link, member.proc)
        else { return false }
        links.insert(peer)
      }
    }
    let table = DescriptorTable(of: links)
    return !links.isEmpty
      && links.allSatisfy { link in
        guard let others = table.processes(link, reading: false, for: member.pid) else {
          return false
        }
        return !others.isEmpty && others.allSatisfy { pid in members.contains { $0.pid == pid } }
      }
  }

  /// Whether anything but these threads could still act.
  private func hasOpenings(_ found: Found, _ offsets: [Int]) -> Bool {
    for (number, member) in members.enumerated() {
      let outside = member.watch.runtime.outside()
      var exceptions = OutsideWorld.Exceptions()
      // The end of a child of these processes is no news from outside.
      exceptions.signals = [SIGCHLD]
      guard children(of: member).allSatisfy({ pid in members.contains { $0.pid == pid } }),
        outside.signals(exceptions).isEmpty, outside.posixTimers().isEmpty,
        outside.machinery().isEmpty, outside.queuedWork(found.looks[number].threads.count).isEmpty
      else { return true }
      for (index, seen) in found.looks[number].threads.enumerated()
      where seen.isAlive && seen.kind == .thread {
        let thread = found.snapshot.threads[offsets[number] + index]
        guard seen.standing?.canMove ?? true, thread.wait == nil, !thread.isIdle else { continue }
        if !isManagerAtRest(member, seen, mainIsStuck: mainIsStuck(found, number, offsets[number]))
        {
          return true
        }
      }
    }
    return false
  }

  private func mainIsStuck(_ found: Found, _ number: Int, _ offset: Int) -> Bool {
    let main = found.looks[number].threads.firstIndex {
      $0.isAlive && $0.tid.rawValue == members[number].pid.rawValue
    }
    return main.map { found.snapshot.threads[offset + $0].wait != nil } ?? false
  }

  /// libdispatch's manager, all of whose timers were due long ago and are for the main queue, which its
  /// thread does not come to: they stir nobody.
  private func isManagerAtRest(
    _ member: AttachSession, _ thread: SeenThread, mainIsStuck: Bool
  ) -> Bool {
    guard mainIsStuck, let dispatch = member.watch.runtime.dispatch,
      dispatch.isManager(member.files.innerID(thread.tid) ?? thread.tid),
      case .outside(let what)? = thread.standing?.kind, what.hasPrefix("a timer due"),
      case .known = dispatch.timersInWords(), let timers = dispatch.timers()
    else { return false }
    return timers.allSatisfy { timer in
      timer.isOwn || (timer.isOverdue && timer.targetQueue == dispatch.layout.mainQueue)
    }
  }

  /// A look that another one, by threads that have not run meanwhile, has confirmed.
  func confirmed() -> Found? { confirmed(lenient: false) ?? confirmed(lenient: true) }

  private func confirmed(lenient: Bool) -> Found? {
    var last = look(lenient: lenient)
    for _ in 0..<4 {
      guard !last.deadlocks.isEmpty else { return nil }
      usleep(50_000)
      let next = look(lenient: lenient)
      if next.deadlocks == last.deadlocks,
        zip(next.looks, last.looks).allSatisfy({ now, before in
          lenient || now.isSame(before)
        }), !lenient || stoodStill(next, last)
      {
        return next
      }
      last = next
    }
    return nil
  }

  /// Whether no thread of the deadlocks has run between two looks.
  private func stoodStill(_ now: Found, _ before: Found) -> Bool {
    func timesRun(_ found: Found) -> [UInt64?] {
      var offset = 0
      var all: [ThreadID: UInt64] = [:]
      for look in found.looks {
        for (id, count) in look.timesRun { all[ThreadID(id.rawValue + offset)] = count }
        offset += look.threads.count
      }
      return found.deadlocks.flatMap(\.edges).map(\.thread)
        .filter { !found.lookingAfter.contains($0) }.map { all[$0] }
    }
    return timesRun(now) == timesRun(before)
  }
}

extension SystemCalls {
  /// Whether a call reads (else it writes) the descriptor that is its first argument.
  static func reads(_ number: Int) -> Bool? {
    switch number {
    case 0, 17, 19, 45, 47, 295, 327: true
    case 1, 18, 20, 44, 46, 296, 328: false
    default: nil
    }
  }
}

extension Look {
  /// Whether the same threads stand where they stood.
  fileprivate func isSame(_ other: Look) -> Bool {
    threads.map(\.tid) == other.threads.map(\.tid) && timesRun == other.timesRun
  }
}

extension Snapshot.Thread {
  fileprivate func moved(_ threads: Int, _ resources: Int) -> Snapshot.Thread {
    var copy = self
    copy.id = ThreadID(id.rawValue + threads)
    copy.isMain = false
    copy.wait?.resource = ResourceID((wait?.resource.rawValue ?? 0) + resources)
    for index in copy.moreWaits.indices {
      copy.moreWaits[index].resource = ResourceID(moreWaits[index].resource.rawValue + resources)
    }
    for index in copy.holds.indices {
      copy.holds[index].resource = ResourceID(holds[index].resource.rawValue + resources)
    }
    return copy
  }
}

extension Snapshot.Resource {
  fileprivate func moved(_ threads: Int, _ resources: Int) -> Snapshot.Resource {
    var copy = self
    copy.id = ResourceID(id.rawValue + resources)
    copy.thread = thread.map { ThreadID($0.rawValue + threads) }
    copy.wakers = wakers.map { ThreadID($0.rawValue + threads) }
    return copy
  }
}

extension DispatchMemory.Timer {
  /// Due more than a second ago.
  fileprivate var isOverdue: Bool {
    var copy = self
    copy.deadline = deadline &+ 1_000_000_000
    return copy.left == 0
  }
}
