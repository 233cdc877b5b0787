import CHangcheck
import Glibc
import ProcessInspector

/// The program and its descendants, held by descriptors that never name another process, so that
/// what is left of them can be ended after their parents have gone.
struct ProcessFamily {
  private var members: [(pid: Int32, descriptor: Int32)] = []

  /// Adds those that are alive now.
  mutating func gather(under child: ChildProcess) {
    for pid in [child.pid] + ProcessTable.descendants(of: child.pid)
    where !members.contains(where: { $0.pid == pid }) {
      let descriptor = hck_pidfd_open(pid)
      if descriptor >= 0 {
        members.append((pid, descriptor))
      }
      // Before Linux 5.3 there are no such descriptors: the child's own pid is safe until reaped.
      else if pid == child.pid {
        members.append((pid, -1))
      }
    }
  }

  func send(_ signal: Int32) {
    for (pid, descriptor) in members {
      if descriptor >= 0 { _ = hck_pidfd_kill(descriptor, signal) } else { kill(pid, signal) }
    }
    // A stopped process obeys nothing but SIGKILL before it goes on.
    if signal != SIGKILL {
      for (_, descriptor) in members { _ = hck_pidfd_kill(descriptor, SIGCONT) }
    }
  }

  /// The program has ended: gives the others until `deadline`, then kills them.
  func end(by deadline: UInt64?) {
    guard let deadline else { return closeAll() }
    var left = members.map(\.descriptor).filter { $0 >= 0 }
    while !left.isEmpty {
      var entries = left.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      let now = monotonicNow()
      let rest = deadline > now ? Int32(min((deadline - now) / 1_000_000 + 1, 10_000)) : 0
      let count = poll(&entries, nfds_t(entries.count), rest)
      if count < 0 && errno == EINTR { continue }
      left = entries.filter { $0.revents == 0 }.map(\.fd)
      if count <= 0 {
        for descriptor in left { _ = hck_pidfd_kill(descriptor, SIGKILL) }
        break
      }
    }
    closeAll()
  }

  private func closeAll() {
    for (_, descriptor) in members where descriptor >= 0 { close(descriptor) }
  }
}
