internal import CHangcheck
internal import Glibc

/// A process's memory at one moment, and whose each part of it is.
final class ReferenceSurvey {
  /// A thread as it stood at that moment.
  struct Thread {
    var tid: KernelThreadID
    /// nil while it runs and was not stopped.
    var stackPointer: UInt64?
    /// Those of vectors behind the general ones.
    var registers: [UInt64]

    static let general = 18
    var programCounter: UInt64? { registers.count > 16 ? registers[16] : nil }
    /// Of the kernel, as the number in the place of rax says.
    var isInCall: Bool { registers.count > 15 && Int64(bitPattern: registers[15]) >= 0 }

    /// Where the C library keeps what it knows of the thread; 0 where that is not known.
    var pthread: UInt64
  }
  /// Work that waits for its turn behind others.
  struct Work {
    /// The object that it is, and where its place in a list refers to it: see `HolderSearch.Blocked`.
    var object: UInt64
    var list: [Range<UInt64>]?
    /// Who must act first: threads by their ids, other work by its place in the list of all, behind
    /// the largest id.
    var owners: [Int]
    static let first = 1 << 32
  }

  /// What a search gave, by the thread.
  private struct Stack {
    var mapping: Range<UInt64>
    var stackPointer: UInt64
    /// In use, and the thread's own variables above.
    var own: Range<UInt64>
    var frames: Range<UInt64>
    /// Whether what lies below is the stack's.
    var ownsBelow: Bool
    var thread: Int
  }

  private let image: MemoryImage
  private let threads: [Thread]
  private let kernelWords: [UInt64]
  /// All threads stood still: what this finds is told.
  private let isLast: Bool
  private var heaps: [MallocHeap] = []
  private var stacks: [Stack] = []
  /// Indices of the threads that are blocked.
  private var blocked: Set<Int> = []
  /// The objects of work, and which.
  private var work: [(range: Range<UInt64>, number: Int)] = []

  private static let mostBytes = 96 << 20
  private static let mostReferences = 40_000
  private static let arenaSize: UInt64 = 64 << 20

  /// Copies the memory; nil where something of it is not known. `deadline`: monotonic nanoseconds.
  init?(
    _ threads: [Thread], outside: OutsideWorld, memory: ProcessMemory, pidfd: Int32,
    deadline: UInt64, isLast: Bool
  ) {
    guard let words = Self.kernelWords(outside, pidfd: pidfd),
      let image = MemoryImage(
        outside.proc, memory: memory, limit: isLast ? Self.mostBytes / 2 : Self.mostBytes,
        deadline: deadline)
    else { return nil }
    self.threads = threads.map { thread in
      var thread = thread
      // A function that calls the C library's keeps nothing in the registers of vectors meanwhile.
      if thread.isInCall, let pc = thread.programCounter, image.mapping(of: pc)?.isLibc == true {
        thread.registers.removeLast(thread.registers.count - Thread.general)
      }
      return thread
    }
    self.image = image
    kernelWords = words
    self.isLast = isLast
  }

  /// The threads, of those that are blocked, that can never go on; nil where that was not found out.
  /// `queued`: what others have yet to run.
  func stuck(
    _ waits: [KernelThreadID: HolderSearch.Blocked.Wait], _ queued: [Work]
  ) -> Set<KernelThreadID>? {
    heaps = self.findHeaps()
    stacks = findStacks()
    let numbers = Dictionary(
      threads.enumerated().map { ($1.tid, $0) }, uniquingKeysWith: { first, _ in first })
    // One that is not listed is none of the blocked ones, which is all that is asked.
    func number(_ owner: Int) -> Int {
      owner >= Work.first
        ? threads.count + owner - Work.first
        : numbers[KernelThreadID(Int32(truncatingIfNeeded: owner))] ?? -1
    }
    var searched: [HolderSearch.Blocked] = []
    for (tid, wait) in waits {
      guard let thread = numbers[tid], let stack = stacks.first(where: { $0.thread == thread })
      else { continue }
      var own = wait
      if case .threads(let owners) = wait { own = .threads(owners.map(number)) }
      searched.append(.init(thread: thread, wait: own, frames: stack.frames))
    }
    searched.sort { $0.thread < $1.thread }
    blocked = Set(searched.map(\.thread))
    work = []
    for (index, one) in queued.enumerated() {
      // Its own chunk of memory, from its beginning.
      guard
        case .object(let range)? = heaps.first(where: { $0.contains(one.object) })?
          .place(one.object), one.object == range.lowerBound &+ 16
      else { continue }
      let own = threads.count + index
      work.append((range, own))
      searched.append(
        .init(
          thread: own, wait: .threads(one.owners.map(number)), frames: range,
          list: one.list, isWork: true))
    }
    let found = HolderSearch().stuck(
      searched, place: { self.place($0) }, references: { self.references(to: $0) })
    return found.map { Set($0.filter { $0 < threads.count }.map { threads[$0].tid }) }
  }

