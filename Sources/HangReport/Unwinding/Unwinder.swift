internal import CHangcheck

/// A stack, innermost frame first.
public struct Unwound: Sendable, Hashable {
  /// A frame's `cfa` is 0 where the walk ended before it was known.
  public var frames: [RawFrame]
  /// The walk came to the thread's first frame.
  public var isComplete: Bool
  /// Why it did not, in one sentence.
  public var note: String?

  /// Makes a stack that was found out in another way.
  public init(frames: [RawFrame], isComplete: Bool, note: String? = nil) {
    self.frames = frames
    self.isComplete = isComplete
    self.note = note
  }
}

/// Unwinds stacks of this or another process by their call frame information. A frame of a library
/// that has none for it, as the deinits of Swift's libraries have not, is passed by the frame pointer
/// where that leads to a call in code that has; its caller is then left out.
///
/// Costs one walk of the parsed tables per frame, about a microsecond once they are cached, and
/// needs libunwind8 at run time. Code without call frame information ends a walk, and is told.
/// One thread at a time may use an unwinder: it is confined to its creator, like its `ImageMap`.
/// After the target loads or unloads a library, make a new one.
public final class Unwinder {
  let library: LibUnwind
  let context: UnwindContext
  private let space: hck_unwind_space
  private var cutAt: (sp: UInt64, rbp: UInt64)?

  /// Loads the library; throws `UnwinderUnavailable` where there is none that can be used.
  public init(images: ImageMap, memory: any MemoryReader) throws {
    library = try LibUnwind.load()
    context = UnwindContext(
      library: library, images: images, memory: LayeredMemory(images: images, reader: memory))
    guard let space = library.makeSpace(UnwindContext.accessors) else {
      throw UnwinderUnavailable(description: "libunwind could not make an address space")
    }
    self.space = space
  }

  deinit { library.destroy(space) }

  /// The stack that a thread with these registers has; `stack` holds what was copied of it.
  public func unwind(
    _ registers: Registers, stack: [StackCopy], limit: Int = 512
  ) -> Unwound {
    var result = walk(registers, stack, limit, isExact: true)
    while let next = behind, result.frames.count < limit {
      let rest = walk(next, stack, limit - result.frames.count, isExact: false)
      result = Unwound(
        frames: result.frames + rest.frames, isComplete: rest.isComplete, note: rest.note)
    }
    return result
  }

  /// Where a walk that met a frame without call frame information can go on.
  private var behind: Registers? {
    guard context.missed != nil, let (sp, rbp) = cutAt, rbp > sp, rbp - sp < 1 << 16, rbp % 8 == 0,
      let saved = context.memory.word(at: rbp)?.value, saved > rbp || saved == 0,
      let caller = context.memory.word(at: rbp + 8)?.value, procedureStart(of: caller &- 1) != nil
    else { return nil }
    return Registers(rip: caller, rsp: rbp + 16, rbp: saved)
  }

  /// One walk; leaves rsp and rbp of its last frame in `cutAt`.
  private func walk(
    _ registers: Registers, _ stack: [StackCopy], _ limit: Int, isExact: Bool
  ) -> Unwound {
    context.begin(registers, overlays: stack, isSite: false)
    cutAt = nil
    var frames: [RawFrame] = []
    var isExact = isExact
    return withCursor { cursor in
      while true {
        let pc = value(LibUnwind.registerRIP, cursor)
        let sp = value(LibUnwind.registerRSP, cursor)
        let isTrampoline = context.isSignalReturn(pc)
        cutAt = (sp, value(LibUnwind.registerRBP, cursor))
        let result = library.step(cursor)
        frames.append(
          RawFrame(pc: pc, cfa: cfa(after: result, cursor), isExact: isExact || isTrampoline))
        if result <= 0 { return finish(frames, result) }
        let next = value(LibUnwind.registerRIP, cursor)
        if next == 0 { return Unwound(frames: frames, isComplete: true) }
        if next == pc, value(LibUnwind.registerRSP, cursor) == sp {
          return Unwound(
            frames: frames, isComplete: false, note: "maybe cut: a frame leads to itself")
        }
        if frames.count >= limit {
          return Unwound(
            frames: frames, isComplete: false, note: "cut after \(limit) frames")
        }
        // What a signal interrupted stands at an instruction, not behind a call.
        isExact = isTrampoline || library.isSignalFrame(cursor) > 0
      }
    }
      ?? Unwound(
        frames: [RawFrame(pc: registers.rip, cfa: 0, isExact: true)], isComplete: false,
        note: "maybe cut: the walk could not begin")
  }

  /// The first address of the procedure that holds `pc`, by its call frame information.
  public func procedureStart(of pc: UInt64) -> UInt64? { context.procedureStart(of: pc) }

  /// Runs `body` with a cursor at the registers that the context holds.
  func withCursor<R>(_ body: (UnsafeMutablePointer<hck_unwind_cursor>) -> R) -> R? {
    var cursor = hck_unwind_cursor()
    // The library writes inside the cursor alone; the context outlives this call.
    return withUnsafeMutablePointer(to: &cursor) { cursor in
      let argument = Unmanaged.passUnretained(context).toOpaque()
      guard library.start(cursor, space, argument) == 0 else { return nil }
      return withExtendedLifetime(context) { body(cursor) }
    }
  }

  func value(_ register: Int32, _ cursor: UnsafeMutablePointer<hck_unwind_cursor>) -> UInt64 {
    var value: UInt64 = 0
    return library.register(cursor, register, &value) == 0 ? value : 0
  }

  /// The frame's CFA is its caller's rsp, which the library tells after the step.
  private func cfa(
    after result: Int32, _ cursor: UnsafeMutablePointer<hck_unwind_cursor>
  ) -> UInt64 {
    result < 0 || context.missed != nil ? 0 : value(LibUnwind.registerRSP, cursor)
  }

  private func finish(_ frames: [RawFrame], _ result: Int32) -> Unwound {
    if let pc = context.missed {
      return Unwound(
        frames: frames, isComplete: false,
        note: "maybe cut: no unwind information at \(Address(pc))")
    }
    if let address = context.unreadable {
      return Unwound(
        frames: frames, isComplete: false,
        note: "maybe cut: the stack at \(Address(address)) cannot be read")
    }
    if result < 0 {
      return Unwound(
        frames: frames, isComplete: false, note: "maybe cut: libunwind's error \(-result)")
    }
    return Unwound(frames: frames, isComplete: true)
  }
}
