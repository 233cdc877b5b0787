import WaitForGraph

/// A small program without branches: contexts that take locks, and start and wait for each other.
///
/// Contexts are threads, or blocks on serial queues; a queue is a lock that its block holds. There
/// are at most eight, of at most a hundred operations each.
struct OrderProgram {
  enum Operation: Hashable {
    case take(Int, Mode)
    /// A trylock: what is inside is left out when the lock is not free.
    case attempt(Int, Mode)
    case give(Int)
    case make(Int)
    case submit(Int, to: Int)
    case join(Int)
    /// Sync: waits for its turn, then runs on the queue until it leaves.
    case enter(Int)
    /// A block's first operation.
    case begin(Int)
    case leave(Int)
    case signal
    case wait
  }
  struct Hold {
    var lock: Int
    var mode: Mode
    var site: Int
  }

  var contexts: [[Operation]]
  /// By lock, queues included: waiting writers keep readers out.
  var prefersWriters: [Bool]
  /// Locks past these are queues.
  var queueBase: Int
  /// By context and operation: what is held before it.
  private(set) var holds: [[[Hold]]] = []
  /// By context and operation: where an attempt that failed goes on.
  private(set) var afterAttempt: [[Int]] = []
  private(set) var tried: Set<Int> = []
  /// By context and operation: signals less waits before it.
  private var signals: [[Int]] = []

  static func site(_ context: Int, _ operation: Int) -> Int { context * 128 + operation }

  init(contexts: [[Operation]], prefersWriters: [Bool], queueBase: Int) {
    self.contexts = contexts
    self.prefersWriters = prefersWriters
    self.queueBase = queueBase
    for (context, operations) in contexts.enumerated() {
      var held: [Hold] = []
      var holdsHere: [[Hold]] = []
      var after = Array(repeating: 0, count: operations.count)
      var attempts: [Int: Int] = [:]
      var sum = [0]
      for (place, operation) in operations.enumerated() {
        holdsHere.append(held)
        let site = Self.site(context, place)
        sum.append(sum[place])
        switch operation {
        case .take(let lock, let mode): held.append(Hold(lock: lock, mode: mode, site: site))
        case .attempt(let lock, let mode):
          held.append(Hold(lock: lock, mode: mode, site: site))
          attempts[site] = place
          tried.insert(lock)
        case .enter(let queue), .begin(let queue):
          held.append(Hold(lock: queueBase + queue, mode: .exclusive, site: site))
        case .give(let lock): giveBack(lock)
        case .leave(let queue): giveBack(queueBase + queue)
        case .signal: sum[place + 1] += 1
        case .wait: sum[place + 1] -= 1
        case .make, .submit, .join: break
        }
        func giveBack(_ lock: Int) {
          let hold = held.remove(at: held.lastIndex { $0.lock == lock }!)
          if let attempt = attempts[hold.site] { after[attempt] = place + 1 }
        }
      }
      holds.append(holdsHere + [held])
      afterAttempt.append(after)
      signals.append(sum)
    }
  }

  /// Where all contexts stand. One byte a context: its next operation, and a bit for 'it has queued
  /// up'; one nibble for each context in a queue, the foremost lowest.
  struct State: Hashable {
    var places: UInt64 = ~0
    var queues: (UInt64, UInt64) = (0, 0)
    static func == (a: State, b: State) -> Bool { a.places == b.places && a.queues == b.queues }
    func hash(into hasher: inout Hasher) {
      hasher.combine(places)
      hasher.combine(queues.0)
      hasher.combine(queues.1)
    }

    /// 127 before it has been started.
    func place(_ context: Int) -> Int { Int(places >> UInt64(8 * context) & 127) }
    func hasQueuedUp(_ context: Int) -> Bool { places >> UInt64(8 * context + 7) & 1 == 1 }
    mutating func go(_ context: Int, _ place: Int, hasQueuedUp: Bool = false) {
      places &= ~(255 << UInt64(8 * context))
      places |= UInt64(place | (hasQueuedUp ? 128 : 0)) << UInt64(8 * context)
    }
    func first(_ queue: Int) -> Int { Int((queue == 0 ? queues.0 : queues.1) & 15) - 1 }
    mutating func append(_ context: Int, _ queue: Int) {
      var list = queue == 0 ? queues.0 : queues.1
      var shift: UInt64 = 0
      while list >> shift & 15 != 0 { shift += 4 }
      list |= UInt64(context + 1) << shift
      if queue == 0 { queues.0 = list } else { queues.1 = list }
    }
    mutating func removeFirst(_ queue: Int) {
      if queue == 0 { queues.0 >>= 4 } else { queues.1 >>= 4 }
    }
  }

  var start: State {
    var state = State()
    state.go(0, 0)
    return state
  }

  func runs(_ context: Int, _ state: State) -> Bool {
    state.place(context) < contexts[context].count
  }

  func next(_ context: Int, _ state: State) -> Operation {
    contexts[context][state.place(context)]
  }

  func heldNow(_ context: Int, _ state: State) -> [Hold] {
    let place = state.place(context)
    return place < holds[context].count ? holds[context][place] : []
  }

  /// The first hold that keeps out who wants a lock. Waiting writers are somebody else's question.
  func blocker(_ lock: Int, _ mode: Mode, at context: Int, _ state: State) -> Hold? {
    heldNow(context, state).first {
      $0.lock == lock && (mode == .exclusive || $0.mode == .exclusive)
    }
  }

  private func isFree(_ lock: Int, _ mode: Mode, _ state: State) -> Bool {
    for other in contexts.indices {
      if blocker(lock, mode, at: other, state) != nil { return false }
      if mode == .shared, prefersWriters[lock], runs(other, state), state.hasQueuedUp(other),
        next(other, state) == .take(lock, .exclusive)
      {
        return false
      }
    }
    return true
  }

  /// The state after a context's next step, if it can make one.
  func step(_ context: Int, _ state: State) -> State? {
    guard runs(context, state) else { return nil }
    var after = state
    let place = state.place(context)
    after.go(context, place + 1)
    switch next(context, state) {
    case .take(let lock, let mode):
      if isFree(lock, mode, state) { return after }
      guard mode == .exclusive, prefersWriters[lock], !state.hasQueuedUp(context) else {
        return nil
      }
      after.go(context, place, hasQueuedUp: true)
    case .attempt(let lock, let mode):
      if !isFree(lock, mode, state) { after.go(context, afterAttempt[context][place]) }
    case .make(let other): after.go(other, 0)
    case .submit(let other, let queue):
      after.go(other, 0)
      after.append(other, queue)
    case .join(let other):
      guard state.place(other) == contexts[other].count else { return nil }
    case .enter(let queue):
      if !state.hasQueuedUp(context) {
        after.go(context, place, hasQueuedUp: true)
        after.append(context, queue)
      } else if state.first(queue) != context {
        return nil
      }
    case .begin(let queue): if state.first(queue) != context { return nil }
    case .leave(let queue): after.removeFirst(queue)
    case .wait:
      let permits = contexts.indices.reduce(0) { sum, other in
        let place = state.place(other)
        return sum + (place < signals[other].count ? signals[other][place] : 0)
      }
      if permits == 0 { return nil }
    case .give, .signal: break
    }
    return after
  }

  /// A step that hinders nobody and whose outcome nobody changes: it may as well come at once.
  func isHarmless(_ context: Int, _ state: State) -> Bool {
    switch next(context, state) {
    case .give(let lock): !tried.contains(lock)
    case .make, .join, .begin, .leave, .signal: true
    case .enter: state.hasQueuedUp(context)
    case .take, .attempt, .submit, .wait: false
    }
  }
}
