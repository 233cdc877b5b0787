public import WaitForGraph

/// What is known of a timer or a block that waits for a run loop which nobody runs.
public struct StrandedFacts: Sendable {
  public var thread: ThreadID
  /// Since it was due.
  public var seconds: Double
  /// False for a block of `RunLoop.perform`.
  public var isTimer: Bool
  /// Of the mode in which the loop runs, "" where that is not known; nil while it is not run.
  public var mode: String?
  /// The beginning of what would be called.
  public var function: [Frame]
  public init(
    thread: ThreadID, seconds: Double, isTimer: Bool, mode: String?, function: [Frame]
  ) {
    self.thread = thread
    self.seconds = seconds
    self.isTimer = isTimer
    self.mode = mode
    self.function = function
  }
}

/// Makes the warning that a run loop with something to do is not run.
public struct StrandedFinding: Sendable {
  private let names: Names

  public init(threads: [Thread], resources: [Resource], process: WatchedProcess? = nil) {
    names = Names(threads: threads, resources: resources, process: process)
  }

  public func finding(for facts: StrandedFacts, time: String = UTCTime.now()) -> Finding {
    let who = names.short(facts.thread)
    let thread = names.threads[facts.thread]
    let what = facts.isTimer ? "a timer" : "a block of RunLoop.perform"
    let lasts =
      facts.isTimer
      ? "has been due for \(HangFinding.words(facts.seconds))"
      : "has waited for \(HangFinding.words(facts.seconds))"
    let why =
      switch facts.mode {
      case nil: "nobody runs that loop"
      case ""?: "that loop runs in a mode that does not have it"
      case let mode?: "that loop runs in mode \(cleaned(mode)), which does not have it"
      }
    let mend =
      facts.mode != nil
      ? "add it to that mode as well (.common)"
      : "run the loop there (RunLoop.current.run()), or use "
        + (facts.isTimer
          ? "DispatchSource.makeTimerSource or Task.sleep" : "a dispatch queue")
    var evidence: [Finding.Evidence] = []
    if !facts.function.isEmpty {
      evidence.append(.init(label: "the timer would call this", thread: nil, stack: facts.function))
    }
    if let stack = thread?.stack, !stack.isEmpty {
      evidence.append(.init(label: "\(who) is here meanwhile", thread: facts.thread, stack: stack))
    }
    return Finding(
      kind: .hang, severity: .warning, certainty: .certain,
      message: "\(what) of the run loop of \(who) \(lasts), but \(why): \(mend)",
      threads: [facts.thread], resources: [], evidence: evidence,
      fingerprint: Fingerprint.sites(
        .hang, [facts.isTimer ? "timer" : "block", facts.mode == nil ? "loop" : "mode"],
        stacks: facts.function.isEmpty ? [thread?.stack ?? []] : [facts.function]),
      time: time)
  }
}
