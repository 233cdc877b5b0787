internal import CHangcheck
internal import Glibc
internal import HangReport
internal import WaitForGraph

/// Several processes in one graph: those whose threads wait, in the kernel or in memory that they
/// share, for what others of them have to do. Confined to one thread.
///
/// A wait for a pipe ends when any thread of any process that has its other end open acts; one for a
/// child when the child does. Who cannot be looked at may act at any time.
final class FamilyLook {
  /// What a thread waits for outside of its own process.
  struct KernelWait: Hashable {
    var kind: ResourceKind
    /// A pipe's or file's inode, a process's id, an address.
    var number: UInt64
    /// A pipe that is to be read by others, not written.
    var isFull = false
    /// Any thread of any of these may end it.
    var processes: Set<ProcessID>
    /// Of a lock on a file: which, and on what.
    var lock: FileLock?
    var name: String?
    /// Of a word in memory.
    var place: SharedPlace?
  }
  struct Place: Hashable {
    var pid: ProcessID
    var tid: KernelThreadID
  }
  /// A look at all of them.
  struct Found {
    var looks: [Look]
    var snapshot: Snapshot
    var resources: [ResourceID: KernelWait]
    var deadlocks: [Deadlock]
    /// Where each look's threads and resources begin.
    var offsets: [(threads: Int, resources: Int)] = []
    /// The same lock, seen by several processes: the others by the first.
    var aliases: [ResourceID: ResourceID] = [:]
    /// Threads that stand for one of another process, which is listed as well.
    var proxies: Set<ThreadID> = []
    /// Only the first threads of processes were taken for those who could act.
    var isLenient = false
    /// Threads in `Process.waitUntilExit()`, which looks after its child every 50 ms.
    var lookingAfter: Set<ThreadID> = []
  }

  let root: AttachSession
  private(set) var members: [AttachSession] = []
  /// All of a thread's must end before it goes on.
  var waits: [Place: [KernelWait]] = [:]
  private var opaque: Set<ProcessID> = []
  private static let most = 32
  /// So long a look at the others goes on while something looks like a deadlock.
  private static let mostTime: UInt64 = 1_500_000_000

  /// Nil where no thread of the process waits for another process.
  init?(_ root: AttachSession) {
    self.root = root
    members = [root]
    var next = 0
    while next < members.count {
      let member = members[next]
      next += 1
      addWaits(of: member)
      let owners = addSharedWaits(of: member)
      guard next > 1 || !waits.isEmpty || !owners.isEmpty || awaitsSignal(of: member) else {
        return nil
      }
      let wanted = waits.filter { $0.key.pid == member.pid }.values.joined().flatMap(\.processes)
      for pid in (wanted + owners + children(of: member)).sorted() { follow(pid) }
    }
  }

  /// Shells wait for a signal that tells of a child's end.
  private func awaitsSignal(of member: AttachSession) -> Bool {
    let call = member.proc.systemCall(KernelThreadID(member.pid.rawValue))?.call
    return call?.number == SystemCalls.sigsuspend && !children(of: member).isEmpty
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

  func children(of member: AttachSession) -> [ProcessID] {
    member.files.threads().flatMap { tid in
      (member.proc.text("task/\(tid.rawValue)/children") ?? "").split(separator: " ")
        .compactMap { Int32($0) }
    }.map { ProcessID($0) }.filter { !ProcReader($0).hasEnded }
  }

  // MARK: - Looks that agree

  /// A look that another one, by threads that have not run meanwhile, has confirmed.
  ///
  /// `inside`: also what is wrong within one of the others.
  func confirmed(inside: Bool = false) -> Found? {
    confirmed(lenient: false) ?? (inside ? confirmedInside() : nil) ?? confirmed(lenient: true)
  }

  private func confirmed(lenient: Bool) -> Found? {
    var last = look(lenient: lenient)
    for _ in 0..<4 {
      guard !last.deadlocks.isEmpty else { return nil }
      usleep(50_000)
      let next = look(lenient: lenient)
      if next.deadlocks == last.deadlocks, stoodStill(next, last) { return next }
      last = next
    }
    return nil
  }

  /// Deadlocks of which one process has all; the others may wait behind it.
  private func confirmedInside() -> Found? {
    var candidates: [[DeadlockWatch.Identity: DeadlockWatch.Candidate]] =
      members.map { _ in [:] }
    var looks: [Int: Look] = [:]
    var told: [Int: [Deadlock]] = [:]
    let begun = hck_monotonic_ns()
    repeat {
      for (number, member) in members.enumerated().dropFirst() where told[number] == nil {
        let look = member.watch.look(.whole, now: hck_monotonic_ns())
        let confirmed = member.watch.confirm(look, &candidates[number], now: hck_monotonic_ns())
        guard !confirmed.isEmpty else { continue }
        told[number] = confirmed.map(\.deadlock)
        looks[number] = look
        candidates[number] = [:]
      }
      if candidates.allSatisfy(\.isEmpty) { break }
      usleep(25_000)
    } while hck_monotonic_ns() &- begun < Self.mostTime
    guard !told.isEmpty else { return nil }
    var found = merged(
      members.enumerated().map { number, member in
        looks[number] ?? member.watch.look(.kernel, now: hck_monotonic_ns())
      }, lenient: false)
    let all = WaitForGraph(found.snapshot).deadlocks()
    for (number, deadlocks) in told.sorted(by: { $0.key < $1.key }) {
      let offset = found.offsets[number]
      for deadlock in deadlocks {
        let own = deadlock.moved(offset.threads, offset.resources)
        // Seen as a whole it has those behind it that wait in other processes.
        let whole = all.first { Set($0.edges.map(\.thread)) == Set(own.edges.map(\.thread)) }
        found.deadlocks.append(whole ?? own)
      }
    }
    return found
  }

  /// Whether nobody of the deadlocks, and nobody who would have to act, has run between two looks.
  private func stoodStill(_ now: Found, _ before: Found) -> Bool {
    func timesRun(_ found: Found) -> [ThreadID: UInt64?] {
      var all: [ThreadID: UInt64?] = [:]
      for (look, offset) in zip(found.looks, found.offsets) {
        for thread in look.threads where thread.isAlive {
          all[ThreadID(thread.id.rawValue + offset.threads)] = look.timesRun[thread.id]
        }
      }
      let edges = found.deadlocks.flatMap(\.edges)
      var concerned = Set(edges.map(\.thread))
      if found.isLenient {
        concerned.subtract(found.lookingAfter)
      } else {
        let resources = Set(edges.map(\.resource))
        for thread in found.snapshot.threads
        where thread.holds.contains(where: { resources.contains($0.resource) }) {
          concerned.insert(thread.id)
        }
        concerned.formUnion(found.deadlocks.flatMap(\.victims))
      }
      return all.filter { concerned.contains($0.key) && !found.proxies.contains($0.key) }
    }
    let seen = timesRun(now)
    return seen == timesRun(before) && !seen.isEmpty && seen.values.allSatisfy { $0 != nil }
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
