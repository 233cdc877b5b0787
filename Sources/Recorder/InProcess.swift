// The recorder's life in a program that uses the drop-in types without the agent. Not part of the
// agent, which brings its own arena, names and fork handlers.
#if !hasFeature(Embedded)
  public import CHangcheck
  internal import Glibc

  /// Who records what the drop-in types do in this process.
  public enum InProcess {
    /// A pthread mutex, with the frame that a site is kept of.
    public typealias Mutex = UnsafeMutablePointer<pthread_mutex_t>
    private typealias LockFunction = @convention(c) (Mutex, UnsafeRawPointer) -> Int32
    private typealias TimedLockFunction =
      @convention(c) (Mutex, UnsafePointer<timespec>, UnsafeRawPointer) -> Int32
    private typealias RaiseFunction = @convention(c) (UInt32, UInt64, UnsafeRawPointer) -> Void
    private typealias NameFunction = @convention(c) (UInt64, UnsafePointer<CChar>?) -> Void
    private typealias HoldFunction = @convention(c) (UInt64, UnsafeRawPointer) -> Void
    private typealias WordFunction = @convention(c) (UInt64) -> Void
    private typealias ArenaFunction = @convention(c) () -> UnsafeMutablePointer<hck_arena>?

    /// The agent of hangcheck is loaded and watches: it sees the pthread calls, so the drop-ins
    /// record nothing but what calls nothing.
    public static var isLeftToAgent: Bool { agentName != nil }

    /// Gives the drop-ins an arena, unless the agent has one; called by whatever is used first.
    /// Costs a load later on.
    public static func begin() { _ = begun }

    /// Somebody is about to read alarms, and they wait for that, or reads them no more.
    public static func setWatched(_ isWatched: Bool) {
      begin()
      guard !isLeftToAgent, let arena = hck_arena_get() else { return }
      if !isWatched {
        hck_store32(&arena.pointee.watched, 0)
      } else if hck_load32(&arena.pointee.watched) == 0 {
        hck_store32(&arena.pointee.watched, HCK_WATCH_BEGINS)
      }
    }

    /// Learns lock orders from here on. Any thread may call it; it does not end.
    public static func learnOrders() {
      begin()
      guard !isLeftToAgent, let arena = hck_arena_get() else { return }
      hck_find_program()
      let offsets = dlsym(nil, "dispatch_queue_offsets")?.assumingMemoryBound(to: UInt16.self)
      if hck_queue_offsets_known(offsets) != 0 {
        hck_know_queues(
          dlsym(nil, "dispatch_get_current_queue"), dlsym(nil, "_dispatch_main_q"),
          dlsym(nil, "swift_task_getCurrentExecutor"))
      }
      arena.pointee.flags |= HCK_FLAG_ORDERS
      if let slot = currentSlot() { beginUnseen(slot, arena) }
      hck_begin_ordering(HCK_ORDER_LOCKS)
    }

    private static let agentName: NameFunction? = {
      guard agentArena != nil, let name = dlsym(nil, "hck_agent_name") else { return nil }
      // The agent's own declarations, in HangAgent/Agent.swift.
      return unsafeBitCast(name, to: NameFunction.self)
    }()

    // Of the agent's memory, which lives as long as the process.
    nonisolated(unsafe) private static let agentArena: UnsafeMutablePointer<hck_arena>? =
      dlsym(nil, "hck_agent_arena").flatMap { unsafeBitCast($0, to: ArenaFunction.self)() }

    private static func agentFunction<T>(_ name: String, as type: T.Type) -> T? {
      // The agent's own declarations, in HangAgent/DropIns.swift.
      isLeftToAgent ? dlsym(nil, name).map { unsafeBitCast($0, to: T.self) } : nil
    }
    private static let agentLock = agentFunction("hck_agent_lock", as: LockFunction.self)
    private static let agentTryLock = agentFunction("hck_agent_trylock", as: LockFunction.self)
    private static let agentTimedLock = agentFunction(
      "hck_agent_timedlock", as: TimedLockFunction.self)

    private static let agentRaise = agentFunction("hck_agent_raise", as: RaiseFunction.self)

    /// Says what is wrong with a drop-in that no call of pthread's or libdispatch's shows, so that
    /// the agent cannot see it itself.
    public static func raise(
      _ kind: hck_alarm_kind, _ word: ResourceWord, _ frame: UnsafeRawPointer
    ) {
      if let agentRaise {
        agentRaise(kind.rawValue, word, frame)
      } else {
        Recorder.raise(kind, word, frame)
      }
    }

    private typealias RaceFunction =
      @convention(c) (UInt32, UnsafeMutablePointer<hck_race>) -> Void
    private static let agentRace = agentFunction("hck_agent_race", as: RaceFunction.self)

    /// Says that two accesses to a checked value race.
    public static func raise(_ kind: hck_alarm_kind, _ race: UnsafeMutablePointer<hck_race>) {
      if let agentRace { agentRace(kind.rawValue, race) } else { Recorder.raise(kind, race) }
    }

    // MARK: - A Mutex that is free, which the agent does not see

    private static let agentHold = agentFunction("hck_agent_took", as: HoldFunction.self)
    private static let agentRelease = agentFunction("hck_agent_gave", as: WordFunction.self)
    private static let agentEnd = agentFunction("hck_agent_ends", as: WordFunction.self)

    /// The thread has taken it; to be called where `hck_tells_agent()` says so, as the next two.
    public static func agentTook(_ word: ResourceWord, _ frame: UnsafeRawPointer) {
      agentHold?(word, frame)
    }

    private static let agentTried = agentFunction("hck_agent_tried", as: HoldFunction.self)
    private static let agentGot = agentFunction("hck_agent_got", as: VoidFunction.self)
    private typealias VoidFunction = @convention(c) () -> Void

    /// The thread tried for a `Mutex` in vain.
    public static func triedInVain(_ word: ResourceWord, _ frame: UnsafeRawPointer) {
      if let agentTried {
        agentTried(word, frame)
      } else if currentSlot() != nil {
        Recorder.triedInVain(word, frame)
      }
    }

    /// The thread has got one by a try, and that does not go on record.
    public static func gotByTry() { if let agentGot { agentGot() } else { Recorder.gotByTry() } }

    /// The thread is about to give it back.
    public static func agentGave(_ word: ResourceWord) { agentRelease?(word) }

    /// It is no more.
    public static func agentEnds(_ word: ResourceWord) { agentEnd?(word) }

    /// Locks where the calling thread has no slot: through the agent if there is one, else
    /// unrecorded.
    public static func lock(_ mutex: Mutex, _ frame: UnsafeRawPointer) -> Int32 {
      agentLock?(mutex, frame) ?? pthread_mutex_lock(mutex)
    }

    /// The same without waiting.
    public static func tryLock(_ mutex: Mutex, _ frame: UnsafeRawPointer) -> Int32 {
      agentTryLock?(mutex, frame) ?? pthread_mutex_trylock(mutex)
    }

    /// The same until a time of the real-time clock.
    public static func timedLock(
      _ mutex: Mutex, _ time: UnsafePointer<timespec>, _ frame: UnsafeRawPointer
    ) -> Int32 {
      agentTimedLock?(mutex, time, frame) ?? pthread_mutex_timedlock(mutex, time)
    }

    private static let begun: Void = {
      guard agentName == nil else {
        if let agentArena, learnsOrders(agentArena), agentHold != nil, agentRelease != nil {
          hck_begin_ordering(HCK_ORDER_AGENT)
        }
        return
      }
      var key: pthread_key_t = 0
      if pthread_key_create(&key, { InProcess.leave($0) }) == 0 {
        threadKey = key
        hasThreadKey = true
      }
      pthread_atfork(nil, nil) { InProcess.startAnew() }
      guard let arena = hck_arena_make(nil) else { return }
      arena.pointee.flags |= HCK_FLAG_IN_PROCESS
      hck_store32(&arena.pointee.clock, UInt32(truncatingIfNeeded: hck_monotonic_ns() / 1_000_000))
      hck_arena_set(arena)
    }()

    /// The key's destructor. The thread sanitizer ends its own part of a thread in the last of
    /// glibc's rounds, after which nothing that it instruments may run: then the one before is
    /// ours.
    private static func leave(_ value: UnsafeMutableRawPointer?) {
      if hck_has_sanitizer() != 0, let slot = value?.assumingMemoryBound(to: hck_slot.self),
        slot.pointee.rounds == 2
      {
        slot.pointee.rounds = 3
      }
      if hck_learns_lock_orders() != 0, hck_is_joinable() != 0,
        let slot = value?.assumingMemoryBound(to: hck_slot.self), slot.pointee.rounds >= 3,
        hck_slot_of_thread() == slot
      {
        handOverToAll(slot)
      }
      endThread(value)
    }

    /// In a forked child, where the forking thread alone lives on: the arena is private, so it is
    /// emptied in place, but for the names. Async-signal-safe.
    private static func startAnew() {
      hck_set_slot_of_thread(nil)
      guard let arena = hck_arena_get() else { return }
      let slots = UnsafeMutableRawPointer(arena).advanced(by: Int(HCK_FIRST_SLOT))
      // Private anonymous pages read as zeros afterwards, as in a new arena.
      madvise(slots, Int(arena.pointee.slots) &* Int(HCK_SLOT_BYTES), MADV_DONTNEED)
      arena.pointee.pid = UInt32(bitPattern: getpid())
      arena.pointee.free_slot = 0
      arena.pointee.unrecorded = 0
      arena.pointee.shared_tallies = 0
      arena.pointee.orders = 0
      arena.pointee.handovers = 0
      hck_store32(&arena.pointee.slots, 0)
    }

    /// Names the resource at `address` for whoever reports; nil takes its name away.
    public static func name(_ address: UInt64, _ text: String?) {
      if let agentName {
        agentName(address, nil)
        if let text { text.withCString { agentName(address, $0) } }
      } else if let arena = hck_arena_get() {
        unnameResource(address, in: arena)
        if let text { text.withCString { nameResource(address, $0, in: arena) } }
      }
    }
  }
#endif
