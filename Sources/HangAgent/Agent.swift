// The agent's life in a process: its arena, its word to hangcheck, and what a fork does to both.
public import CHangAgent
public import CHangcheck

// The arena is made once a process: 0 not yet, 1 being made, 2 there, 3 given up. Written with
// compare-and-swap.
nonisolated(unsafe) private var arenaState: UInt32 = 0

/// Called by the constructor, before main and after the constructors of the libraries that the
/// agent needs.
@c(hck_agent_begin) public func begin() {
  arenaProvider = makeArena
  var key: pthread_key_t = 0
  if pthread_key_create(&key, endThread) == 0 {
    threadKey = key
    hasThreadKey = true
  }
  _ = hck_register_fork_handlers()
  _ = makeArena()
}

/// The arena of this process; nil where it cannot be had or hangcheck is gone, and then nothing is
/// recorded. Makes it and tells hangcheck at the first call. Async-signal-safe: system calls alone,
/// none of which waits.
@c(hck_agent_arena) public func makeArena() -> UnsafeMutablePointer<hck_arena>? {
  if let arena = hck_arena_get() { return arena }
  guard let name = hck_socket(), hck_cas32(&arenaState, 0, 1) != 0 else { return nil }
  var fd: Int32 = -1
  guard let arena = hck_arena_make(&fd) else {
    hck_store32(&arenaState, 3)
    return nil
  }
  if hck_learns_orders() != 0 { arena.pointee.flags |= HCK_FLAG_ORDERS }
  if hck_learns_semaphores() != 0 { arena.pointee.flags |= HCK_FLAG_SEMAPHORES }
  let (run, apply): (DispatchFunction, ApplyFunction) = (runJob, runApply)
  arena.pointee.job_entry = UInt64(UInt(bitPattern: unsafeBitCast(run, to: Int.self)))
  arena.pointee.item_entry = hck_item_entry()
  arena.pointee.apply_entry = UInt64(UInt(bitPattern: unsafeBitCast(apply, to: Int.self)))
  let told = hck_hello_send(name, fd, arena)
  hck_close(fd)
  guard told == 0 else {
    hck_arena_unmap(arena)
    hck_store32(&arenaState, 3)
    return nil
  }
  // Somebody listens: what is raised before he has the arena is worth a wait.
  hck_store32(&arena.pointee.watched, 1)
  hck_arena_set(arena)
  hck_store32(&arenaState, 2)
  return arena
}

/// Names a resource of a program that uses the drop-in types: they find this function when the
/// agent is there.
@c(hck_agent_name) public func name(_ address: UInt64, _ text: UnsafePointer<CChar>?) {
  guard let arena = hck_arena_get() else { return }
  if let text {
    nameResource(address, text, in: arena)
  } else {
    unnameResource(address, in: arena)
  }
}

// While a process forks, the forking thread records nothing: its child would write into the
// parent's arena. Several threads may fork at once, so each keeps its own slot meanwhile.
@c(hck_before_fork) public func beforeFork() {
  let slot = hck_slot_of_thread()
  hck_set_closed(2)
  hck_set_slot_of_thread(nil)
  hck_set_forking_slot(slot)
}

@c(hck_after_fork_in_parent) public func afterForkInParent() {
  hck_set_slot_of_thread(hck_forking_slot())
  hck_set_forking_slot(nil)
  hck_set_closed(0)
}

/// The child starts with nothing on record and asks for an arena of its own at its first lock: most
/// children only call exec.
@c(hck_after_fork_in_child) public func afterForkInChild() {
  if let slot = hck_forking_slot() { hck_inherit(slot.pointee.tid) }
  hck_set_forking_slot(nil)
  if let arena = hck_arena_get() {
    hck_arena_set(nil)
    hck_arena_unmap(arena)
  }
  hck_store32(&arenaState, hck_follows() != 0 ? 0 : 3)
  hck_set_slot_of_thread(nil)
  hck_set_closed(0)
}
