extension Unwinder {
  /// The stack of an acquisition that a living thread made earlier, from the little that was kept.
  ///
  /// `sp` is rsp just after the lock call returned to `returnAddress`, `rbp` the caller's, `kept`
  /// what was copied of the stack then. What was not kept may have been
  /// overwritten since, so a frame whose return address was not kept counts only if `live`, the
  /// thread's present stack, has the same procedure at the same CFA; the rest is then the live
  /// stack's. A procedure that has returned and was called again at the same depth by another
  /// caller cannot be told apart.
  public func unwindSite(
    returnAddress: UInt64, sp: UInt64, rbp: UInt64, kept: [StackCopy], live: [RawFrame],
    limit: Int = 512
  ) -> Unwound {
    // Looked up at the call itself: the row behind it may be another function's.
    let registers = Registers(rip: returnAddress &- 1, rsp: sp, rbp: rbp)
    context.begin(registers, overlays: kept, isSite: true)
    let notKept = "the callers were not kept"
    var frames: [RawFrame] = []
    var pc = returnAddress
    // The lock call itself has returned.
    var calleeIsLive = false
    var isLost = false
    let unwound =
      withCursor { cursor in
        while true {
          context.readLive.removeAll(keepingCapacity: true)
          let isTrampoline = context.isSignalReturn(pc)
          let result = library.step(cursor)
          let cfa = value(LibUnwind.registerRSP, cursor)
          if let missed = context.missed {
            isLost = frames.isEmpty
            frames.append(RawFrame(pc: pc, cfa: 0, isExact: isTrampoline))
            return Unwound(
              frames: frames, isComplete: false,
              note: "maybe cut: no unwind information at \(Address(missed))")
          }
          let frame = RawFrame(pc: pc, cfa: cfa, isExact: isTrampoline)
          let wasKept = context.readLive.isEmpty && kept.contains { $0.holdsWord(at: cfa &- 8) }
          let index = liveIndex(of: frame, in: live, calleeIsLive: calleeIsLive)
          calleeIsLive = index != nil
          if wasKept, result > 0 {
            frames.append(frame)
          } else if result == 0, context.readLive.isEmpty {
            // The thread's first frame: its return address is undefined rather than lost.
            frames.append(frame)
            return Unwound(frames: frames, isComplete: true)
          } else if let index {
            frames.append(frame)
            frames += live[(index + 1)...]
            // A walk that ended early left its last frame without a CFA.
            let isWhole = live.last?.cfa != 0
            return Unwound(
              frames: frames, isComplete: isWhole,
              note: isWhole ? nil : "maybe cut, like the thread's present stack")
          } else {
            frames.append(RawFrame(pc: pc, cfa: 0, isExact: isTrampoline))
            return Unwound(frames: frames, isComplete: false, note: notKept)
          }
          pc = value(LibUnwind.registerRIP, cursor)
          if pc == 0 { return Unwound(frames: frames, isComplete: true) }
          if frames.count >= limit {
            return Unwound(frames: frames, isComplete: false, note: "cut after \(limit) frames")
          }
        }
      }
      ?? Unwound(
        frames: [RawFrame(pc: returnAddress, cfa: 0, isExact: false)], isComplete: false,
        note: notKept)
    guard isLost else { return unwound }
    return siteByFramePointer(returnAddress, sp: sp, rbp: rbp, kept, live, limit) ?? unwound
  }

  /// Linkers that fold equal functions may lose the unwind information of a short one. Where the
  /// frame pointer lies at the stack's top, or a few words above, it is that function's own.
  private func siteByFramePointer(
    _ returnAddress: UInt64, sp: UInt64, rbp: UInt64, _ kept: [StackCopy], _ live: [RawFrame],
    _ limit: Int
  ) -> Unwound? {
    guard rbp >= sp, rbp &- sp <= 64, limit > 1, let saved = kept.word(at: rbp),
      let next = kept.word(at: rbp &+ 8), saved > rbp, context.procedureStart(of: next &- 1) != nil
    else { return nil }
    var unwound = unwindSite(
      returnAddress: next, sp: rbp &+ 16, rbp: saved, kept: kept, live: live, limit: limit - 1)
    unwound.frames.insert(RawFrame(pc: returnAddress, cfa: rbp &+ 16, isExact: false), at: 0)
    return unwound
  }

  /// The live frame that is the very call of the site's: the same procedure at the same CFA. While
  /// what it called lives on, it stands at that call; once that has returned, it must have moved on.
  /// Else it is another call of the same procedure from the same depth, as of a wrapper that was
  /// called again.
  private func liveIndex(of frame: RawFrame, in live: [RawFrame], calleeIsLive: Bool) -> Int? {
    guard frame.cfa != 0, let start = procedureStart(of: frame.pc &- 1) else { return nil }
    return live.firstIndex {
      $0.cfa == frame.cfa && ($0.pc == frame.pc) == calleeIsLive
        && procedureStart(of: $0.isExact ? $0.pc : $0.pc &- 1) == start
    }
  }
}

extension [StackCopy] {
  fileprivate func word(at address: UInt64) -> UInt64? {
    for copy in self where copy.holdsWord(at: address) {
      return copy.bytes.withUnsafeBytes {
        $0.loadUnaligned(fromByteOffset: Int(address - copy.base), as: UInt64.self)
      }
    }
    return nil
  }
}

extension StackCopy {
  /// Whether all 8 bytes at an address were copied.
  func holdsWord(at address: UInt64) -> Bool {
    address >= base && UInt64(bytes.count) >= 8 && address - base <= UInt64(bytes.count) - 8
  }
}
