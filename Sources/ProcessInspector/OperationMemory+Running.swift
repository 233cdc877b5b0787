extension OperationMemory {
  private static let searchedBytes = 1 << 16
  /// How far from a return address the registers lie that its frame and the next one saved.
  private static let window = 24

  /// The operations that the thread with its stack at `stackPointer` runs, the innermost first: those
  /// whose `start()`, or whose queue's call of it, is on the stack.
  func runningOperations(stackPointer: UInt64) -> [OperationState] {
    guard let stack = stack(stackPointer, Self.searchedBytes) else { return [] }
    let frames = [Self.start, Self.schedule].compactMap { code[$0] }
    var result: [OperationState] = []
    for index in 0..<stack.words {
      let word = stack.word(index * 8)
      guard frames.contains(where: { $0.contains(word) }) else { continue }
      if let operation = runningOperation(near: index, stack),
        !result.contains(where: { $0.address == operation.address })
      {
        result.append(operation)
      }
    }
    return result
  }

  private func runningOperation(near index: Int, _ stack: RemoteBytes) -> OperationState? {
    // Words further down are of functions that it called: what they saved is what it had.
    let below = stride(from: index - 1, through: max(0, index - Self.window), by: -1)
    let above = (index + 1)..<min(stack.words, index + Self.window)
    for at in Array(below) + Array(above) {
      let word = stack.word(at * 8)
      guard word % 16 == 0, let operation = operation(word) else { continue }
      if operation.phase >= .starting && operation.phase < .finishing { return operation }
    }
    return nil
  }
}
