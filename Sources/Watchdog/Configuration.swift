extension Watchdog {
  /// What a watch looks for and whom it tells.
  public struct Configuration: Sendable {
    /// Who is told, in this order, each on a thread of its own.
    public var handlers: [Handler] = [.standardError]
    /// What becomes of the process once a deadlock has been told.
    public var onDeadlock = OnDeadlock.continue
    /// How much of the stack of each acquisition is kept.
    public var stacks = Stacks.full
    /// Whether reports on standard error have colours.
    public var color = Color.auto
    /// How long what is under watch (`Watchdog.watch`, `heartbeat`) may make no progress.
    public var hangThreshold = Duration.milliseconds(250)
    /// How long an urgent thread may wait for a less urgent one before that is told.
    public var inversionThreshold = Duration.milliseconds(100)
    /// How long a wait may last before it is worth a note.
    public var waitThreshold = Duration.seconds(10)
    /// Whether lock orders that could deadlock are learned, from `start` on, and reported. Costs a
    /// few nanoseconds a nested lock, and some fifty an `InstrumentedMutex`. Threads are first seen
    /// at their first drop-in: what the main thread did by then is taken to come before.
    public var predictsDeadlocks = false
    /// A file of rules, of the form that `docs/suppressions.md` describes: what they match is not
    /// told. It is read by `start`; one that cannot be read is named on standard error and left out.
    public var suppressions: String?
    /// An earlier report or log: what stands in it is not told again. It is read like the former.
    public var baseline: String?
    /// Whether SIGQUIT (Control-\ in a terminal, or `kill -QUIT`) has every thread written to
    /// standard error: what it waits for, what it holds, and its stack. Takes the signal from `start`
    /// to `stop`, whose default is to end the program with a core; a program that handles the signal
    /// itself keeps it, which is said. The thread that the signal interrupts sees what it sees of any
    /// handled signal: a sleep or poll that ends early.
    public var dumpsOnQuit = false

    /// The defaults: reports on standard error, and the program goes on.
    public init() {}
  }

  /// What becomes of the process once a deadlock has been told.
  public enum OnDeadlock: String, Sendable, CaseIterable {
    /// It goes on.
    case `continue`
    /// It is sent SIGTERM and, a second later, SIGKILL.
    case terminate
    /// It ends with SIGABRT, which leaves a core where the limits allow one.
    case core
  }

  /// How much of the stack of each acquisition is kept.
  public enum Stacks: String, Sendable, CaseIterable {
    /// The calling function and, as far as it can be known later, its callers.
    case full
    /// The calling function.
    case site
    /// Nothing: a report shows where threads wait, but not where they took what they hold.
    case none
  }

  /// Whether reports on standard error have colours.
  public enum Color: String, Sendable, CaseIterable {
    /// On a terminal, unless NO_COLOR is set.
    case auto
    /// Always.
    case always
    /// Never.
    case never
  }
}
