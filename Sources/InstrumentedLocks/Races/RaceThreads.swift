#if Detection
  internal import CHangcheck
  internal import Glibc

  typealias RaceThread = UnsafeMutablePointer<hck_race_thread>

  /// The threads that keep clocks, by index; a record stays where it is as long as the process lives.
  ///
  /// An index goes to another thread when its own has ended, the one that has rested longest first:
  /// its clock goes on, so that what the first thread did looks like the second one's own, or like
  /// what others had seen of it. Races can be missed by that, and none made up.
  enum RaceThreads {
    private struct Registry {
      var lock: UInt32 = 0
      var free: [RaceThread] = []
      var key: pthread_key_t = 0
    }
    // Written with its lock held; lives as long as the process.
    nonisolated(unsafe) private static let registry: UnsafeMutablePointer<Registry> = {
      let registry = UnsafeMutablePointer<Registry>.allocate(capacity: 1)
      registry.initialize(to: Registry())
      pthread_key_create(&registry.pointee.key) { RaceThreads.leave($0) }
      // The other threads may have held any lock of ours.
      pthread_atfork(nil, nil) { hck_end_ordering(HCK_ORDER_RACES) }
      return registry
    }()
    // Moved with the registry's lock held.
    nonisolated(unsafe) private static let indices: UnsafeMutablePointer<UInt32> = {
      let indices = UnsafeMutablePointer<UInt32>.allocate(capacity: 1)
      indices.initialize(to: 0)
      return indices
    }()
    /// How many threads must have ended before the first one's index is used again.
    private static let resting = 64

    static var count: Int { Int(hck_load32(indices)) }

    static subscript(index: Int) -> RaceThread? {
      index < Int(HCK_RACE_THREADS) ? hck_race_threads()[index] : nil
    }

    /// The calling thread; one that was not seen before comes after all that was done so far.
    @inline(__always) static var current: RaceThread? {
      hck_race_thread_get() ?? enroll(isKnown: false)
    }

    /// nil in a forked child, and where there are too many threads. `isKnown`: the caller says what
    /// comes before its first step. `mayBeWorker`: it may be one of libdispatch's, whose name is all
    /// that tells; threads inherit it.
    @inline(never) static func enroll(isKnown: Bool, mayBeWorker: Bool = true) -> RaceThread? {
      guard hck_is_racing() != 0, let thread = take() else { return nil }
      hck_thread_name(hck_race_name(thread))
      let tid = hck_gettid()
      thread.pointee.tid = tid
      thread.pointee.origin =
        (tid == UInt32(bitPattern: getpid())
        ? HCK_RACE_MAIN
        : mayBeWorker && hck_is_worker_name(hck_race_name(thread)) != 0
          ? HCK_RACE_WORKER : HCK_RACE_THREAD).rawValue
      thread.pointee.settles = isKnown || thread.pointee.origin == HCK_RACE_MAIN.rawValue ? 0 : 1
      hck_race_stack(thread)
      pthread_setspecific(registry.pointee.key, thread)
      hck_race_thread_set(thread)
      if !isKnown { joinAll(thread) }
      return thread
    }

    private static func take() -> RaceThread? {
      let registry = registry
      hck_spin_lock(&registry.pointee.lock)
      defer { hck_spin_unlock(&registry.pointee.lock) }
      let index = count
      let isFull = index == Int(HCK_RACE_THREADS)
      let thread: RaceThread
      if registry.pointee.free.count > (isFull ? 0 : resting) {
        thread = registry.pointee.free.removeFirst()
      } else if isFull {
        return nil
      } else {
        thread = .allocate(capacity: 1)
        thread.initialize(to: hck_race_thread())
        thread.pointee.index = UInt32(index)
        thread.pointee.epoch = UInt64(index) << UInt64(HCK_CLOCK_BITS)
        hck_race_threads()[index] = thread
        hck_store32(indices, UInt32(index) + 1)
      }
      _ = hck_bump64(&thread.pointee.epoch)
      var clock = VectorClock(of: thread)
      clock.clear()
      thread.pointee.changes &+= 1
      thread.pointee.lives &+= 1
      thread.pointee.depth = 0
      thread.pointee.unseen = 0
      thread.pointee.held_count = 0
      thread.pointee.skipped = 0
      hck_store32(&thread.pointee.is_live, 1)
      return thread
    }

    private static func leave(_ value: UnsafeMutableRawPointer?) {
      guard let thread = value?.assumingMemoryBound(to: hck_race_thread.self) else { return }
      hck_race_thread_set(nil)
      hck_thread_name(hck_race_name(thread))
      if thread.pointee.settles != 0 { settle(thread) }
      hck_store32(&thread.pointee.is_live, 0)
      // In a forked child nobody asks for it any more.
      guard hck_is_racing() != 0 else { return }
      hck_spin_lock(&registry.pointee.lock)
      registry.pointee.free.append(thread)
      hck_spin_unlock(&registry.pointee.lock)
    }

    /// All that any thread has done so far comes before what `thread` does next: for an order that
    /// nobody has told us of.
    static func joinAll(_ thread: RaceThread) {
      var clock = VectorClock(of: thread)
      for index in 0..<count {
        guard let other = self[index], other != thread else { continue }
        // What it does from here on bears another clock. One that has ended, too: its record may be
        // another thread's just now.
        clock.raise(index, to: hck_bump64(&other.pointee.epoch).clock)
      }
      clock.store(in: thread, isNews: true)
    }

    /// What `thread` has done and seen so far comes before all that anybody does from here on: for
    /// an end that others may have waited for unseen.
    static func settle(_ thread: RaceThread) {
      let clock = VectorClock(of: thread)
      for index in 0..<Int(clock.count) where clock[index] != 0 {
        guard let other = self[index], other != thread else { continue }
        hck_raise64(&other.pointee.settled, clock[index])
      }
      hck_raise64(&thread.pointee.settled, hck_bump64(&thread.pointee.epoch).clock)
    }

    /// Whether an access at `epoch` comes before what `thread` does now.
    static func isOrdered(_ epoch: Epoch, before thread: RaceThread) -> Bool {
      let index = epoch.threadIndex
      if index == Int(thread.pointee.index) { return true }
      if epoch.clock <= VectorClock(of: thread)[index] { return true }
      guard let other = self[index] else { return true }
      return epoch.clock <= hck_load64(&other.pointee.settled)
    }

    /// Whether the thread runs code whose beginning and end are not seen: a Swift task's, which goes
    /// from thread to thread, or a block of libdispatch's that no drop-in submitted. The main thread
    /// runs the main actor's tasks. So is a work item, whose end libdispatch tells those who wait.
    static func isUnseen(_ thread: RaceThread) -> Bool {
      if hck_current_task() != nil {
        hck_race_see_tasks()
        return true
      }
      if thread.pointee.unseen > 0 { return true }
      switch thread.pointee.origin {
      case HCK_RACE_WORKER.rawValue: return thread.pointee.depth == 0
      case HCK_RACE_MAIN.rawValue: return hck_race_tasks_seen() != 0
      default: return false
      }
    }
  }
#endif
