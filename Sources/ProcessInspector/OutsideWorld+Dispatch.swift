internal import CHangcheck
internal import Glibc

extension OutsideWorld {
  /// Whether libdispatch says that this thread is its manager.
  func isManager(_ tid: KernelThreadID) -> Bool {
    guard let dispatch else { return false }
    return dispatch.isManager(files.innerID(tid) ?? tid)
  }

  /// Work on the global queues: libdispatch starts one more thread a second while all of them are
  /// blocked, until there are too many.
  func queuedWork(_ threads: Int) -> [String] {
    guard let dispatch else {
      return ranges.hasDispatch || hasStaticSwift ? ["libdispatch's queues cannot be read"] : []
    }
    guard threads < 255 else { return [] }
    return dispatch.roots().filter(\.hasItems).map { "work is queued on \($0.label)" }
  }
}

extension DispatchMemory {
  /// Whether the main queue has left the first thread; the flag lies behind its width.
  var isMainQueueUnbound: Bool {
    guard let flags = memory.word32(layout.mainQueue &+ UInt64(DispatchLayout.width)) else {
      return false
    }
    return flags & 0x4_0000 == 0
  }

  /// The program's timers, where all of them can be read.
  func timersInWords() -> OutsideWorld.DispatchTimers {
    guard let before = countOfTimers(), let timers = timers(), countOfTimers() == before,
      timers.count == before
    else { return .unknown }
    return .known(
      timers.filter { !$0.isOwn }.map {
        files.core == nil ? OutsideWorld.due($0.left) : "a timer of libdispatch is set"
      })
  }

  /// Each timer lies twice in the heap of its clock.
  private func countOfTimers() -> Int? {
    var count = 0
    for heap in 0..<layout.timerHeaps {
      guard let words = memory.word32(layout.timers &+ UInt64(heap * 32)), words % 2 == 0 else {
        return nil
      }
      count += Int(words) / 2
    }
    return count
  }
}

extension DispatchMemory {
  /// The descriptors that libdispatch's manager watches for the program, from its own table of them;
  /// nil where that cannot be read.
  func watchedDescriptors() -> [Int32]? {
    guard let table = layout.sources,
      let heads = RemoteBytes(memory, table.lowerBound, Int(table.upperBound - table.lowerBound))
    else { return nil }
    var result: [Int32] = []
    for bucket in 0..<heads.words {
      var note = heads.word(bucket * 8)
      while note != 0 {
        // The list's links, two lists' heads, the descriptor, its id, its events and those that rest.
        guard result.count < 1 << 16, let words = RemoteBytes(memory, note, 48) else { return nil }
        if words.word32(40) & ~UInt32(words.word16(44)) != 0 {
          result.append(Int32(bitPattern: words.word32(32)))
        }
        note = words.word(0)
      }
    }
    return result
  }
}

extension DispatchMemory.Timer {
  /// Nanoseconds until it is due.
  var left: UInt64 {
    let clock =
      switch clock {
      case .uptime: CLOCK_MONOTONIC
      case .monotonic: CLOCK_BOOTTIME
      case .wall: CLOCK_REALTIME
      }
    var now = timespec()
    guard clock_gettime(clock, &now) == 0 else { return 0 }
    let nanoseconds = UInt64(now.tv_sec) &* 1_000_000_000 &+ UInt64(now.tv_nsec)
    return deadline > nanoseconds ? deadline - nanoseconds : 0
  }
}
