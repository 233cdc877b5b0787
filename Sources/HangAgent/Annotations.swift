// What the agent and ThreadSanitizer tell each other, in a program that was built with it.
public import CHangAgent
public import CHangcheck

/// Tells ThreadSanitizer that what this thread did so far comes before what any thread does after
/// `hbAcquire` of the same address (its own interceptors know pthreads and libdispatch: measured,
/// only what they cannot see needs this). A load and a branch in other programs.
@inline(__always) func hbRelease(_ address: UnsafeRawPointer) { hck_hb_release(address) }

/// The other end of `hbRelease`.
@inline(__always) func hbAcquire(_ address: UnsafeRawPointer) { hck_hb_acquire(address) }

/// Where ThreadSanitizer's words are kept for hangcheck: made at the first one. Async-signal-safe;
/// nil where the process is not watched or there is no room.
@c(hck_agent_words) public func words() -> UnsafeMutablePointer<hck_words>? {
  guard let arena = hck_arena_get() ?? makeArena() else { return nil }
  var offset = hck_load64(&arena.pointee.words)
  if offset == 0 {
    guard let fresh = takeChunk(arena, bytes: UInt64(MemoryLayout<hck_words>.size)) else {
      hck_count64(&arena.pointee.unrecorded)
      return nil
    }
    offset =
      hck_cas64(&arena.pointee.words, 0, fresh) != 0 ? fresh : hck_load64(&arena.pointee.words)
  }
  return UnsafeMutableRawPointer(arena).advanced(by: Int(offset))
    .assumingMemoryBound(to: hck_words.self)
}

/// Whether ThreadSanitizer itself made the call. For the program's threads it passes an argument.
@inline(__always) func isSanitizer(_ frame: UnsafeRawPointer) -> Bool {
  hck_in_sanitizer(frame.load(fromByteOffset: 8, as: UInt64.self)) != 0
}

/// ThreadSanitizer's own thread, which sleeps and looks around as long as the program runs: nobody
/// waits for what it does.
@c(hck_agent_sanitizer_thread) public func sanitizerThread(_ value: UnsafeMutableRawPointer?)
  -> UnsafeMutableRawPointer?
{
  if let arena = hck_arena_get() { hck_store32(&arena.pointee.sanitizer_tid, hck_gettid()) }
  return unsafeBitCast(Int(bitPattern: value), to: hck_thread_body.self)(nil)
}
