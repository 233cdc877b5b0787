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
  /// Processes whose descriptors cannot be listed.
  private var hidden: Set<ProcessID> = []

  /// `links`: `pipe:[17]`, `socket:[18]`.
  init(of links: Set<String>) {
    guard !links.isEmpty else { return }
    for pid in ProcessID.all {
      let proc = ProcReader(pid)
      guard let names = proc.list("fd") else {
        if !proc.hasEnded { hidden.insert(pid) }
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
  /// at, of the same session as `pid`, might as well.
  func processes(_ link: String, reading: Bool, for pid: ProcessID) -> Set<ProcessID>? {
    let session = getsid(pid.rawValue)
    if hidden.contains(where: { getsid($0.rawValue) == session }) { return nil }
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
