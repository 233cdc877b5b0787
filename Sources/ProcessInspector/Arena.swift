internal import CHangcheck

/// A resource as the recorder names it: an address, a kind, and how it is held or wanted.
struct ResourceKey: Hashable {
  var address: UInt64
  var kind: UInt32
}

/// One thing on a thread's record, copied out of the arena.
struct RecordedHold {
  var key: ResourceKey
  var isShared: Bool
  /// Arena clock, milliseconds.
  var since: UInt32
  var site: RecordedSite?
}

/// Where the recorder was called: see `hck_entry`.
struct RecordedSite {
  var returnAddress: UInt64
  /// rsp after the call returned.
  var stackPointer: UInt64
  var framePointer: UInt64
  /// The stack from `stackPointer` up, as it was.
  var window: [UInt8]
  /// Frames further up that frame pointers led to: where each lay, and its two words.
  var chain: [(address: UInt64, saved: UInt64, returnAddress: UInt64)]
}

struct RecordedWait: Hashable {
  var key: ResourceKey
  var isShared: Bool
  var isTimed: Bool
  /// A condition's mutex.
  var mutex: UInt64
}

/// One thread's record, copied at one moment.
struct RecordedThread {
  var slot: UInt32
  var generation: UInt32
  var tid: KernelThreadID
  var hasExited: Bool
  var wait: RecordedWait?
  var holds: [RecordedHold]
  var name: String
  /// Of the drop-in that waits: its caller's rbp and the return address lie there; 0 where it was
  /// not kept.
  var waitFrame: UInt64
  /// Its `pthread_t`.
  var pthread: UInt64
}

/// The arena of a watched process. Everything in it was written by that process and may be wrong in
/// any way: offsets and counts are checked before they are used. Confined to one thread.
final class Arena {
  // The mapping lives as long as this object; nothing hands the pointer out.
  let base: UnsafeMutablePointer<hck_arena>
  let size: UInt64
  private let isMapped: Bool
  /// Nothing is on record: the process has no recorder in it.
  let isBare: Bool
  /// How many alarms had been raised when they were last taken.
  var seenAlarms: UInt32 = 0

  /// Maps the arena behind `descriptor`, which stays the caller's.
  init?(descriptor: Int32) {
    var size: UInt64 = 0
    guard let arena = hck_arena_open(descriptor, &size) else { return nil }
    base = arena
    self.size = size
    isMapped = true
    isBare = false
    isWatched = true
  }

  /// A copy of our own of what a process has on record, or an empty one: nobody writes it, and the
  /// process does not learn of it.
  init(copy: UnsafeMutablePointer<hck_arena>, size: UInt64, isBare: Bool) {
    base = copy
    self.size = size
    isMapped = true
    self.isBare = isBare
  }

  /// This process's own.
  init(own arena: UnsafeMutablePointer<hck_arena>) {
    base = arena
    size = arena.pointee.size
    isMapped = false
    isBare = false
    isWatched = true
  }

  /// Whether somebody reads alarms: their threads wait for that.
  var isWatched: Bool {
    get { hck_load32(&base.pointee.watched) != 0 }
    set { hck_store32(&base.pointee.watched, newValue ? 1 : 0) }
  }

  deinit {
    isWatched = false
    if isMapped {
      base.pointee.size = size
      hck_arena_unmap(base)
    }
  }

  var slots: UInt32 {
    min(
      hck_load32(&base.pointee.slots),
      UInt32(truncatingIfNeeded: size / UInt64(HCK_SLOT_BYTES)) &- 1)
  }
  var tidOffset: UInt64 { base.pointee.tid_offset }
  /// As the process sees itself: another number than ours where it lives in a namespace of its own.
  var ownPID: UInt32 { base.pointee.pid }
  /// Who its first thread was before the forks that led to it.
  var inherited: Set<UInt32> {
    let all = withUnsafeBytes(of: &base.pointee.inherited) { Array($0.bindMemory(to: UInt32.self)) }
    return Set(all.filter { $0 != 0 })
  }
  var jobEntries: DispatchMemory.JobEntries? {
    let arena = base.pointee
    return arena.job_entry == 0
      ? nil : .init(run: arena.job_entry, apply: arena.apply_entry, item: arena.item_entry)
  }
  var unrecorded: UInt64 { hck_load64(&base.pointee.unrecorded) }
  /// A thread has given back what another one took.
  var handsOver: Bool { hck_load32(&base.pointee.handed_over) != 0 }
  var clock: UInt32 { hck_load32(&base.pointee.clock) }

