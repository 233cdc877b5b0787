internal import CHangcheck

/// Decides when it is worth a look whether a process and its children wait for each other. Time comes
/// in; confined to one thread.
///
/// What costs is the look itself (`FamilyLook`), which stops those processes for a moment: it is made
/// only while somebody among them has stood in the same call for two seconds, and ever more seldom.
final class FamilyWatch {
  private let pid: ProcessID
  private let proc: ProcReader
  private var askedAt: UInt64 = 0
  private var standing: [KernelThreadID: (timesRun: UInt64, since: UInt64)] = [:]
  private var nextLook: UInt64 = 0
  private var rest: UInt64 = 0
  /// The looks that found something to tell are over.
  var isTold = false

  private static let interval: UInt64 = 500_000_000
  private static let patience: UInt64 = 2_000_000_000
  private static let longestRest: UInt64 = 600_000_000_000
  private static let most = 32

  init(_ pid: ProcessID) {
    self.pid = pid
    proc = ProcReader(pid)
  }

  /// Whether to look now. `threshold`: nanoseconds from which on a possible deadlock counts.
  func isDue(now: UInt64, threshold: UInt64) -> Bool {
    guard !isTold, now &- askedAt >= Self.interval else { return false }
    askedAt = now
    let main = proc.systemCall(KernelThreadID(pid.rawValue))?.call
    var processes = descendants
    // A lock on a file may be one that it has itself.
    if main.map({ isFileLock($0) || isShared($0, pid) }) == true { processes.append(pid) }
    guard let main, !processes.isEmpty else {
      standing = [:]
      oldest = nil
      rest = 0
      nextLook = 0
      return false
    }
    // A main thread that waits for a child, a thread, a lock or a pipe is in the way of whoever needs
    // it, and so may be one that waits for others of its process. One that polls may be in
    // `Process.waitUntilExit()`, or serve: then a child that cannot write counts.
    let isWaiting =
      [SystemCalls.wait4, SystemCalls.waitid].contains(main.number)
      || isTransfer(main, of: proc, writes: nil) || isFileLock(main) || isEndless(main)
    var current: [KernelThreadID: (timesRun: UInt64, since: UInt64)] = [:]
    var oldest: UInt64?
    for child in processes {
      let reader = ProcReader(child)
      let files = ProcessFiles(child)
      for tid in files.threads().prefix(Self.most) {
        guard let call = reader.systemCall(tid)?.call,
          isTransfer(call, of: reader, writes: isWaiting ? nil : true)
            || (isWaiting && (isFileLock(call) || isShared(call, child))),
          let timesRun = files.timesRun(tid)
        else { continue }
        let known = standing[tid]
        let since = known?.timesRun == timesRun ? known?.since ?? now : now
        current[tid] = (timesRun, since)
        oldest = min(oldest ?? since, since)
      }
    }
    standing = current
    self.oldest = oldest
    guard hasStood(now: now), now >= nextLook else { return false }
    // The look itself makes the threads run: from there a possible deadlock must last for the threshold.
    rest = rest == 0 ? threshold &+ Self.interval : min(2 &* rest, Self.longestRest)
    nextLook = now &+ rest
    return true
  }

  /// Whether somebody has stood in one call for so long that a look is worth it.
  func hasStood(now: UInt64) -> Bool { oldest.map { now &- $0 >= Self.patience } ?? false }
  private var oldest: UInt64?

  private var descendants: [ProcessID] {
    var all: [ProcessID] = []
    var next = [pid]
    while let one = next.popLast(), all.count < Self.most {
      let reader = ProcReader(one)
      for tid in ProcessFiles(one).threads().prefix(Self.most) {
        for word in (reader.text("task/\(tid.rawValue)/children") ?? "").split(separator: " ") {
          guard let child = Int32(word) else { continue }
          all.append(ProcessID(child))
          next.append(ProcessID(child))
        }
      }
    }
    return all
  }

  /// Whether a call waits for a lock on a file.
  private func isFileLock(_ call: SystemCall) -> Bool {
    switch call.number {
    case SystemCalls.flock: true
    case SystemCalls.fcntl: call.arguments[1] == 7 || call.arguments[1] == 38
    default: false
    }
  }

  /// Whether a call waits for a word in memory without a time limit.
  private func isEndless(_ call: SystemCall) -> Bool {
    call.number == SystemCalls.futex && call.arguments[3] == 0
  }

  /// The same for a word that is not called private: a thread's end, or one that processes share.
  private func isNotPrivate(_ call: SystemCall) -> Bool {
    isEndless(call) && call.arguments[1] & 128 == 0
  }

  private func isShared(_ call: SystemCall, _ pid: ProcessID) -> Bool {
    isNotPrivate(call)
      && SharedPlace(call.arguments[0], maps: ProcReader(pid).text("maps") ?? "") != nil
  }

  /// Whether a call reads or writes a pipe or a socket.
  private func isTransfer(_ call: SystemCall, of reader: ProcReader, writes: Bool?) -> Bool {
    guard let reads = SystemCalls.reads(call.number), writes.map({ $0 != reads }) ?? true,
      let link = reader.link("fd/\(Int32(truncatingIfNeeded: call.arguments[0]))")
    else { return false }
    return link.hasPrefix("pipe:") || link.hasPrefix("socket:")
  }
}
