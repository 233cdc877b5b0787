internal import CHangcheck
internal import HangReport
internal import WaitForGraph

/// What libdispatch's code on a worker thread still has at hand for when the item that it runs comes
/// back: among it is the group that the item is to leave.
struct WorkerItems {
  /// The registers that libdispatch's frames find again, where these are the thread's outermost: those
  /// between the program and the thread's start. Empty for any other thread, as for one that the
  /// program started itself: its frames could have left a group in them for reasons of their own.
  static func registers(
    _ frames: [KeptFrame], _ library: (UInt64) -> MemoryRanges.Library?
  ) -> Set<UInt64> {
    let libraries = frames.enumerated().map { index, frame in
      library(index == 0 ? frame.pc : frame.pc &- 1)
    }
    guard
      let program = libraries.lastIndex(where: { $0 != .dispatch && $0 != .libc }),
      case let outer = (program + 1)..<frames.count,
      case let dispatch = outer.prefix(while: { libraries[$0] == .dispatch }),
      !dispatch.isEmpty, dispatch.count < outer.count,
      outer.dropFirst(dispatch.count).allSatisfy({ libraries[$0] == .libc })
    else { return [] }
    return Set(dispatch.flatMap { frames[$0].kept }.filter { $0 >= 4096 })
  }
}

extension LookBuilder {
  /// Blocks that were given to a group (`async(group:)`) and run: their threads are to leave it. The
  /// number of threads found.
  mutating func addRunners(of key: ResourceKey) -> Int {
    var count = 0
    for index in threads.indices
    where threads[index].kind == .thread && threads[index].isAlive && !threads[index].isIdle {
      guard itemRegisters(threads[index].tid).contains(key.address) else { continue }
      count += 1
      if !holds[index].contains(where: { $0.key == key }) {
        holds[index].append(RecordedHold(key: key, isShared: false, since: 0, site: nil))
      }
    }
    return count
  }
}

extension AttachSession {
  /// Of a thread that still stands where its stack was copied.
  func itemRegisters(_ tid: KernelThreadID) -> Set<UInt64> {
    guard let thread = lastStacks[tid], let call = calls[tid],
      files.core != nil || proc.systemCall(tid)?.call == call
    else { return [] }
    if let known = knownItems[tid] { return known }
    let tools =
      itemTools ?? (assembler(isRoot: true).unwinder, watch.runtime.outside().ranges)
    itemTools = tools
    let frames = tools.unwinder?.framesWithRegisters(thread.registers, stack: [thread.stack])
    let found = frames.map { WorkerItems.registers($0, tools.ranges.library(ofCode:)) } ?? []
    knownItems[tid] = found
    return found
  }
}
