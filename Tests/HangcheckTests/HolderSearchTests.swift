import Testing

@testable import ProcessInspector

/// Who can never go on, by what refers to what in a small memory.
@Suite struct HolderSearchTests {
  typealias Place = HolderSearch.Place

  /// Objects of 32 bytes at multiples of 0x100 up to 0x7000, of which some are free; frames of thread
  /// n at 0x10000 * (n + 1); all else belongs to nobody known.
  struct Memory {
    var words: [UInt64: UInt64] = [:]
    var unused: Set<UInt64> = []

    func place(_ address: UInt64) -> Place {
      if address >= 0x10000 {
        return address < 0x90000 ? .thread(Int(address / 0x10000) - 1) : .outside
      }
      guard address < 0x7000, address % 0x100 < 0x20 else { return .outside }
      let start = address - address % 0x100
      return unused.contains(start) ? .unused : .object(start..<start + 0x20)
    }

    func references(to ranges: [Range<UInt64>]) -> [HolderSearch.Reference] {
      words.compactMap { address, value in
        ranges.contains { $0.contains(value) } ? .init(address: address, value: value) : nil
      }
    }

    func stuck(_ waits: [Int: HolderSearch.Blocked.Wait], most: Int = 4000) -> Set<Int>? {
      var search = HolderSearch()
      search.mostObjects = most
      return search.stuck(
        waits.sorted { $0.key < $1.key }.map { thread, wait in
          let start = UInt64(thread + 1) * 0x10000
          return .init(thread: thread, wait: wait, frames: start..<start + 0x8000)
        }, place: place, references: references)
    }
  }

  @Test func onlyTheWaiterRefersToIt() {
    let memory = Memory(words: [0x10010: 0x100])
    #expect(memory.stuck([0: .object(0x100)]) == [0])
  }

  @Test func nobodyRefersToIt() {
    #expect(Memory().stuck([0: .object(0x100)]) == [0])
  }

  @Test(arguments: [UInt64(0x9000), 0x90008])
  func somethingUnknownRefersToIt(_ address: UInt64) {
    let memory = Memory(words: [0x10010: 0x100, address: 0x100])
    #expect(memory.stuck([0: .object(0x100)]) == [])
  }

  /// A pointer into the middle of it counts.
  @Test func intoTheMiddle() {
    #expect(Memory(words: [0x9000: 0x118]).stuck([0: .object(0x100)]) == [])
    #expect(Memory(words: [0x9000: 0x120]).stuck([0: .object(0x100)]) == [0])
  }

  @Test func overOtherObjects() {
    // 0x300 -> 0x200 -> 0x100, and who has 0x300?
    let chain: [UInt64: UInt64] = [0x208: 0x100, 0x310: 0x200]
    var memory = Memory(words: chain)
    #expect(memory.stuck([0: .object(0x100)]) == [0])
    memory.words[0x10020] = 0x300
    #expect(memory.stuck([0: .object(0x100)]) == [0])
    memory.words[0x9000] = 0x300
    #expect(memory.stuck([0: .object(0x100)]) == [])
  }

  /// Objects that refer to each other keep nobody else alive.
  @Test func circlesOfObjects() {
    let memory = Memory(words: [0x208: 0x100, 0x108: 0x200, 0x110: 0x100])
    #expect(memory.stuck([0: .object(0x100)]) == [0])
  }

  @Test func whatIsFreeDoesNotCount() {
    let memory = Memory(words: [0x208: 0x100, 0x9000: 0x200], unused: [0x200])
    #expect(memory.stuck([0: .object(0x100)]) == [0])
  }

  @Test func eachWouldWakeTheOther() {
    let words: [UInt64: UInt64] = [0x10000: 0x100, 0x10008: 0x200, 0x20000: 0x200, 0x20008: 0x100]
    let waits: [Int: HolderSearch.Blocked.Wait] = [0: .object(0x100), 1: .object(0x200)]
    #expect(Memory(words: words).stuck(waits) == [0, 1])
    // One of them can be woken, and would wake the other.
    #expect(Memory(words: words.merging([0x9000: 0x200]) { $1 }).stuck(waits) == [])
  }

  /// What only a thread that can be woken refers to can be given; what it does not refer to cannot.
  @Test func onlyOneOfThem() {
    let words: [UInt64: UInt64] = [0x20000: 0x200, 0x9000: 0x200, 0x10000: 0x100]
    let waits: [Int: HolderSearch.Blocked.Wait] = [0: .object(0x100), 1: .object(0x200)]
    #expect(Memory(words: words).stuck(waits) == [0])
  }

