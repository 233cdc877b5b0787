/// A program as the happens-before model sees it: steps of threads, one after the other in time.
struct RaceProgram: CustomStringConvertible {
  enum Step: Hashable {
    case read(Int)
    case write(Int)
    case lock(Int)
    case unlock(Int)
    case readLock(Int)
    case writeLock(Int)
    case readUnlock(Int)
    case writeUnlock(Int)
    case signal(Int)
    case wait(Int)
    case once(Int)
  }
  struct Move {
    var thread: Int
    var step: Step
  }
  static let (values, locks, readWriteLocks, semaphores, onces) = (3, 2, 2, 2, 1)
  var threads: Int
  var moves: [Move] = []
  var description: String { moves.map { "\($0.thread): \($0.step)" }.joined(separator: "\n") }

  /// Moves that can be made in this order: who would have to wait does not move. With `isClean`
  /// each value has a lock of its own, and who does not hold it leaves it alone.
  init(seed: UInt64, length: Int, isClean: Bool = false) {
    var random = Random(state: seed)
    threads = 2 + random.next(3)
    var owners = [Int?](repeating: nil, count: Self.locks)
    var writers = [Int?](repeating: nil, count: Self.readWriteLocks)
    var readers = [Set<Int>](repeating: [], count: Self.readWriteLocks)
    var permits = [Int](repeating: 0, count: Self.semaphores)
    func canUse(_ value: Int, _ thread: Int, writes: Bool) -> Bool {
      if !isClean { return true }
      // The first two by a mutex, the others by a read-write lock.
      if value < Self.locks { return owners[value] == thread }
      let lock = value % Self.readWriteLocks
      return writers[lock] == thread || (!writes && readers[lock].contains(thread))
    }
    while moves.count < length {
      let thread = random.next(threads)
      let step: Step
      switch random.next(11) {
      case 0, 1, 2:
        let value = random.next(Self.values)
        guard canUse(value, thread, writes: false) else { continue }
        step = .read(value)
      case 3, 4:
        let value = random.next(Self.values)
        guard canUse(value, thread, writes: true) else { continue }
        step = .write(value)
      case 5, 6:
        let lock = random.next(Self.locks)
        if owners[lock] == thread {
          owners[lock] = nil
          step = .unlock(lock)
        } else if owners[lock] == nil {
          owners[lock] = thread
          step = .lock(lock)
        } else {
          continue
        }
      case 7, 8:
        let lock = random.next(Self.readWriteLocks)
        if writers[lock] == thread {
          writers[lock] = nil
          step = .writeUnlock(lock)
        } else if readers[lock].contains(thread) {
          readers[lock].remove(thread)
          step = .readUnlock(lock)
        } else if writers[lock] != nil {
          continue
        } else if readers[lock].isEmpty && random.next(2) == 0 {
          writers[lock] = thread
          step = .writeLock(lock)
        } else {
          readers[lock].insert(thread)
          step = .readLock(lock)
        }
      case 9:
        let semaphore = random.next(Self.semaphores)
        if permits[semaphore] > 0 && random.next(2) == 0 {
          permits[semaphore] -= 1
          step = .wait(semaphore)
        } else {
          permits[semaphore] += 1
          step = .signal(semaphore)
        }
      default: step = .once(random.next(Self.onces))
      }
      moves.append(Move(thread: thread, step: step))
    }
    // Nothing stays held.
    for lock in 0..<Self.locks {
      if let owner = owners[lock] { moves.append(Move(thread: owner, step: .unlock(lock))) }
    }
    for lock in 0..<Self.readWriteLocks {
      if let writer = writers[lock] { moves.append(Move(thread: writer, step: .writeUnlock(lock))) }
      for reader in readers[lock].sorted() {
        moves.append(Move(thread: reader, step: .readUnlock(lock)))
      }
    }
  }

  /// The values with two accesses, one of them a write, that no path of orders joins.
  var racyValues: Set<Int> {
    // Only the first call runs the block, whose end comes before all others' returns.
    let firstOnces = Set(
      (0..<Self.onces).compactMap { once in moves.firstIndex { $0.step == .once(once) } })
    var before: [[Bool]] = []
    for index in moves.indices {
      var row = [Bool](repeating: false, count: moves.count)
      for earlier in 0..<index where isDirectlyBefore(earlier, index, firstOnces) {
        row[earlier] = true
        for further in 0..<earlier where before[earlier][further] { row[further] = true }
      }
      before.append(row)
    }
    var racy: Set<Int> = []
    for (index, move) in moves.enumerated() {
      guard let (value, writes) = access(move.step) else { continue }
      for earlier in 0..<index where !before[index][earlier] {
        guard let other = access(moves[earlier].step), other.value == value else { continue }
        if writes || other.writes { racy.insert(value) }
      }
    }
    return racy
  }

  private func access(_ step: Step) -> (value: Int, writes: Bool)? {
    switch step {
    case .read(let value): (value, false)
    case .write(let value): (value, true)
    default: nil
    }
  }

  private func isDirectlyBefore(_ first: Int, _ second: Int, _ firstOnces: Set<Int>) -> Bool {
    if moves[first].thread == moves[second].thread { return true }
    return switch (moves[first].step, moves[second].step) {
    case (.unlock(let a), .lock(let b)), (.writeUnlock(let a), .writeLock(let b)),
      (.writeUnlock(let a), .readLock(let b)), (.readUnlock(let a), .writeLock(let b)),
      (.signal(let a), .wait(let b)):
      a == b
    case (.once(let a), .once(let b)): a == b && firstOnces.contains(first)
    default: false
    }
  }

  /// SplitMix64.
  struct Random {
    var state: UInt64
    mutating func next(_ bound: Int) -> Int {
      state &+= 0x9e37_79b9_7f4a_7c15
      var z = state
      z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
      z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
      return Int(truncatingIfNeeded: (z ^ z >> 31) >> 33) % bound
    }
  }
}