  /// Moves the clock that the process stamps its holds with.
  func setClock(milliseconds: UInt32) { hck_store32(&base.pointee.clock, milliseconds) }

  /// Tells a program that ends at once that it may.
  func setSeen() { hck_store32(&base.pointee.seen, 1) }

  func pointer(_ index: UInt32) -> UnsafeMutablePointer<hck_slot> {
    UnsafeMutableRawPointer(base)
      .advanced(by: Int(HCK_FIRST_SLOT) + Int(index) * Int(HCK_SLOT_BYTES))
      .assumingMemoryBound(to: hck_slot.self)
  }

  /// What the thread in a slot waits for, without a copy of the rest; nil when it does not wait or
  /// the slot is free.
  func wait(_ index: UInt32) -> RecordedWait? {
    let slot = pointer(index)
    let word = hck_load64(&slot.pointee.wait)
    guard word != 0, hck_load32(&slot.pointee.state) == HCK_SLOT_LIVE.rawValue else { return nil }
    return RecordedWait(
      key: key(word), isShared: word & (1 << 60) != 0, isTimed: word & (1 << 61) != 0,
      mutex: slot.pointee.wait_aux)
  }

  /// The thread in a slot that waits without a time-out, and not for a condition or an operation.
  func waitingThread(_ index: UInt32) -> KernelThreadID? {
    guard let wait = wait(index), !wait.isTimed else { return nil }
    switch wait.key.kind {
    case HCK_CONDITION.rawValue, HCK_OPERATION.rawValue, HCK_OPERATION_QUEUE.rawValue: return nil
    default: break
    }
    return KernelThreadID(Int32(truncatingIfNeeded: pointer(index).pointee.tid))
  }

  func isLeft(_ index: UInt32) -> Bool {
    hck_load32(&pointer(index).pointee.state) == HCK_SLOT_EXITED.rawValue
  }

  func holdsAnything(_ index: UInt32) -> Bool { hck_load64(&pointer(index).pointee.count) != 0 }

  /// Each entry that a thread holds, without a copy.
  func forEachHold(
    _ index: UInt32, _ body: (UInt64, UnsafeMutablePointer<hck_entry>) -> Void
  ) {
    let slot = pointer(index)
    guard hck_load64(&slot.pointee.count) != 0,
      hck_load32(&slot.pointee.state) == HCK_SLOT_LIVE.rawValue
    else { return }
    for entry in 0..<hck_load64(&slot.pointee.count) {
      guard let held = self.entry(slot, entry) else { return }
      let word = hck_load64(&held.pointee.resource)
      if word != 0, word & (1 << 62) == 0 { body(word, held) }
    }
  }

  /// When a thread last took something at the depth at which it takes the next: the entry that is free
  /// still says so. nil where nothing was taken there.
  func lastTaken(_ index: UInt32) -> UInt32? {
    let slot = pointer(index)
    guard let free = entry(slot, hck_load64(&slot.pointee.count)) else { return nil }
    let since = free.pointee.since
    return since == 0 ? nil : since
  }

  private func entry(
    _ slot: UnsafeMutablePointer<hck_slot>, _ number: UInt64
  ) -> UnsafeMutablePointer<hck_entry>? {
    let offset = slot.pointee.held_offset
    guard offset % 8 == 0, offset <= size, number < slot.pointee.capacity,
      number < (size - offset) / UInt64(MemoryLayout<hck_entry>.stride)
    else { return nil }
    return UnsafeMutableRawPointer(base).advanced(by: Int(offset))
      .assumingMemoryBound(to: hck_entry.self) + Int(number)
  }

