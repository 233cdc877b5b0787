import WaitForGraph

/// One complete run of a program by a random schedule: what a recorder makes of it, and what
/// happened.
struct OrderRun {
  struct Event {
    /// The event's number in the whole run.
    var time: Int
    var place: Int
    var operation: OrderProgram.Operation
    /// It only queued up, or its trylock failed.
    var isInVain: Bool
  }
  let program: OrderProgram
  private(set) var record: LockOrderRecord
  /// By context.
  private(set) var events: [[Event]]

  /// Nil when this schedule ends before all contexts do.
  init?(
    _ program: OrderProgram, seesSemaphores: Bool, exact: Bool, using source: inout SplitMix
  ) {
    self.program = program
    events = program.contexts.map { _ in [] }
    var recorder = OrderRecorder(locks: Self.locks(program), exact: exact)
    recorder.start(0)
    var last: [Int: OrderRecorder.Clock] = [:]
    var permits: OrderRecorder.Clock = []
    var state = program.start
    for time in 0... {
      let able = program.contexts.indices.filter { program.step($0, state) != nil }
      guard let context = able.randomElement(using: &source),
        let after = program.step(context, state)
      else { break }
      let (place, operation) = (state.place(context), program.next(context, state))
      let isInVain = after.place(context) != place + 1
      state = after
      events[context].append(
        Event(time: time, place: place, operation: operation, isInVain: isInVain))
      defer {
        // A trylock that fails may be the last that it does.
        if !program.runs(context, state) { last[context] = recorder.end(context) }
      }
      if isInVain { continue }
      let site = OrderProgram.site(context, place)
      switch operation {
      case .take(let lock, let mode): recorder.take(context, lock, mode, site: site)
      case .attempt(let lock, let mode):
        recorder.take(context, lock, mode, isRequest: false, site: site)
      case .enter(let queue): recorder.take(context, program.queueBase + queue, site: site)
      case .begin(let queue):
        recorder.take(context, program.queueBase + queue, isRequest: false, site: site)
      case .give(let lock): recorder.give(context, lock)
      case .leave(let queue): recorder.give(context, program.queueBase + queue)
      case .make(let other), .submit(let other, _):
        recorder.start(other, knowing: recorder.handOver(context))
      case .join(let other): recorder.learn(context, last[other] ?? [])
      case .signal: permits = joinOf(permits, recorder.handOver(context))
      case .wait: if seesSemaphores { recorder.learn(context, permits) }
      }
    }
    record = recorder.record
    if program.contexts.indices.contains(where: {
      state.place($0) != program.contexts[$0].count
    }) {
      return nil
    }
  }

  private static func locks(_ program: OrderProgram) -> [LockOrderRecord.Lock] {
    let operations = program.contexts.flatMap { $0 }
    return program.prefersWriters.enumerated().map { lock, prefersWriters in
      .init(
        kind: lock < program.queueBase ? .rwlock : .queue,
        blocksReaders: prefersWriters && operations.contains(.take(lock, .exclusive)),
        classID: lock)
    }
  }

  func hasMade(_ site: Int) -> Bool {
    events[site / 128].contains { $0.place == site % 128 && !$0.isInVain }
  }
}
