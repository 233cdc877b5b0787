/// Kinds about rules that were broken.
extension Explanations {
  static let unbalancedGroup = Explanation(
    means:
      "A DispatchGroup was left more often than entered, for which libdispatch ends the program,"
      + " or its last reference went away with enters outstanding.",
    why: "An early return or an error path skips leave(), or a completion handler runs twice.",
    fix: "Put leave() into a defer right behind enter(), or use async(group:), which pairs them.",
    limits:
      "A group counts and does not pair: which of the enters has no leave is not known. A leave"
      + " that would come from outside the process cannot be foreseen.")

  static let semaphoreMisuse = Explanation(
    means:
      "A semaphore was destroyed below its first value, for which libdispatch ends the program, or"
      + " was signalled above the limit that it was made with.",
    why: "A wait without its signal on an error path; a signal too many in a cleanup.",
    fix: "Pair wait() and signal() with defer; create the semaphore with 0 if it only announces.",
    limits: "A semaphore has no owner: who ought to signal it is a guess from who did before.")

  static let lockMisuse = Explanation(
    means:
      "A lock was unlocked by a thread that does not hold it, destroyed or initialised anew while"
      + " held or waited for, left locked by a thread that ended, or an error from it was ignored.",
    why: "lock() and unlock() are on different paths; an object dies while another thread is in it;"
      + " fork() copied a lock that another thread held.",
    fix: "Use withLock { }, which cannot be unbalanced; keep the object alive until its users have"
      + " gone; in a forked child call exec at once.",
    limits:
      "A lock that a thread left behind is told of after a second, or as the program exits; where"
      + " another thread gives it back before, that is told. Of readers a lock knows the number alone:"
      + " a read lock that another thread gives back is not seen. Nor is Synchronization.Mutex, whose"
      + " fast path calls nothing.")

  static let queueMisuse = Explanation(
    means:
      "A dispatch queue, source or work item was used in a way that ends the program or does not do"
      + " what it says.",
    why:
      "Suspend and resume do not pair, or the last reference goes before the resume; a work item is"
      + " waited for twice; a barrier on a global queue excludes nothing.",
    fix: "Use barriers on concurrent queues of your own; pair suspend and resume with defer.",
    limits: "A resume that would come later from elsewhere cannot be foreseen.")

  static let conditionMisuse = Explanation(
    means: "A condition variable is waited for without its mutex, or with two mutexes at once.",
    why: "The state that is waited for is changed or tested outside the mutex.",
    fix: "Change the state with the mutex held, then signal; wait in a loop that tests the state.",
    limits: "The state itself is the program's own: that a wait was needless, or a change was not"
      + " signalled, is not visible. Two mutexes are seen while both waits last for a tenth of a"
      + " second.")

  static let continuationMisuse = Explanation(
    means: "A checked continuation was resumed twice, for which Swift ends the program, or its last"
      + " reference went away without a resume, so that its task waits for ever.",
    why: "A callback is called twice or not at all on one of its paths.",
    fix: "Resume exactly once on every path; use withCheckedContinuation while developing.",
    limits:
      "Unsafe continuations check nothing. A continuation that something still holds is not called"
      + " dropped.")

  static let dataRace = Explanation(
    means: "Two threads touched one value, at least one of them wrote, and nothing orders the two.",
    why: "The value is shared without a lock, an actor or another synchronisation.",
    fix:
      "Protect it with one Mutex at all places, make it an actor's, or make it immutable. Swift 6"
      + " mode finds most of these at compile time.",
    limits:
      "Only races of accesses that this run made. From RaceChecked: only values under it, and only"
      + " orders that a drop-in makes; what an atomic or a plain lock orders is reported, unless"
      + " HappensBefore says it, and accesses in Swift tasks are taken as ordered. From"
      + " ThreadSanitizer (swift build --sanitize thread, run by hangcheck): all memory of what was"
      + " built so, and nothing of other libraries; with a static standard library only a possible"
      + " race.")
}
