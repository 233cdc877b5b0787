internal import CHangcheck
internal import Glibc

/// Who has which pipe or socket open, among all processes that may be looked at. Read once.
struct DescriptorTable {
  struct End: Hashable {
    var pid: ProcessID
    var reads: Bool
    var writes: Bool
  }
  private var ends: [String: [End]] = [:]
  private var hidden = HiddenProcesses()

  /// `links`: `pipe:[17]`, `socket:[18]`.
  init(of links: Set<String>) {
    guard !links.isEmpty else { return }
    for pid in ProcessID.all {
      let proc = ProcReader(pid)
      guard let names = proc.list("fd") else {
        hidden.note(pid, proc)
        continue
      }
      for name in names {
        guard let link = proc.link("fd/" + name), links.contains(link) else { continue }
        let access = Self.access(proc.text("fdinfo/" + name))
        ends[link, default: []].append(End(pid: pid, reads: access != 1, writes: access != 0))
      }
    }
  }

  /// O_RDONLY, O_WRONLY or O_RDWR; the last where it is not known.
  private static func access(_ info: String?) -> UInt32 {
    guard let line = info?.split(separator: "\n").first(where: { $0.hasPrefix("flags:") }),
      let word = line.split(whereSeparator: { $0 == "\t" || $0 == " " }).last,
      let flags = UInt32(word, radix: 8)
    else { return 2 }
    return flags & 3
  }

  /// The processes that could read, or write, what has this name. Nil where one that cannot be looked
  /// at might as well.
  func processes(_ link: String, reading: Bool, for pid: ProcessID) -> Set<ProcessID>? {
    // As one of a shell's pipeline has it.
    let own = ProcReader(pid)
    let wasGiven = (0...2).contains { own.link("fd/\($0)") == link }
    guard !hidden.mayShare(with: pid, wasGiven: wasGiven) else { return nil }
    return Set((ends[link] ?? []).filter { reading ? $0.reads : $0.writes }.map(\.pid))
  }

  /// The other end of a socket, where that is on this machine: of a Unix pair, or of a connection over
  /// the loopback. `socket:[18]`.
  static func peer(of link: String, _ proc: ProcReader) -> String? {
    guard link.hasPrefix("socket:["), let inode = UInt32(link.dropFirst(8).dropLast()) else {
      return nil
    }
    let peer = hck_unix_peer(inode)
    if peer != 0 { return "socket:[\(peer)]" }
    for table in ["net/udp", "net/tcp", "net/udp6", "net/tcp6"] {
      let lines = (proc.text(table) ?? "").split(separator: "\n").dropFirst().map {
        $0.split(separator: " ")
      }.filter { $0.count > 9 }
      guard let own = lines.first(where: { $0[9] == "\(inode)" }) else { continue }
      let others = lines.filter { $0[1] == own[2] && $0[2] == own[1] }
      return others.count == 1 ? "socket:[\(others[0][9])]" : nil
    }
    return nil
  }
}

/// Processes whose descriptors cannot be listed: of other users.
struct HiddenProcesses {
  struct Process {
    var session: pid_t
    /// When it was forked, in the kernel's ticks.
    var began: UInt64
  }
  private(set) var all: [Process] = []

  init(_ all: [Process] = []) { self.all = all }

  mutating func note(_ pid: ProcessID, _ proc: ProcReader) {
    guard !proc.hasEnded else { return }
    all.append(
      Process(session: getsid(pid.rawValue), began: ProcessIdentity.began(proc) ?? .max))
  }

  /// Whether one of them may have what a process made, and handed on: it is of the same session, and
  /// began later, as a descendant did. `wasGiven`: the process got it at its start, so that those before
  /// it may have it.
  func mayShare(with pid: ProcessID, wasGiven: Bool = false) -> Bool {
    guard !all.isEmpty else { return false }
    let began = ProcessIdentity.began(ProcReader(pid)) ?? 0
    return mayShare(
      with: Process(session: getsid(pid.rawValue), began: began), wasGiven: wasGiven)
  }

  func mayShare(with process: Process, wasGiven: Bool) -> Bool {
    all.contains { $0.session == process.session && (wasGiven || $0.began >= process.began) }
  }
}
