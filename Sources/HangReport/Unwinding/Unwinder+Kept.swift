/// A frame with what its code may still need after the call that it is in.
package struct KeptFrame: Sendable, Hashable {
  package var pc: UInt64
  /// The registers that a called function gives back as they were: rbx, rbp, r12 to r15.
  package var kept: [UInt64]
  package init(pc: UInt64, kept: [UInt64]) {
    self.pc = pc
    self.kept = kept
  }
}

extension Unwinder {
  /// The frames of a thread with the registers that their code finds again when its call returns; nil
  /// where the walk does not come to the thread's first frame.
  package func framesWithRegisters(
    _ registers: Registers, stack: [StackCopy], limit: Int = 512
  ) -> [KeptFrame]? {
    context.begin(registers, overlays: stack, isSite: false)
    var frames: [KeptFrame] = []
    let isWhole = withCursor { cursor -> Bool in
      while frames.count < limit {
        frames.append(
          KeptFrame(
            pc: value(LibUnwind.registerRIP, cursor),
            kept: LibUnwind.keptRegisters.map { value($0, cursor) }))
        let result = library.step(cursor)
        if result < 0 || context.missed != nil { return false }
        if result == 0 || value(LibUnwind.registerRIP, cursor) == 0 { return true }
      }
      return false
    }
    return isWhole == true ? frames : nil
  }
}

extension LibUnwind {
  /// By the numbers of the call frame information.
  static let keptRegisters: [Int32] = [3, 6, 12, 13, 14, 15]
}
