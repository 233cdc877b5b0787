internal import CHangcheck
internal import HangReport
internal import WaitForGraph

extension OwnProcess {
  /// Sleepers are left to sleep; all others are asked; who does not answer is known by where it
  /// waits.
  func captureStacks(
    _ alive: [KernelThreadID], _ look: Look
  ) -> [KernelThreadID: CapturedThread] {
    let sleeping = SleeperCapture(files: files, memory: memory)
    let sleepers = sleeping.sleepers(among: alive)
    var stacks = capture.capture(alive.filter { sleepers[$0] == nil }, files: files)
    // The handler cannot know it; the call that it interrupted has begun again since.
    for (tid, copy) in stacks {
      guard let call = files.call(tid), call.stackPointer == copy.registers.rsp else { continue }
      stacks[tid]?.systemCall = call.number
    }
    for thread in look.threads
    where thread.isAlive && thread.kind == .thread && stacks[thread.tid] == nil {
      stacks[thread.tid] =
        stackFromWait(thread, look) ?? stackFromAlarm(thread) ?? sleeping.capture(thread.tid)
    }
    return stacks
  }

  /// The stack of a thread that cannot be asked (libdispatch's workers block most signals): from
  /// where the drop-in that it waits in was called, for it is still in there.
  private func stackFromWait(_ thread: SeenThread, _ look: Look) -> CapturedThread? {
    guard let record = thread.record, record.waitFrame != 0,
      look.snapshot.threads.contains(where: { $0.id == thread.id && $0.wait != nil }),
      let frame = words(at: record.waitFrame, 2)
    else { return nil }
    // At the call itself, not behind it: that may be another line.
    let registers = Registers(rip: frame[1] &- 1, rsp: record.waitFrame &+ 16, rbp: frame[0])
    return CapturedThread(
      tid: thread.tid, registers: registers, stack: StackCopy(base: registers.rsp, bytes: []))
  }

  /// The same of a thread that stands still for its alarm: in a timed wait, which no signal is to
  /// cut short.
  private func stackFromAlarm(_ thread: SeenThread) -> CapturedThread? {
    let alarm = unsettled.first { $0.waits && $0.tid == thread.tid }
    guard let site = alarm?.site else { return nil }
    let registers = Registers(
      rip: site.returnAddress &- 1, rsp: site.stackPointer, rbp: site.framePointer)
    return CapturedThread(
      tid: thread.tid, registers: registers, stack: StackCopy(base: registers.rsp, bytes: []))
  }

  private func words(at address: UInt64, _ count: Int) -> [UInt64]? {
    var words = [UInt64](repeating: 0, count: count)
    let got = words.withUnsafeMutableBytes { memory.read(address, into: $0) }
    return got == count * 8 ? words : nil
  }
}
