#if Detection
  internal import CHangcheck

  /// An epoch of FastTrack: a thread's index and its clock, in one word.
  typealias Epoch = UInt64

  extension Epoch {
    var clock: UInt64 { self & HCK_CLOCK_MASK }
    var threadIndex: Int { Int(self >> UInt64(HCK_CLOCK_BITS)) }
  }

  /// How far each thread had come, by its index. A plain value without a lock; `end` gives the memory
  /// back.
  struct VectorClock {
    private(set) var clocks: UnsafeMutablePointer<UInt64>?
    private(set) var count: UInt32 = 0

    subscript(index: Int) -> UInt64 {
      index < Int(count) ? clocks.map { $0[index] } ?? 0 : 0
    }

    /// The later of both, for each thread; whether that changed anything.
    @discardableResult mutating func join(_ other: VectorClock) -> Bool {
      guard let others = other.clocks else { return false }
      grow(to: other.count)
      guard let clocks else { return false }
      var isChanged = false
      for index in 0..<Int(other.count) where clocks[index] < others[index] {
        clocks[index] = others[index]
        isChanged = true
      }
      return isChanged
    }

    mutating func raise(_ index: Int, to clock: UInt64) {
      grow(to: UInt32(index) + 1)
      if let clocks, clocks[index] < clock { clocks[index] = clock }
    }

    mutating func clear() {
      for index in 0..<Int(count) { clocks?[index] = 0 }
    }

    mutating func end() {
      clocks?.deallocate()
      clocks = nil
      count = 0
    }

    private mutating func grow(to wanted: UInt32) {
      guard wanted > count else { return }
      let room = (wanted + 15) & ~15
      let fresh = UnsafeMutablePointer<UInt64>.allocate(capacity: Int(room))
      fresh.initialize(repeating: 0, count: Int(room))
      if let clocks {
        fresh.update(from: clocks, count: Int(count))
        clocks.deallocate()
      }
      clocks = fresh
      count = room
    }
  }

  extension VectorClock {
    /// What a thread knows of the others.
    init(of thread: RaceThread) {
      clocks = thread.pointee.clocks
      count = thread.pointee.count
    }

    /// Becomes what that thread knows of the others.
    func store(in thread: RaceThread, isNews: Bool) {
      if isNews { thread.pointee.changes &+= 1 }
      thread.pointee.clocks = clocks
      thread.pointee.count = count
    }
  }
#endif
