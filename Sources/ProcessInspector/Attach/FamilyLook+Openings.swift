internal import CHangcheck
internal import Glibc
internal import WaitForGraph

extension FamilyLook {
  /// Whether a thread selects nothing but sockets whose other ends these processes have, as Foundation's
  /// does for the ends of children.
  func watchesFamily(_ member: AttachSession, _ tid: KernelThreadID) -> Bool {
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
  func hasOpenings(_ found: Found, _ offsets: [Int]) -> Bool {
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
}

extension DispatchMemory.Timer {
  /// Due more than a second ago.
  fileprivate var isOverdue: Bool {
    var copy = self
    copy.deadline = deadline &+ 1_000_000_000
    return copy.left == 0
  }
}
