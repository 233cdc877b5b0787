/// Kinds about threads that stand still.
extension Explanations {
  static let deadlock = Explanation(
    means: "Some threads wait for each other in a circle: each waits for what the next one holds,"
      + " so none of them will ever go on. One thread alone can do it, by waiting for what it holds"
      + " itself. Blocks, operations and tasks that are queued are part of it like threads. Or nobody"
      + " is left: all wait or rest, and no timer, descriptor, child process or signal handler could"
      + " make anybody signal, leave or resume what is waited for. Or only those who wait still have a"
      + " reference to it, while the rest of the program lives on.",
    why: "Two pieces of code take the same locks in different orders; a lock that is not recursive"
      + " is taken again by its holder; a read lock is upgraded in place; a queue is synced onto"
      + " from a block that runs on it; a thread is joined while a lock that it needs is held; what"
      + " would signal is queued behind the very thread that waits; one path forgets to leave a"
      + " group, to signal or to resume; a signal comes before the wait.",
    fix: "The report names two places for each edge: where the lock was taken and where the thread"
      + " waits. Give the locks one order and keep it everywhere, release the first before taking"
      + " the second, or merge the two. Do not call out (callbacks, notifications, delegates) with a"
      + " lock held. For a lock taken twice, split the function into a locking and a locked part.",
    limits: "Waits that end by themselves (with a time limit) are no deadlock. Who would have"
      + " signalled a semaphore or a condition is not written anywhere: while anything in the"
      + " process moves and has a reference to it, such a wait is a longWait, or a possible deadlock where"
      + " the work that would end it is queued behind the one who waits.")

  static let potentialDeadlock = Explanation(
    means: "The program did not hang, but took locks in orders that contradict each other. With"
      + " another timing the threads can meet in the middle and wait for each other for ever.",
    why: "One piece of code holds A and takes B, another holds B and takes A; often one of them is"
      + " a callback whose author did not know what was held.",
    fix: "Choose one order for the locks and use it at both places in the report; or narrow one of"
      + " the two sections so that it holds one lock at a time.",
    limits: "A common lock around both, a join between them or a single thread for all of them rule"
      + " the deadlock out, and are not reported. Other reasons why the two never meet (a state that"
      + " is never reached) are not known to the tool: --confirm runs the program again and holds"
      + " threads back until it happens; what does not happen may still be possible.")

  static let hang = Explanation(
    means: "A run loop, a queue or a heartbeat under watch made no progress for the threshold. Or a"
      + " timer has been due for long on a thread whose run loop nobody runs.",
    why: "It waits for a lock, a queue, a file or another process, or it computes for too long.",
    fix: "Look at the stack that stood most often during the hang. If it waits, look at the holder;"
      + " if it runs, move the work to another queue or cut it into pieces.",
    limits: "A stopped, suspended or traced process is left alone, and a starved one told apart."
      + " Work that is slow and work that never ends look alike. In process, only what the program"
      + " puts under watch is seen (Watchdog.shared.watch, heartbeat), and timers.")

  static let longWait = Explanation(
    means: "A thread has waited for one resource longer than the threshold, and no circle explains"
      + " it. Somebody holds it for long: the note says what that one does meanwhile. Or others take"
      + " it again and again while the waiter is passed over; a writer, while readers keep coming.",
    why: "The holder is slow, sleeps, or waits for something outside; or the event that is waited"
      + " for has not happened. A loop gives a lock back and takes it again before the waiter is"
      + " awake; glibc's read-write lock lets readers in as long as one of them reads.",
    fix: "Look at what the holder does while it holds the resource, and take slow work out of it."
      + " Use a lock that is handed over (Synchronization.Mutex), or one that prefers writers"
      + " (PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)."
      + " If the wait is meant to be long, raise --wait-threshold.",
    limits: "It is a note: a long wait can be right. Who took it meanwhile is seen every 10 to 35"
      + " ms: more may have been missed.")

  static let priorityInversion = Explanation(
    means: "A thread of higher priority waited, for longer than --inversion-threshold, for what one"
      + " of lower priority has. Bounded: as long as that one was busy with it. Unbounded: others,"
      + " less urgent than the waiter, kept it from its processor meanwhile. Priority is what the kernel"
      + " goes by (scheduling class, nice value), and then the quality of service of the queue;"
      + " libdispatch for Linux gives its threads a nice value by that.",
    why: "Both use one lock, queue or semaphore, and the lower one was interrupted or slow while it"
      + " had it.",
    fix: "Shorten what is done under the lock, give both the same quality of service, or use a lock"
      + " that lends its waiter's priority to the holder (Synchronization.Mutex, a pthread mutex"
      + " with PTHREAD_PRIO_INHERIT).",
    limits: "Conditions and signals have no owner: an inversion through them is not seen, through a"
      + " semaphore only while one thread has its permit. The figures are the scheduler's, read"
      + " every 50 ms, and begin half a threshold after the wait.")

  static let poolExhaustion = Explanation(
    means: "Every worker of a pool has been blocked for longer than --wait-threshold, and work that"
      + " is queued behind them cannot start. A note: a task has blocked its thread of the cooperative"
      + " pool for as long; a warning where no more than one thread of it is left.",
    why: "Tasks or blocks wait, by semaphore, group or lock, for work that needs a worker of the"
      + " same pool. Swift's cooperative pool has one thread for each core and never grows.",
    fix: "Do not block in async code: await instead. For libdispatch, limit the width with an"
      + " OperationQueue or a semaphore outside the pool.",
    limits: "A pool that grows may get through by itself after a while: it is a note from 8 blocked"
      + " threads on, and an error from 64 on. Threads that sleep, or wait for input or with a time"
      + " limit, are not blocked: a pool that is only busy is not reported.")

  static let livelock = Explanation(
    means: "Threads keep failing to take locks from each other: each tries, without a wait or with"
      + " a time limit, for what another one of them holds, gives back what it has and tries again."
      + " For --wait-threshold none of them has got on.",
    why: "All of them try, back off and try again in the same rhythm.",
    fix: "Take the locks in one order and wait for them, in place of try and back off; or wait"
      + " without a lock for what could not be had; or back off for a random time that grows.",
    limits: "It is a statement about the time that was watched; the next try may succeed. A plain"
      + " Synchronization.Mutex that is free is taken without any call: such tries are seen over the"
      + " drop-in alone. Who holds a spin lock or reads under a read-write lock is known only of"
      + " threads that fail themselves.")
}