  func generation(_ index: UInt32) -> UInt32 { pointer(index).pointee.generation }

  func thread(_ index: UInt32) -> RecordedThread? {
    let slot = pointer(index)
    let state = hck_load32(&slot.pointee.state)
    guard state == HCK_SLOT_LIVE.rawValue || state == HCK_SLOT_EXITED.rawValue else { return nil }
    let entryBytes = UInt64(MemoryLayout<hck_entry>.stride)
    let offset = slot.pointee.held_offset
    let room = offset <= size ? (size - offset) / entryBytes : 0
    let count = min(hck_load64(&slot.pointee.count), room)
    var holds: [RecordedHold] = []
    if offset % 8 == 0 {
      let entries = UnsafeMutableRawPointer(base).advanced(by: Int(offset))
        .assumingMemoryBound(to: hck_entry.self)
      for i in 0..<Int(count) {
        let word = hck_load64(&entries[i].resource)
        // A semaphore has no owner, though its permit may be on record.
        if word == 0 || word & (1 << 62) != 0
          || key(word).kind == HCK_SEMAPHORE.rawValue
        {
          continue
        }
        holds.append(
          RecordedHold(
            key: key(word), isShared: word & (1 << 60) != 0, since: entries[i].since,
            site: site(entries + i)))
      }
    }
    let name = withUnsafeBytes(of: &slot.pointee.name) {
      String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
    return RecordedThread(
      slot: index, generation: slot.pointee.generation,
      tid: KernelThreadID(Int32(truncatingIfNeeded: slot.pointee.tid)),
      hasExited: state == HCK_SLOT_EXITED.rawValue, wait: wait(index), holds: holds, name: name,
      waitFrame: slot.pointee.wait_frame, pthread: slot.pointee.pthread)
  }

  func site(_ entry: UnsafeMutablePointer<hck_entry>) -> RecordedSite? {
    let length = min(Int(entry.pointee.length), Int(HCK_WINDOW_WORDS) * 8) & ~7
    let frame = entry.pointee.frame
    guard frame != 0, length >= 16 else { return nil }
    let levels = min(Int(entry.pointee.levels), Int(HCK_CHAIN_LEVELS))
    var address = entry.pointee.window.0
    let chain = withUnsafeBytes(of: &entry.pointee.chain) { raw in
      (0..<levels).map { level in
        let saved = raw.load(fromByteOffset: level * 16, as: UInt64.self)
        defer { address = saved }
        return (
          address: address, saved: saved,
          returnAddress: raw.load(fromByteOffset: level * 16 + 8, as: UInt64.self)
        )
      }
    }
    return withUnsafeBytes(of: &entry.pointee.window) { window in
      RecordedSite(
        returnAddress: window.load(fromByteOffset: 8, as: UInt64.self), stackPointer: frame &+ 16,
        framePointer: window.load(as: UInt64.self), window: Array(window[16..<length]),
        chain: chain)
    }
  }

  /// The name that the program gave to a resource.
  func name(of address: UInt64) -> String? {
    let offset = hck_load64(&base.pointee.names)
    let record = UInt64(MemoryLayout<hck_name>.stride)
    guard offset != 0, offset % 8 == 0, offset <= size,
      size - offset >= record * UInt64(HCK_NAME_RECORDS)
    else { return nil }
    let table = UnsafeMutableRawPointer(base).advanced(by: Int(offset)).assumingMemoryBound(
      to: hck_name.self)
    var probe = Int((address &* 0x9e37_79b9_7f4a_7c15) >> 40) % Int(HCK_NAME_RECORDS)
    for _ in 0..<64 {
      let there = hck_load64(&table[probe].address)
      if there == address {
        return withUnsafeBytes(of: &table[probe].text) {
          String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
      }
      if there == 0 { return nil }
      probe = (probe + 1) % Int(HCK_NAME_RECORDS)
    }
    return nil
  }

  func key(_ word: UInt64) -> ResourceKey {
    ResourceKey(address: word & 0x00ff_ffff_ffff_ffff, kind: UInt32(word >> 56) & 15)
  }
}
