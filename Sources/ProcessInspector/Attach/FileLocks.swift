internal import CHangcheck
internal import Glibc

/// A lock on a file, or a request for one, in the words of /proc/locks and /proc/PID/fdinfo.
struct FileLock: Hashable {
  /// Locks of different families do not see each other, but for those of fcntl: of a process, and of
  /// an open file description.
  enum Family: Hashable { case flock, process, description }
  var family: Family
  var isWrite: Bool
  /// Who took it; of a description that may be somebody else than who has it.
  var pid: Int32
  var inode: UInt64
  var start: UInt64
  /// Its last byte.
  var end: UInt64

  /// Holders of one lock are one owner.
  func conflicts(with other: FileLock) -> Bool {
    (family == .flock) == (other.family == .flock) && inode == other.inode
      && (isWrite || other.isWrite) && start <= other.end && other.start <= end
      && !(family == .process && other.family == .process && pid == other.pid)
  }

  /// `POSIX  ADVISORY  WRITE 4711 08:01:1234 0 EOF`, with a number before it; nil for a lease, and for
  /// one that waits, behind "->".
  init?(line: Substring) {
    let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
    guard let at = words.firstIndex(where: { $0.hasSuffix(":") && UInt64($0.dropLast()) != nil }),
      words.count == at + 8, let pid = Int32(words[at + 4]),
      let inode = words[at + 5].split(separator: ":").last.flatMap({ UInt64($0) }),
      let start = UInt64(words[at + 6])
    else { return nil }
    switch words[at + 1] {
    case "FLOCK": family = .flock
    case "POSIX": family = .process
    case "OFDLCK": family = .description
    default: return nil
    }
    isWrite = words[at + 3] != "READ"
    self.pid = pid
    self.inode = inode
    self.start = start
    guard let end = words[at + 7] == "EOF" ? .max : UInt64(words[at + 7]) else { return nil }
    self.end = end
  }

  /// What a call of flock or fcntl waits for; nil where it does not wait, or for what is not known.
  init?(_ call: SystemCall, by pid: ProcessID, inode: UInt64, _ memory: ProcessMemory) {
    self.pid = pid.rawValue
    self.inode = inode
    if call.number == SystemCalls.flock {
      let kind = call.arguments[1] & 3
      guard kind == 1 || kind == 2, call.arguments[1] & 4 == 0 else { return nil }
      (family, isWrite, start, end) = (.flock, kind == 2, 0, .max)
      return
    }
    // F_SETLKW, F_OFD_SETLKW; struct flock: type, whence, start, length.
    guard call.number == SystemCalls.fcntl, call.arguments[1] == 7 || call.arguments[1] == 38,
      let words = RemoteBytes(memory, call.arguments[2], 24)
    else { return nil }
    let (type, whence) = (words.word32(0) & 0xffff, words.word32(0) >> 16)
    let (first, length) = (Int64(bitPattern: words.word(8)), Int64(bitPattern: words.word(16)))
    // Counted from the file's beginning; from elsewhere it cannot be told.
    guard type <= 1, whence == 0, first >= 0, length >= 0 || first &+ length >= 0,
      length > .min
    else { return nil }
    family = call.arguments[1] == 7 ? .process : .description
    isWrite = type == 1
    start = UInt64(length < 0 ? first + length : first)
    end = length == 0 ? .max : UInt64(length < 0 ? first - 1 : first &+ (length - 1))
  }
}

/// Who has locks on some files, among all processes that may be looked at. Read once.
struct FileLocks {
  /// A descriptor through which a lock can be given back.
  private struct Holder: Hashable {
    var pid: ProcessID
    var descriptor: Int32
  }
  /// Those of each lock; none where it is not known who has it.
  private var holders: [FileLock: Set<Holder>] = [:]
  /// How many locks look the same.
  private var counts: [FileLock: Int] = [:]
  private var hidden = HiddenProcesses()

  init(on inodes: Set<UInt64>) {
    guard !inodes.isEmpty else { return }
    let all = readFile("/proc/locks").map { String(decoding: $0, as: UTF8.self) } ?? ""
    for line in all.split(separator: "\n") {
      guard let lock = FileLock(line: line), inodes.contains(lock.inode) else { continue }
      holders[lock] = []
      counts[lock, default: 0] += 1
    }
    for pid in ProcessID.all {
      let proc = ProcReader(pid)
      guard let names = proc.list("fdinfo") else {
        hidden.note(pid, proc)
        continue
      }
      for name in names {
        guard let text = proc.text("fdinfo/" + name), let descriptor = Int32(name) else { continue }
        for line in text.split(separator: "\n") where line.hasPrefix("lock:") {
          guard let lock = FileLock(line: line), inodes.contains(lock.inode) else { continue }
          holders[lock, default: []].insert(Holder(pid: pid, descriptor: descriptor))
        }
      }
    }
  }

  /// Each lock that stands against a request through a descriptor, with the processes of which any
  /// could give it back; nil where that is not known of one of them.
  func against(
    _ request: FileLock, by pid: ProcessID, _ descriptor: Int32
  ) -> [(lock: FileLock, processes: Set<ProcessID>)]? {
    guard !hidden.mayShare(with: pid) else { return nil }
    let own = Holder(pid: pid, descriptor: descriptor)
    var result: [(lock: FileLock, processes: Set<ProcessID>)] = []
    for (lock, all) in holders where lock.conflicts(with: request) {
      // What was locked through the same description is no hindrance.
      if all.contains(own), counts[lock] ?? 1 <= 1 { continue }
      let others = Set(all.subtracting([own]).map(\.pid))
      guard !others.isEmpty else { return nil }
      result.append((lock, others))
    }
    return result.isEmpty
      ? nil
      : result.sorted {
        ($0.lock.start, $0.lock.pid) < ($1.lock.start, $1.lock.pid)
      }
  }
}

extension ProcessID {
  /// Every process but this one.
  static var all: [ProcessID] {
    guard let directory = opendir("/proc") else { return [] }
    defer { closedir(directory) }
    var result: [ProcessID] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { raw in
        String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
      }
      if let id = Int32(name), id != getpid() { result.append(ProcessID(id)) }
    }
    return result
  }
}

extension ProcReader {
  /// Gone, or ended and not reaped yet.
  var hasEnded: Bool {
    guard let stat = text("stat"), let end = stat.lastIndex(of: ")") else { return true }
    let state = stat[stat.index(after: end)...].drop { $0 == " " }.first
    return (state == "Z" || state == "X") && (list("task") ?? []).count <= 1
  }
}