  private func references(to ranges: [Range<UInt64>]) -> [HolderSearch.Reference]? {
    guard
      var found = image.references(
        to: ranges, most: Self.mostReferences, everywhere: isLast)
    else { return nil }
    // malloc's lists lead to where chunks begin, which is where the object before them ends.
    found.removeAll { isOfMalloc($0.address) && isChunk($0.value) }
    let matcher = PointerMatcher(ranges)
    func add(_ words: [UInt64], at address: UInt64) {
      for word in words {
        if let value = matcher.match(word) { found.append(.init(address: address, value: value)) }
      }
    }
    // No mapping has the address 0: it is nobody's own.
    add(kernelWords, at: 0)
    for index in threads.indices {
      let own = blocked.contains(index) ? stacks.first { $0.thread == index } : nil
      add(threads[index].registers, at: own?.frames.lowerBound ?? 0)
    }
    return found
  }

  private func isChunk(_ address: UInt64) -> Bool {
    heaps.contains { $0.isChunk(address) }
  }

  /// Its state lies among its variables, or in front of an arena's chunks.
  private func isOfMalloc(_ address: UInt64) -> Bool {
    guard let mapping = image.mapping(of: address) else { return false }
    return mapping.isLibc
      || heaps.contains { heap in
        heap.starts.first.map { $0 > address && $0 - address < 4096 && mapping.range.contains($0) }
          ?? false
      }
  }

  private func place(_ address: UInt64) -> HolderSearch.Place {
    if let stack = stacks.first(where: { $0.mapping.contains(address) }) {
      if address < stack.frames.lowerBound { return stack.ownsBelow ? .unused : .outside }
      return blocked.contains(stack.thread) && stack.own.contains(address)
        ? .thread(stack.thread) : .outside
    }
    let place = heaps.first { $0.contains(address) }?.place(address) ?? .outside
    guard !work.isEmpty, case .object(let range) = place,
      let own = work.first(where: { $0.range == range })
    else { return place }
    return .thread(own.number)
  }

  // MARK: - Whose memory is what

  private static let redZone: UInt64 = 128

  private func findStacks() -> [Stack] {
    var result: [Stack] = []
    var crowded: Set<UInt64> = []
    for (index, thread) in threads.enumerated() {
      guard let pointer = thread.stackPointer, let mapping = image.mapping(of: pointer) else {
        continue
      }
      let start = mapping.range.lowerBound
      if result.contains(where: { $0.mapping.lowerBound == start }) { crowded.insert(start) }
      let low = max(start, pointer &- Self.redZone)
      if mapping.isStack {
        let used = low..<mapping.range.upperBound
        result.append(
          Stack(
            mapping: mapping.range, stackPointer: pointer, own: used, frames: used,
            ownsBelow: true, thread: index))
        continue
      }
      // It may run on a stack that the program made: then nothing is known of what lies around.
      guard mapping.isAnonymous, thread.pthread > pointer,
        mapping.range.contains(thread.pthread)
      else { continue }
      let end = min(mapping.range.upperBound, (thread.pthread & ~4095) &+ 4096)
      result.append(
        Stack(
          mapping: start..<mapping.range.upperBound, stackPointer: pointer, own: low..<end,
          frames: low..<thread.pthread, ownsBelow: mapping.isGuarded, thread: index))
    }
    return result.filter { !crowded.contains($0.mapping.lowerBound) }
  }

  private func findHeaps() -> [MallocHeap] {
    let word: (UInt64) -> UInt64? = { [image] in image.word($0) }
    var result: [MallocHeap] = []
    for mapping in image.mappings {
      let start = mapping.range.lowerBound
      if mapping.isHeap {
        if let heap = MallocHeap(from: start, to: mapping.range.upperBound, word: word) {
          result.append(heap)
        }
        continue
      }
      guard mapping.isAnonymous, !mapping.isShared, start % Self.arenaSize == 0,
        let heap = MallocHeap(arenaAt: start, within: mapping.range, word: word)
      else { continue }
      result.append(heap)
    }
    return result
  }

