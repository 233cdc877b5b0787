internal import HangReport

extension ConcurrencyMemory {
  /// Where a suspended task goes on, and the async functions that called that one, innermost first:
  /// addresses at which functions begin or resume. Empty for a task that runs, whose thread has the
  /// rest in its stack.
  ///
  /// What stands between a wait and the program's code is left out.
  func frames(of task: SwiftTask, most: Int = 256) -> [UInt64] {
    pages.forget()
    if task.isRunning { return [] }
    if symbols.unstarted.contains(task.resume) { return entries(of: task) }
    let first = symbols.adapters.contains(task.resume) ? [] : [task.resume]
    return first + callers(task.context, after: first.first, most: most - 1).frames
  }

  /// The async functions that called the one which a task's thread is in, outermost last; the
  /// thread's own stack has those from there inwards. May be empty.
  ///
  /// The context of an async function is the newest of its task's own allocations, but for what the
  /// function itself allocated.
  func callers(ofRunning task: SwiftTask, most: Int = 256) -> [UInt64] {
    pages.forget()
    guard task.isRunning else { return [] }
    var allocation = pages.word(task.address &+ 0x70) ?? 0
    for _ in 0..<64 where allocation != 0 && allocation & 7 == 0 {
      let (frames, isWhole) = callers(allocation &+ 0x10, after: nil, most: most)
      if isWhole { return frames }
      guard let previous = pages.word(allocation) else { break }
      allocation = previous
    }
    return []
  }

  private func callers(
    _ first: UInt64, after: UInt64?, most: Int
  ) -> (frames: [UInt64], isWhole: Bool) {
    var frames: [UInt64] = []
    var context = first
    var previous = after
    var seen: Set<UInt64> = []
    while frames.count < most, context != 0, context & 7 == 0, seen.insert(context).inserted {
      guard let parent = pages.word(context), let resume = pages.word(context &+ 8),
        isCode(resume)
      else { break }
      if symbols.ends.contains(resume) { return (frames, true) }
      // A wait for a continuation names the code that goes on twice.
      if resume != previous, !symbols.adapters.contains(resume) { frames.append(resume) }
      previous = resume
      context = parent
    }
    return (frames, false)
  }

  /// The functions that a task which has not run yet begins with, the program's own first.
  ///
  /// Closures of closures: adapters for generic code keep what they adapt behind themselves.
  private func entries(of task: SwiftTask) -> [UInt64] {
    guard let entry = pages.word(task.context &- 0x18), isCode(entry) else { return [] }
    var frames = [entry]
    var closure = pages.word(task.context &- 0x10)
    for _ in 0..<4 {
      guard let object = closure, object != 0, object & 7 == 0 else { break }
      closure = nil
      // Types that generic code needs lie before the function.
      for offset: UInt64 in [0x10, 0x18, 0x20] {
        guard let code = pages.word(object &+ offset).flatMap(asyncFunction) else { continue }
        if code != frames[0] { frames.insert(code, at: 0) }
        closure = pages.word(object &+ offset &+ 8)
        break
      }
    }
    return frames
  }

  /// The code of an async function pointer, which is the distance to it and the size of its frame.
  private func asyncFunction(_ pointer: UInt64) -> UInt64? {
    guard pointer & 3 == 0, let distance = pages.word32(pointer),
      let size = pages.word32(pointer &+ 4), size >= 16, size <= 1 << 20
    else { return nil }
    let code = pointer &+ UInt64(bitPattern: Int64(Int32(bitPattern: distance)))
    return isCode(code) ? code : nil
  }

  /// The stack of a suspended task with names: as a thread's, though no thread has it. Of a running
  /// one what called its thread's part.
  ///
  /// The debug information of an async function gives the code after an await the await's line, so
  /// addresses are taken as they are, not as return addresses.
  func stack(of task: SwiftTask, _ symbolizer: Symbolizer) -> [Frame] {
    Self.named(task.isRunning ? callers(ofRunning: task) : frames(of: task), symbolizer)
  }

  /// Names for addresses of `frames(of:)` and `callers(ofRunning:)`.
  static func named(_ addresses: [UInt64], _ symbolizer: Symbolizer) -> [Frame] {
    var frames: [Frame] = []
    for address in addresses {
      var next = symbolizer.frames(for: RawFrame(pc: address, cfa: 0, isExact: true))
      // A forwarder bears the name of what it forwards to.
      if next.count == 1, next[0].line == nil, let last = frames.last, last.symbol != nil,
        last.symbol == next[0].symbol
      {
        next[0].runtime = true
      }
      frames += next
    }
    // A stack of forwarders alone, of a task that has not begun: what they lead to has a name.
    if frames.allSatisfy(\.runtime), let last = addresses.last, addresses.first != last,
      let index = frames.firstIndex(where: { $0.symbol?.hasPrefix("thunk for") == false })
    {
      frames[index].runtime = false
    }
    return frames
  }
}
