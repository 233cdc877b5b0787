/// Kinds about rules that were broken.
extension Explanations {
  static let unbalancedGroup = Explanation(
    means: "A DispatchGroup was left more often than entered, or is waited for while nothing alive"
      + " can leave it.",
    why: "An early return or an error path skips leave(), or a completion handler runs twice.",
    fix: "Put leave() into a defer right behind enter(), or use async(group:), which pairs them.",
    limits: "A leave that would come from outside the process cannot be foreseen.")

  static let semaphoreMisuse = Explanation(
    means: "A semaphore was destroyed below its first value, is waited for while nothing will"
      + " signal it, or was signalled above the limit that it was made with.",
    why: "A wait without its signal on an error path; a signal too many in a cleanup.",
    fix: "Pair wait() and signal() with defer; create the semaphore with 0 if it only announces.",
    limits: "A semaphore has no owner: who ought to signal it is a guess from who did before.")

  static let lockMisuse = Explanation(
    means: "A lock was unlocked by a thread that does not hold it, destroyed while held or waited"
      + " for, left locked by a thread that ended, or an error from it was ignored.",
    why: "lock() and unlock() are on different paths; an object dies while another thread is in it;"
      + " fork() copied a lock that another thread held.",
    fix: "Use withLock { }, which cannot be unbalanced; keep the object alive until its users have"
      + " gone; in a forked child call exec at once.",
    limits:
      "A lock that is handed to another thread by agreement looks the same at first; where its"
      + " history shows that it is used so, it is not reported.")

  static let queueMisuse = Explanation(
    means: "A dispatch queue was used in a way that does not do what it says.",
    why: "A barrier on a global queue excludes nothing; suspend and resume do not pair; a queue is"
      + " to be resumed by a block that is queued on it.",
    fix: "Use barriers on concurrent queues of your own; pair suspend and resume with defer.",
    limits: "A resume that would come later from elsewhere cannot be foreseen.")

  static let conditionMisuse = Explanation(
    means: "A condition variable is used without its mutex, with two mutexes, or a signal came when"
      + " nobody waited and the wait that followed never ends.",
    why: "The state that is waited for is changed or tested outside the mutex.",
    fix: "Change the state with the mutex held, then signal; wait in a loop that tests the state.",
    limits: "The state itself is the program's own: that a wait was needless is not visible.")

  static let continuationMisuse = Explanation(
    means: "A continuation was resumed twice, or never while a task waits for it.",
    why: "A callback is called twice or not at all on one of its paths.",
    fix: "Resume exactly once on every path; use withCheckedContinuation while developing.",
    limits: "A continuation that something outside still holds is not called dropped.")

  static let dataRace = Explanation(
    means: "Two threads touched one value, at least one of them wrote, and nothing orders the two.",
    why: "The value is shared without a lock, an actor or another synchronisation.",
    fix:
      "Protect it with one Mutex at all places, make it an actor's, or make it immutable. Swift 6"
      + " mode finds most of these at compile time.",
    limits: "Only values under watch are seen, and only orders that were taken in this run.")
}