  // MARK: - What the kernel keeps

  /// Words that come back from the kernel: with what an epoll tells, with a timer's signal. nil where
  /// something lies there that cannot be known: data on its way from thread to thread, asynchronous
  /// input and output.
  private static func kernelWords(_ outside: OutsideWorld, pidfd: Int32) -> [UInt64]? {
    guard outside.ranges.isKnown, !outside.ranges.hasAsynchronousIO else { return nil }
    guard let descriptors = outside.proc.list(outside.descriptors), descriptors.count <= 512 else {
      return nil
    }
    var words: [UInt64] = []
    // By pipe: which of its ends are open here, 1 to read, 2 to write.
    var ends: [String: (ends: Int, descriptor: Int32)] = [:]
    for descriptor in descriptors.compactMap({ Int32($0) }) {
      guard let link = outside.link(descriptor) else { continue }
      if link == "anon_inode:[eventpoll]" {
        guard let watched = outside.watched(by: descriptor) else { return nil }
        words += watched.map(\.data)
      } else if link == "anon_inode:[io_uring]" {
        return nil
      } else if link.hasPrefix("pipe:") {
        guard let mode = outside.accessMode(descriptor) else { return nil }
        let known = ends[link]?.ends ?? 0
        ends[link] = (known | (mode == O_RDONLY ? 1 : mode == O_WRONLY ? 2 : 3), descriptor)
      } else if link.hasPrefix("socket:"), mayHoldWord(pidfd, descriptor) {
        return nil
      }
    }
    for (ends, descriptor) in ends.values where ends == 3 && mayHoldWord(pidfd, descriptor) {
      return nil
    }
    guard let timers = outside.proc.text("timers") else { return nil }
    for line in timers.split(separator: "\n") where line.hasPrefix("signal:") {
      guard let last = line.split(separator: "/").last, let word = UInt64(last, radix: 16) else {
        return nil
      }
      words.append(word)
    }
    // A signal that waits may bring a word with it.
    guard let status = outside.proc.text("status") else { return nil }
    for line in status.split(separator: "\n")
    where line.hasPrefix("SigPnd:") || line.hasPrefix("ShdPnd:") {
      guard let word = line.split(separator: "\t").last, UInt64(word, radix: 16) == 0 else {
        return nil
      }
    }
    return words
  }

  private static func mayHoldWord(_ pidfd: Int32, _ descriptor: Int32) -> Bool {
    let pending = hck_pending_bytes(pidfd, descriptor)
    // EINVAL: a socket that listens.
    return pending >= 8 || (pending < 0 && pending != -Int64(EINVAL))
  }
}

extension OutsideWorld {
  /// O_RDONLY, O_WRONLY or O_RDWR.
  fileprivate func accessMode(_ descriptor: Int32) -> Int32? {
    guard let text = proc.text("\(descriptors)info/\(descriptor)"),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("flags:") }),
      let word = line.split(separator: "\t").last, let flags = Int32(word, radix: 8)
    else { return nil }
    return flags & O_ACCMODE
  }
}

extension MallocHeap {
  /// The first heap of an arena beside the main one: its head, the arena's state, and chunks up to
  /// the one that was never given out.
  init?(arenaAt start: UInt64, within mapping: Range<UInt64>, word: (UInt64) -> UInt64?) {
    // The arena, the heap before this one, its size.
    guard let arena = word(start), [0x20, 0x30, 0x40].contains(arena &- start),
      word(start + 8) == 0, let size = word(start + 16), size % 4096 == 0, size > 4096,
      size <= mapping.upperBound - start,
      // Behind the lock, flags and the lists of small chunks lies the last chunk.
      let top = word(arena + 0x60), top > start, top < start + size, let rest = word(top + 8),
      top + (rest & ~7) == start + size
    else { return nil }
    for first in stride(from: arena + 0x890, to: arena + 0x8e0, by: 16) {
      if let heap = MallocHeap(from: first &- first % 16, to: start + size, word: word),
        heap.starts.last == top
      {
        self = heap
        return
      }
    }
    return nil
  }
}