  /// Whoever points into a blocked thread's stack may reach what lies there.
  @Test func intoTheStack() {
    var memory = Memory(words: [0x10010: 0x100, 0x9000: 0x10000])
    #expect(memory.stuck([0: .object(0x100)]) == [])
    memory.words = [0x10010: 0x100, 0x308: 0x10000]
    #expect(memory.stuck([0: .object(0x100)]) == [0])
  }

  // MARK: - Work that waits for its turn

  /// The object at 0x400 is a block that refers to what thread 0 waits for; a list at 0x9000 leads to it.
  private func queued(
    behind owners: [Int], words more: [UInt64: UInt64] = [:],
    list: [Range<UInt64>]? = [0x9000..<0x9040],
    waits: [Int: HolderSearch.Blocked.Wait] = [0: .object(0x100)]
  ) -> Set<Int>? {
    let words: [UInt64: UInt64] = [0x10010: 0x100, 0x408: 0x100, 0x9010: 0x400]
    let memory = Memory(words: words.merging(more) { $1 })
    let threads = waits.sorted { $0.key < $1.key }.map { thread, wait in
      let start = UInt64(thread + 1) * 0x10000
      return HolderSearch.Blocked(thread: thread, wait: wait, frames: start..<start + 0x8000)
    }
    let work = HolderSearch.Blocked(
      thread: 9, wait: .threads(owners), frames: 0x400..<0x420, list: list, isWork: true)
    return HolderSearch().stuck(
      threads + [work], place: { (0x400..<0x420).contains($0) ? .thread(9) : memory.place($0) },
      references: memory.references)
  }

  @Test func workBehindTheWaiter() {
    #expect(queued(behind: [0]) == [0, 9])
    // Its turn comes.
    #expect(queued(behind: []) == [])
    #expect(queued(behind: [5]) == [])
    #expect(queued(behind: [0, 5]) == [0, 9])
    // Somebody else has what it would signal.
    #expect(queued(behind: [0], words: [0x9100: 0x100]) == [])
    // It is kept elsewhere, and may be run from there.
    #expect(queued(behind: [0], words: [0x9100: 0x400]) == [])
    #expect(queued(behind: [0], words: [0x9100: 0x400], list: nil) == [0, 9])
  }

  /// It is behind another thread that is blocked as well, and only by the first.
  @Test func workBehindOthers() {
    let waits: [Int: HolderSearch.Blocked.Wait] = [0: .object(0x100), 1: .threads([0])]
    #expect(queued(behind: [1], waits: waits) == [0, 1, 9])
    #expect(queued(behind: [1], waits: [0: .object(0x100), 1: .threads([5])]) == [])
  }

