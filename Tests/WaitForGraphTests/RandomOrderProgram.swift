import WaitForGraph

/// A program of two to four threads and up to two blocks, which completes in most schedules.
func randomProgram(_ source: inout SplitMix) -> OrderProgram {
  let threadCount = Int.random(in: 2...4, using: &source)
  let queueCount = Int.random(in: 0...2, using: &source)
  let contextCount = threadCount + (queueCount > 0 ? Int.random(in: 0...2, using: &source) : 0)
  // Mutexes, read-write locks, and those that prefer writers.
  let kinds = (0..<Int.random(in: 2...4, using: &source)).map { _ in
    max(0, Int.random(in: -2...2, using: &source))
  }
  var contexts: [[OrderProgram.Operation]] = []
  var queues: [Int?] = []
  for context in 0..<contextCount {
    let queue = context < threadCount ? nil : Int.random(in: 0..<queueCount, using: &source)
    var body = RandomBody(kinds: kinds, queueCount: queueCount)
    if let queue { body.enclose(in: queue) }
    for _ in 0..<Int.random(in: 1...2, using: &source) { body.addSection(depth: 0, &source) }
    if let queue { body.leave(queue) }
    contexts.append(body.operations)
    queues.append(queue)
  }
  for context in 1..<contextCount {
    let maker = Int.random(in: 0..<context, using: &source)
    let at = insert(
      queues[context].map { .submit(context, to: $0) } ?? .make(context), into: &contexts[maker],
      after: queues[maker] == nil ? -1 : 0, &source)
    if Int.random(in: 0..<3, using: &source) == 0 {
      insert(.join(context), into: &contexts[maker], after: at, &source)
    }
  }
  if Int.random(in: 0..<3, using: &source) == 0 {
    for operation in [OrderProgram.Operation.signal, .wait] {
      let context = Int.random(in: 0..<contextCount, using: &source)
      insert(operation, into: &contexts[context], after: queues[context] == nil ? -1 : 0, &source)
    }
  }
  return OrderProgram(
    contexts: contexts,
    prefersWriters: kinds.map { $0 == 2 } + Array(repeating: false, count: queueCount),
    queueBase: kinds.count)
}

/// Puts an operation somewhere past a place, but not where a trylock's failure would leave it out,
/// nor after a block has left its queue.
@discardableResult
private func insert(
  _ operation: OrderProgram.Operation, into operations: inout [OrderProgram.Operation],
  after place: Int, _ source: inout SplitMix
) -> Int {
  var attempts: [Int] = []
  var places: [Int] = []
  let isBlock = if case .begin? = operations.first { true } else { false }
  for (index, other) in operations.enumerated() {
    if index > place, attempts.isEmpty { places.append(index) }
    if case .attempt(let lock, _) = other { attempts.append(lock) }
    if case .give(let lock) = other, attempts.last == lock { attempts.removeLast() }
  }
  if !isBlock || places.isEmpty { places.append(operations.count) }
  let at = places.randomElement(using: &source)!
  operations.insert(operation, at: at)
  return at
}

/// Nested sections, each of which takes something and gives it back.
private struct RandomBody {
  let kinds: [Int]
  let queueCount: Int
  var operations: [OrderProgram.Operation] = []
  /// What is held, and whether only shared.
  private var held: [Int: Bool] = [:]

  init(kinds: [Int], queueCount: Int) {
    self.kinds = kinds
    self.queueCount = queueCount
  }

  mutating func enclose(in queue: Int) {
    operations.append(.begin(queue))
    held[kinds.count + queue] = false
  }

  mutating func leave(_ queue: Int) { operations.append(.leave(queue)) }

  mutating func addSection(depth: Int, _ source: inout SplitMix) {
    let lock = Int.random(in: 0..<kinds.count + queueCount, using: &source)
    let isQueue = lock >= kinds.count
    let isShared = !isQueue && kinds[lock] > 0 && Int.random(in: 0..<3, using: &source) > 0
    let before = held[lock]
    if let isHeldShared = before, !isHeldShared || !isShared { return }
    held[lock] = isShared
    let mode = isShared ? Mode.shared : .exclusive
    if isQueue {
      operations.append(.enter(lock - kinds.count))
    } else if before == nil, Int.random(in: 0..<8, using: &source) == 0 {
      operations.append(.attempt(lock, mode))
    } else {
      operations.append(.take(lock, mode))
    }
    if depth < 2 {
      for _ in 0..<Int.random(in: 0...2, using: &source) { addSection(depth: depth + 1, &source) }
    }
    operations.append(isQueue ? .leave(lock - kinds.count) : .give(lock))
    held[lock] = before
  }
}
