extension DispatchMemory {
  /// Which of `objects` a block refers to through what it captures: Swift's wrappers, boxes and
  /// contexts, four deep.
  ///
  /// A hint: what lies in the memory of a captured object need not be what the block uses, and
  /// what is further away is not seen.
  func references(from block: UInt64, to objects: Set<UInt64>) -> Set<UInt64> {
    var found: Set<UInt64> = []
    if objects.isEmpty { return found }
    var start = block
    if isWorkItem(block), let inner = memory.word(block &+ 0x48) { start = inner }
    var seen: Set<UInt64> = [start]
    var open: [(address: UInt64, depth: Int)] = [(start, 0)]
    var next = 0
    while next < open.count, next < 256, found.count < objects.count {
      let (address, depth) = open[next]
      next += 1
      guard let words = words(of: address, isBlock: depth == 0) else { continue }
      for index in 0..<words.words {
        let word = words.word(index * 8)
        if objects.contains(word) { found.insert(word) }
        guard depth < 4, isHeap(word), seen.insert(word).inserted else { continue }
        // What libdispatch's own objects lead to, nobody captured.
        if kind(of: word) == nil { open.append((word, depth + 1)) }
      }
    }
    return found
  }

  private func words(of address: UInt64, isBlock: Bool) -> RemoteBytes? {
    if isBlock {
      guard let descriptor = memory.word(address &+ 0x18), let size = memory.word(descriptor &+ 8),
        size > 0x20, size <= 0x400
      else { return nil }
      return RemoteBytes(memory, address &+ 0x20, Int(size - 0x20) & ~7)
    }
    // The size of malloc's chunk lies before it; flags in the low bits.
    guard let chunk = memory.word(address &- 8) else { return nil }
    let size = (chunk & ~15) &- 8
    guard size >= 24, size < 1 << 40 else { return nil }
    return RemoteBytes(memory, address, Int(min(size, 512)) & ~7)
  }

  private func isHeap(_ word: UInt64) -> Bool {
    word % 16 == 0 && word > 1 << 16 && word < 1 << 47 && !isInImage(word)
  }
}
