internal import CHangcheck
internal import Glibc
internal import WaitForGraph

// What threads wait for outside of their own process.
extension FamilyLook {
  func addWaits(of member: AttachSession) {
    var calls: [KernelThreadID: SystemCall] = [:]
    for tid in member.files.threads() { calls[tid] = member.proc.systemCall(tid)?.call }
    var links: [KernelThreadID: (link: String, reads: Bool)] = [:]
    var requests: [KernelThreadID: FileLock] = [:]
    for (tid, call) in calls {
      let descriptor = Int32(truncatingIfNeeded: call.arguments[0])
      if call.number == SystemCalls.fcntl || call.number == SystemCalls.flock {
        requests[tid] = Self.inode(descriptor, member.proc).flatMap {
          FileLock(call, by: member.pid, inode: $0, member.memory)
        }
      }
      guard let reads = SystemCalls.reads(call.number),
        let link = member.proc.link("fd/\(descriptor)")
      else { continue }
      if link.hasPrefix("pipe:[") {
        links[tid] = (link, reads)
      } else if let peer = DescriptorTable.peer(of: link, member.proc) {
        links[tid] = (peer, reads)
      }
    }
    let table = DescriptorTable(of: Set(links.values.map(\.link)))
    let locks = FileLocks(on: Set(requests.values.map(\.inode)))
    for (tid, call) in calls {
      let place = Place(pid: member.pid, tid: tid)
      if let (link, reads) = links[tid] {
        // Who writes waits for readers.
        guard let others = table.processes(link, reading: !reads, for: member.pid), !others.isEmpty,
          let inode = link.split(separator: "[").last.flatMap({ UInt64($0.dropLast()) })
        else { continue }
        waits[place] = [
          KernelWait(kind: .pipe, number: inode, isFull: !reads, processes: others)
        ]
      } else if let request = requests[tid] {
        let descriptor = Int32(truncatingIfNeeded: call.arguments[0])
        guard let against = locks.against(request, by: member.pid, descriptor) else { continue }
        let path = member.proc.link("fd/\(descriptor)")
        waits[place] = against.map { lock, holders in
          KernelWait(
            kind: .fileLock, number: lock.inode, processes: holders, lock: lock, name: path)
        }
      } else if let children = awaited(call, of: member) {
        waits[place] = wait(forOneOf: children)
      } else if member.waitForProcess.contains(tid) {
        waits[place] = wait(forOneOf: self.children(of: member))
      }
    }
  }

  private static func inode(_ descriptor: Int32, _ proc: ProcReader) -> UInt64? {
    let lines = (proc.text("fdinfo/\(descriptor)") ?? "").split(separator: "\n")
    if let line = lines.first(where: { $0.hasPrefix("ino:") }) {
      return UInt64(line.dropFirst(4).drop { $0 == "\t" })
    }
    var status = stat()
    return stat("\(proc.folder)fd/\(descriptor)", &status) == 0 ? UInt64(status.st_ino) : nil
  }

  /// The children of which one has to end before a call comes back; nil for other calls.
  private func awaited(_ call: SystemCall, of member: AttachSession) -> [ProcessID]? {
    let all = children(of: member)
    let id = Int32(truncatingIfNeeded: call.arguments[0])
    func ofGroup(_ group: Int32) -> [ProcessID] {
      let group = group == 0 ? getpgid(member.pid.rawValue) : group
      return all.filter { getpgid($0.rawValue) == group }
    }
    switch call.number {
    case SystemCalls.wait4:
      return id == -1 ? all : id > 0 ? all.filter { inner($0) == id } : ofGroup(-id)
    case SystemCalls.waitid:
      let id = Int32(truncatingIfNeeded: call.arguments[1])
      switch call.arguments[0] {
      case 0: return all
      case 1: return all.filter { inner($0) == id }
      case 2: return ofGroup(id)
      case 3:
        let lines = (member.proc.text("fdinfo/\(id)") ?? "").split(separator: "\n")
        guard let line = lines.first(where: { $0.hasPrefix("Pid:") }),
          let pid = Int32(line.dropFirst(4).drop { $0 == "\t" })
        else { return nil }
        return all.filter { $0.rawValue == pid }
      default: return nil
      }
    default: return nil
    }
  }

