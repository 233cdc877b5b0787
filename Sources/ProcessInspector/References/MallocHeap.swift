/// The chunks of one of glibc's heaps, in order; made only where all of it fits together.
struct MallocHeap {
  /// Where the chunks begin, and where the last one ends. A chunk's first two words are malloc's own
  /// (the first of them belongs to the chunk before), and its memory reaches into the next one's.
  private(set) var starts: [UInt64] = []
  private var isFree: [Bool] = []
  private var end: UInt64 = 0

  private static let flags: UInt64 = 7
  private static let header: UInt64 = 16

  /// Chunks that lie from `start` on up to `end`, of which the last one is what was never given out.
  /// `word` reads.
  init?(from start: UInt64, to end: UInt64, word: (UInt64) -> UInt64?) {
    guard start % 16 == 0, start < end else { return nil }
    self.end = end
    var at = start
    while at < end {
      guard let size = word(at &+ 8), size & ~Self.flags >= 32, size & 8 == 0,
        size & ~Self.flags <= end - at
      else { return nil }
      // Its lowest bit says whether the chunk before is in use.
      if size & 1 == 0 {
        // The size of a free chunk is repeated at its end.
        guard let last = starts.last, let before = word(at), before == at - last else { return nil }
        isFree[isFree.count - 1] = true
      }
      starts.append(at)
      isFree.append(false)
      at += size & ~Self.flags
    }
    isFree[isFree.count - 1] = true
  }

  /// Whether a chunk begins there.
  func isChunk(_ address: UInt64) -> Bool {
    var (low, high) = (0, starts.count)
    while low < high {
      let middle = (low + high) / 2
      if starts[middle] < address { low = middle + 1 } else { high = middle }
    }
    return low < starts.count && starts[low] == address
  }

  func contains(_ address: UInt64) -> Bool {
    starts.first.map { address >= $0 && address < end } ?? false
  }

  /// What an address of the heap belongs to.
  func place(_ address: UInt64) -> HolderSearch.Place {
    // A chunk's memory begins behind its header and ends where the next one's size lies.
    let sought = address &- 8
    var (low, high) = (0, starts.count)
    while low < high {
      let middle = (low + high) / 2
      if starts[middle] <= sought { low = middle + 1 } else { high = middle }
    }
    guard low > 0 else { return .outside }
    let index = low - 1
    if isFree[index] { return .unused }
    let next = index + 1 < starts.count ? starts[index + 1] : end
    return .object(starts[index]..<next + 8)
  }
}
