// The program's end by exit.
public import CHangAgent
public import CHangcheck

/// Called by the library's destructor, after the program's own.
@c(hck_agent_end) public func end() {
  // What vfork's child does here, it does in its parent's memory.
  guard let arena = hck_arena_get(), hck_load32(&arena.pointee.watched) != 0,
    hck_is_confined() == 0, arena.pointee.pid == hck_process_id()
  else { return }
  tellEnd(arena, hck_frame())
}