  /// It lies in the waiter's own stack.
  @Test func onTheStack() {
    #expect(Memory().stuck([0: .object(0x10100)]) == [0])
    #expect(Memory(words: [0x9000: 0x10100]).stuck([0: .object(0x10100)]) == [])
    // In another one's that is blocked for good, too.
    #expect(Memory().stuck([0: .object(0x20100), 1: .object(0x100)]) == [0, 1])
    #expect(
      Memory(words: [0x9000: 0x100]).stuck([0: .object(0x20100), 1: .object(0x100)]) == [])
  }

  @Test func behindAnOwner() {
    let memory = Memory(words: [0x10000: 0x100, 0x20000: 0x100])
    // 1 waits for a lock of 0, and would signal.
    #expect(memory.stuck([0: .object(0x100), 1: .threads([0])]) == [0, 1])
    // For one of a thread that is not blocked.
    #expect(memory.stuck([0: .object(0x100), 1: .threads([5])]) == [])
    // Of both: one that goes on is not enough.
    #expect(memory.stuck([0: .object(0x100), 1: .threads([0, 5])]) == [0, 1])
  }

  @Test func variablesAreReached() {
    #expect(Memory().stuck([0: .object(0x9000)]) == [])
  }

  @Test func tooMuchIsGivenUp() {
    var words: [UInt64: UInt64] = [:]
    for index in UInt64(1)..<60 { words[index * 0x100 + 0x108] = index * 0x100 }
    #expect(Memory(words: words).stuck([0: .object(0x100)]) == [0])
    #expect(Memory(words: words).stuck([0: .object(0x100)], most: 20) == nil)
  }

  /// Against the definition, on random memories: what roots reach, again and again.
  @Test(arguments: 0..<200) func againstMarking(_ seed: UInt64) {
    var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
    func random(_ below: Int) -> Int {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return Int(state % UInt64(below))
    }
    let threads = 4
    var memory = Memory()
    func holder() -> UInt64 {
      switch random(10) {
      case 0: 0x9000 + UInt64(random(4)) * 8
      case 1...3: UInt64(random(threads) + 1) * 0x10000 + UInt64(random(6)) * 8
      default: UInt64(random(12) + 1) * 0x100 + UInt64(random(4)) * 8
      }
    }
    for _ in 0..<22 {
      let target =
        random(12) == 0
        ? UInt64(random(threads) + 1) * 0x10000 : UInt64(random(12) + 1) * 0x100
      memory.words[holder()] = target
    }
    var waits: [Int: HolderSearch.Blocked.Wait] = [:]
    for thread in 0..<threads {
      waits[thread] =
        random(4) == 0
        ? .threads([random(threads + 1)]) : .object(UInt64(random(12) + 1) * 0x100)
    }
    // Forward: from what is known to be reached to what it refers to.
    var reached: Set<UInt64> = []
    var live: Set<Int> = []
    func isReached(_ address: UInt64) -> Bool {
      switch memory.place(address) {
      case .outside: true
      case .unused: false
      case .object(let range): reached.contains(range.lowerBound)
      case .thread(let thread):
        live.contains(thread) || reached.contains(UInt64(thread + 1) * 0x10000)
      }
    }
    var changes = true
    while changes {
      changes = false
      for (address, value) in memory.words
      where isReached(address) && reached.insert(value).inserted {
        changes = true
      }
      for (thread, wait) in waits where !live.contains(thread) {
        let canGoOn =
          switch wait {
          case .object(let address): reached.contains(address)
          case .threads(let owners): owners.allSatisfy { waits[$0] == nil || live.contains($0) }
          }
        if canGoOn {
          live.insert(thread)
          changes = true
        }
      }
    }
    #expect(memory.stuck(waits) == Set(waits.keys).subtracting(live), "seed \(seed)")
  }

  // MARK: - Pointers and chunks

  @Test func marksAndTurnedPointers() {
    let matcher = PointerMatcher([0x5000..<0x5020, 0x5018..<0x5040, 0x7000..<0x7010])
    #expect(matcher.match(0x5000) == 0x5000)
    #expect(matcher.match(0x501f) == 0x501f)
    #expect(matcher.match(0x503f) == 0x503f)
    #expect(matcher.match(0x5040) == nil)
    #expect(matcher.match(0x4fff) == nil)
    #expect(matcher.match(0xf000_0000_0000_7004) == 0x7004)
    #expect(matcher.match(0xfffe_0000_0000_7004) == 0x7004)
    #expect(matcher.match(~0x7008) == 0x7008)
    #expect(matcher.match(~0x7010) == nil)
    #expect(!matcher.mayMatch(0) && !matcher.mayMatch(.max))
  }

  @Test func chunks() throws {
    // In use, free, in use, never given out.
    var words: [UInt64: UInt64] = [
      0x1008: 0x31, 0x1038: 0x41, 0x1070: 0x40, 0x1078: 0x30, 0x10a8: 0x31,
    ]
    words[0x1078] = 0x30
    let heap = try #require(MallocHeap(from: 0x1000, to: 0x10d0) { words[$0] })
    #expect(heap.starts == [0x1000, 0x1030, 0x1070, 0x10a0])
    #expect(heap.place(0x1010) == .object(0x1000..<0x1038))
    // A chunk's memory reaches into the next one's head.
    #expect(heap.place(0x1030) == .object(0x1000..<0x1038))
    #expect(heap.place(0x1040) == .unused)
    #expect(heap.place(0x1080) == .object(0x1070..<0x10a8))
    #expect(heap.place(0x10b0) == .unused)
    #expect(heap.isChunk(0x1070) && !heap.isChunk(0x1078))
    #expect(heap.contains(0x10cf) && !heap.contains(0x10d0) && !heap.contains(0xff8))
  }

  @Test func brokenChunks() {
    let good: [UInt64: UInt64] = [0x1008: 0x31, 0x1038: 0x21]
    #expect(MallocHeap(from: 0x1000, to: 0x1050) { good[$0] } != nil)
    for (address, word) in [
      (0x1008, 0x30_0001), (0x1008, 0x11), (0x1038, 0x31), (0x1038, 0x20), (0x1008, 0x39),
    ] as [(UInt64, UInt64)] {
      let bad = good.merging([address: word]) { $1 }
      #expect(MallocHeap(from: 0x1000, to: 0x1050) { bad[$0] } == nil, "\(address) \(word)")
    }
    #expect(MallocHeap(from: 0x1000, to: 0x1050) { _ in nil } == nil)
  }
}
