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

  /// What work that has yet to run has at hand.
  struct Captures {
    /// The semaphores and groups that are nearest.
    var objects: Set<UInt64> = []
    /// What they were found in: Swift's wrappers, boxes, contexts.
    var holders: Set<UInt64> = []
    /// Functions, as closures among the captures are made of.
    var functions: Set<UInt64> = []
  }

  /// Of a queued block.
  func captures(ofBlock block: UInt64) -> Captures {
    let inner = isWorkItem(block) ? self.block(inItem: block) : nil
    return captures([words(ofBlock: inner ?? block)])
  }

  /// Of a Swift closure.
  func captures(ofContext context: UInt64) -> Captures {
    // One capture alone may stand for itself.
    let object = kind(of: context).map { _ in context } ?? wrapped(by: context)
    var result = captures([words(of: context)])
    if result.objects.isEmpty, let object, let kind = kind(of: object),
      [.semaphore, .group].contains(kind)
    {
      result.objects = [object]
    }
    return result
  }

  /// Of a Swift task: see `references(ofTask:to:)`.
  func captures(ofTask task: UInt64) -> Captures {
    captures([
      RemoteBytes(memory, task, 0x200),
      memory.word(task &+ 0x40).flatMap { RemoteBytes(memory, $0 &- 0x20, 0x120) },
    ])
  }

  /// What closures have captured themselves comes before what lies in the objects that they captured;
  /// of each kind of thing only the nearest count.
  private func captures(_ first: [RemoteBytes?]) -> Captures {
    var result = Captures()
    var kinds: Set<ObjectKind> = []
    for isDirect in [true, false] where kinds.count < 2 {
      let before = kinds
      var level = first.compactMap(\.self)
      var seen = Set(level.map(\.address))
      var reached = before
      for depth in 0...5 where reached.count < 2 {
        let found = reached
        var next: [RemoteBytes] = []
        for bytes in level {
          for index in 0..<bytes.words {
            let word = bytes.word(index * 8)
            if depth > 0, isDirect, word > 1 << 16, word < 1 << 47, isCode(word) {
              result.functions.insert(word)
              continue
            }
            guard isHeap(word), seen.insert(word).inserted else { continue }
            if let kind = kind(of: word) {
              if [.semaphore, .group].contains(kind), !found.contains(kind) {
                result.objects.insert(word)
                if depth > 0 { result.holders.insert(bytes.address) }
                reached.insert(kind)
              }
              continue
            }
            guard depth < 5, seen.count < 512, !isDirect || isCapture(word),
              let more = words(of: word)
            else { continue }
            next.append(more)
          }
        }
        level = next
      }
      kinds = reached
    }
    return result
  }

  /// A closure's context, a variable's box, or Swift's wrapper of an object of libdispatch.
  private func isCapture(_ address: UInt64) -> Bool {
    guard let type = memory.word(address), type % 8 == 0 else { return false }
    // HeapLocalVariable and HeapGenericLocalVariable among the runtime's kinds of metadata.
    if let kind = memory.word(type), kind == 0x400 || kind == 0x500 { return true }
    return wrapped(by: address) != nil
  }

  /// The object of libdispatch that a Swift object stands for: it begins with it, or with Swift's own
  /// wrapper of it.
  func wrapped(by address: UInt64) -> UInt64? {
    var inner = address
    for _ in 0..<2 {
      guard let next = memory.word(inner &+ 16), next % 8 == 0, next > 1 << 16 else { return nil }
      if kind(of: next) != nil { return next }
      inner = next
    }
    return nil
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
