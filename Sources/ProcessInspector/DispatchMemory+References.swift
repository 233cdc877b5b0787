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
    if isWorkItem(block), let inner = self.block(inItem: block) { start = inner }
    guard let words = words(ofBlock: start) else { return found }
    search(words, to: objects, deepest: 4, &found)
    return found
  }

  /// The same for a Swift task: what lies in its own memory, and behind the captures of a closure
  /// that it has yet to run.
  func references(ofTask task: UInt64, to objects: Set<UInt64>) -> Set<UInt64> {
    var found: Set<UInt64> = []
    guard let own = RemoteBytes(memory, task, 0x200),
      let context = memory.word(task &+ 0x40)
    else { return found }
    search(own, to: objects, deepest: 5, &found)
    if let words = RemoteBytes(memory, context &- 0x20, 0x120) {
      search(words, to: objects, deepest: 5, &found)
    }
    return found
  }

  private func search(
    _ first: RemoteBytes, to objects: Set<UInt64>, deepest: Int, _ found: inout Set<UInt64>
  ) {
    var seen: Set<UInt64> = [first.address]
    var open: [(words: RemoteBytes?, address: UInt64, depth: Int)] = [(first, 0, 0)]
    var next = 0
    while next < open.count, next < 256, found.count < objects.count {
      let (known, address, depth) = open[next]
      next += 1
      guard let words = known ?? words(of: address) else { continue }
      for index in 0..<words.words {
        let word = words.word(index * 8)
        if objects.contains(word) { found.insert(word) }
        guard depth < deepest, isHeap(word), seen.insert(word).inserted else { continue }
        // What libdispatch's own objects lead to, nobody captured.
        if kind(of: word) == nil { open.append((nil, word, depth + 1)) }
      }
    }
  }

  private func words(ofBlock address: UInt64) -> RemoteBytes? {
    guard let descriptor = memory.word(address &+ 0x18), let size = memory.word(descriptor &+ 8),
      size > 0x20, size <= 0x400
    else { return nil }
    return RemoteBytes(memory, address &+ 0x20, Int(size - 0x20) & ~7)
  }

  private func words(of address: UInt64) -> RemoteBytes? {
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