  /// A child's id as its parent knows it: that of the namespace before the child's own, if it has one.
  private func inner(_ child: ProcessID) -> Int32 {
    let status = ProcReader(child).text("status") ?? ""
    func ids(_ status: String) -> [Int32] {
      let line = status.split(separator: "\n").first { $0.hasPrefix("NSpid:") }
      return (line ?? "").split(separator: "\t").compactMap { Int32($0) }
    }
    let parent = status.split(separator: "\n").first { $0.hasPrefix("PPid:") }
      .flatMap { Int32($0.dropFirst(5).drop { $0 == "\t" }) }
    let depth = parent.map { ids(ProcReader(ProcessID($0)).text("status") ?? "").count } ?? 1
    let all = ids(status)
    return depth >= 1 && depth <= all.count ? all[depth - 1] : child.rawValue
  }

  private func wait(forOneOf children: [ProcessID]) -> [KernelWait]? {
    guard let first = children.min() else { return nil }
    return [
      KernelWait(
        kind: .process, number: UInt64(first.rawValue), processes: Set(children))
    ]
  }

  // MARK: - Memory that processes share

  /// Waits on words that other processes have mapped as well. Where a lock's memory names its owner,
  /// that process is answered, to be followed.
  func addSharedWaits(of member: AttachSession) -> [ProcessID] {
    let look = member.watch.look(.kernel, now: hck_monotonic_ns())
    let own = Set(member.files.threads())
    var owners: Set<ProcessID> = []
    var maps: String?
    for thread in look.snapshot.threads where thread.kind == .thread && thread.isAlive {
      let seen = look.thread(thread.id)
      let place = Place(pid: member.pid, tid: seen.tid)
      guard case .blocked(let address, false)? = seen.standing?.kind, waits[place] == nil else {
        continue
      }
      var kind = ResourceKind.futex
      var number = address
      if let wait = thread.wait {
        let holders = look.snapshot.threads.filter { other in
          other.holds.contains { $0.resource == wait.resource }
        }
        guard holders.isEmpty else {
          for holder in holders.map({ look.thread($0.id) })
          where holder.isAlive && !own.contains(holder.tid) {
            if let process = Self.process(of: holder.tid) { owners.insert(process) }
          }
          continue
        }
        let key = look.resource(wait.resource)
        kind = ResourceKind(recorded: key.kind)
        number = key.address
      }
      // Given already, it is about to end.
      if kind == .semaphore, member.memory.word32(number) != 0 { continue }
      let text = maps ?? member.proc.text("maps") ?? ""
      maps = text
      guard [.semaphore, .condition, .barrier, .futex, .rwlock].contains(kind),
        let shared = SharedPlace(number, maps: text), !shared.isNamed,
        let others = shared.processes(for: member.pid), !others.isEmpty
      else { continue }
      waits[place] = [KernelWait(kind: kind, number: number, processes: others, place: shared)]
    }
    unifyAddresses()
    return Array(owners)
  }

  /// One place has one address in a report: that of the process which comes first.
  private func unifyAddresses() {
    var known: [SharedPlace: UInt64] = [:]
    for (at, list) in waits.sorted(by: { ($0.key.pid, $0.key.tid) < ($1.key.pid, $1.key.tid) }) {
      for (index, wait) in list.enumerated() {
        guard let place = wait.place else { continue }
        known[place] = known[place] ?? wait.number
        waits[at]?[index].number = known[place] ?? wait.number
      }
    }
  }

  /// The process that a thread belongs to.
  static func process(of tid: KernelThreadID) -> ProcessID? {
    let status = ProcReader(ProcessID(tid.rawValue)).text("status") ?? ""
    return status.split(separator: "\n").first { $0.hasPrefix("Tgid:") }
      .flatMap { Int32($0.dropFirst(5).drop { $0 == "\t" }) }.map { ProcessID($0) }
  }
}
