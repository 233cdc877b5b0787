#if Detection
  internal import CHangcheck
  internal import Recorder

  typealias ShadowPointer = UnsafeMutablePointer<hck_shadow>

  /// FastTrack (Flanagan and Freund, PLDI 2009): a value's last write is an epoch, its reads are one
  /// epoch while they are ordered and a clock once they are not, and an access is a race where one of
  /// these is not covered by the clock of the thread that makes it. What repeats within an epoch was
  /// looked at before (`hck_reads_again`, `hck_writes_again`).
  ///
  /// Beside each epoch is kept where the access was made and what its thread held. The shadow has a
  /// lock of its own, under which nothing of the program runs.
  struct RaceShadow {
    let pointer: ShadowPointer

    // MARK: - Life

    static func make(
      name: String?, fileID: StaticString, line: UInt
    ) -> ShadowPointer {
      InProcess.begin()
      let pointer = ShadowPointer.allocate(capacity: 1)
      pointer.initialize(to: hck_shadow())
      if fileID.hasPointerRepresentation {
        pointer.pointee.file = fileID.utf8Start
        pointer.pointee.file_bytes = UInt64(fileID.utf8CodeUnitCount)
      }
      pointer.pointee.line = UInt32(truncatingIfNeeded: line)
      if let name {
        let bytes = name.utf8CString
        let text = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
        bytes.withUnsafeBufferPointer { text.initialize(from: $0.baseAddress!, count: bytes.count) }
        pointer.pointee.name = text
      }
      if hck_is_racing() == 0 { RaceChecking.begin() }
      return pointer
    }

    func end() {
      pointer.pointee.name?.deallocate()
      var readers = pointer.pointee.readers
      while let block = readers {
        readers = UnsafeMutablePointer(bitPattern: UInt(block[1]))
        block.deallocate()
      }
      pointer.deallocate()
    }

    // MARK: - Accesses

    /// Apart, so that the fast path before it needs few registers.
    @inline(never) func access(isWrite: Bool, _ frame: UnsafeRawPointer) {
      if hck_modifies(pointer) != 0 {
        fatalError(
          "overlapping accesses to a checked value: it is used while it is changed in place")
      }
      guard let thread = begin() else { return }
      hck_spin_lock(&pointer.pointee.lock)
      let epoch = hck_load64(&thread.pointee.epoch)
      let conflict = isWrite ? write(thread, epoch) : read(thread, epoch)
      if let conflict { tell(conflict, thread, isWrite: isWrite, frame) }
      note(thread, epoch, isWrite: isWrite, frame)
      hck_spin_unlock(&pointer.pointee.lock)
    }

    /// The thread, unless this access is not to be looked at.
    private func begin() -> RaceThread? {
      guard hck_is_racing() != 0, let thread = RaceThreads.current else { return nil }
      if RaceThreads.isUnseen(thread) {
        // Comes after all that was before; whether it comes before what follows nobody can tell.
        forget()
        return nil
      }
      let period = hck_race_period_get()
      if period > 1 {
        thread.pointee.skipped += 1
        if thread.pointee.skipped < period { return nil }
        thread.pointee.skipped = 0
      }
      return thread
    }

    private func forget() {
      hck_spin_lock(&pointer.pointee.lock)
      hck_store64(&pointer.pointee.write, 0)
      forgetReads()
      hck_shadow_last_write(pointer).pointee.epoch = 0
      for index in 0..<Int(HCK_RACE_READS) { hck_shadow_reads(pointer)[index].epoch = 0 }
      hck_spin_unlock(&pointer.pointee.lock)
    }

    private func forgetReads() {
      if hck_load64(&pointer.pointee.read) == HCK_READ_SHARED, let block = pointer.pointee.readers {
        for index in 0..<Int(block[0]) { hck_store64(block + 2 + index, 0) }
      }
      hck_store64(&pointer.pointee.read, 0)
    }

    /// What is wrong with an access, and the epoch of the other one.
    private enum Conflict {
      case write(Epoch)
      case read(Epoch)
      case stale
    }

    private func read(_ thread: RaceThread, _ epoch: Epoch) -> Conflict? {
      let before = pointer.pointee.read
      if before == HCK_READ_SHARED {
        setReader(epoch)
      } else if before == 0 || RaceThreads.isOrdered(before, before: thread) {
        hck_store64(&pointer.pointee.read, epoch)
      } else {
        setReader(before)
        setReader(epoch)
        hck_store64(&pointer.pointee.read, HCK_READ_SHARED)
      }
      let last = pointer.pointee.write
      return RaceThreads.isOrdered(last, before: thread) ? nil : .write(last)
    }

    private func write(_ thread: RaceThread, _ epoch: Epoch) -> Conflict? {
      let (last, reads) = (pointer.pointee.write, pointer.pointee.read)
      hck_store64(&pointer.pointee.write, epoch)
      let reader = reads == HCK_READ_SHARED ? unorderedReader(thread) : reads
      if reads == HCK_READ_SHARED { forgetReads() }
      if !RaceThreads.isOrdered(last, before: thread) { return .write(last) }
      if let reader, !RaceThreads.isOrdered(reader, before: thread) { return .read(reader) }
      return hck_race_stale_get() != 0 && isStale(thread, last) ? .stale : nil
    }

    /// Keeps where the access was made, in place of what was kept of the last one.
    private func note(
      _ thread: RaceThread, _ epoch: Epoch, isWrite: Bool, _ frame: UnsafeRawPointer
    ) {
      if isWrite {
        pointer.pointee.version += 1
        // What it read before is no longer what it writes over.
        if let own = ownRead(thread) { own.pointee.version = UInt64.max }
        keep(thread, epoch, frame, in: hck_shadow_last_write(pointer))
      } else {
        let kept = placeOfRead(epoch)
        keep(thread, epoch, frame, in: kept)
        kept.pointee.version = pointer.pointee.version
      }
      countLocks(thread, isWrite: isWrite)
    }

    // MARK: - Reads

    private func setReader(_ epoch: Epoch) {
      let index = epoch.threadIndex
      if index >= Int(pointer.pointee.readers?[0] ?? 0) { growReaders(to: index + 1) }
      if let block = pointer.pointee.readers { hck_store64(block + 2 + index, epoch.clock) }
    }

    /// The block before stays until the value's end: a thread on its fast path may be reading it.
    private func growReaders(to wanted: Int) {
      let old = pointer.pointee.readers
      let room = max(16, wanted * 2)
      let block = UnsafeMutablePointer<UInt64>.allocate(capacity: room + 2)
      block.initialize(repeating: 0, count: room + 2)
      block[0] = UInt64(room)
      block[1] = UInt64(UInt(bitPattern: old))
      if let old { for index in 0..<Int(old[0]) { block[2 + index] = old[2 + index] } }
      hck_publish_readers(pointer, block)
    }

    /// Of those whose site is kept, if any.
    private func unorderedReader(_ thread: RaceThread) -> Epoch? {
      guard let block = pointer.pointee.readers else { return nil }
      var found: Epoch?
      for index in 0..<Int(block[0]) where block[2 + index] != 0 {
        let epoch = UInt64(index) << UInt64(HCK_CLOCK_BITS) | block[2 + index]
        guard !RaceThreads.isOrdered(epoch, before: thread) else { continue }
        found = epoch
        if keptRead(epoch) != nil { break }
      }
      return found
    }

    // MARK: - What is kept of an access

    private func keptRead(_ epoch: Epoch) -> UnsafeMutablePointer<hck_race_access>? {
      let reads = hck_shadow_reads(pointer)
      return (0..<Int(HCK_RACE_READS)).lazy.map { reads + $0 }.first { $0.pointee.epoch == epoch }
    }

    private func ownRead(_ thread: RaceThread) -> UnsafeMutablePointer<hck_race_access>? {
      let reads = hck_shadow_reads(pointer)
      let index = Int(thread.pointee.index)
      return (0..<Int(HCK_RACE_READS)).lazy.map { reads + $0 }.first {
        $0.pointee.epoch != 0 && $0.pointee.epoch.threadIndex == index
      }
    }

    /// That of the same thread's read before, else the oldest.
    private func placeOfRead(_ epoch: Epoch) -> UnsafeMutablePointer<hck_race_access> {
      let reads = hck_shadow_reads(pointer)
      for index in 0..<Int(HCK_RACE_READS)
      where reads[index].epoch != 0 && reads[index].epoch.threadIndex == epoch.threadIndex {
        return reads + index
      }
      let place = reads + Int(pointer.pointee.next_read)
      pointer.pointee.next_read = (pointer.pointee.next_read + 1) % UInt32(HCK_RACE_READS)
      return place
    }

    private func keep(
      _ thread: RaceThread, _ epoch: Epoch, _ frame: UnsafeRawPointer,
      in kept: UnsafeMutablePointer<hck_race_access>
    ) {
      kept.pointee.epoch = epoch
      kept.pointee.tid = thread.pointee.tid
      let (held, count) = (hck_race_held(thread), Int(thread.pointee.held_count))
      // The innermost ones.
      let most = min(count, Int(HCK_RACE_KEPT))
      kept.pointee.held_count = UInt32(most)
      for index in 0..<most { hck_access_held(kept)[index] = held[count - most + index] }
      hck_race_site(thread, hck_access_site(kept), frame)
    }

    // MARK: - Locks that are held

    /// Misra and Gries' heavy hitters: which locks are held at most accesses, in a few words.
    private func countLocks(_ thread: RaceThread, isWrite: Bool) {
      pointer.pointee.accesses += 1
      let (locks, uses) = (hck_shadow_locks(pointer), hck_shadow_lock_uses(pointer))
      for held in 0..<Int(thread.pointee.held_count) {
        // Held for reading it protects no write.
        if isWrite && hck_race_held(thread)[held] & sharedBit != 0 { continue }
        let lock = hck_race_held(thread)[held] & ~sharedBit
        let places = 0..<Int(HCK_RACE_READS)
        if let index = places.first(where: { uses[$0] > 0 && locks[$0] == lock }) {
          uses[index] += 1
        } else if let index = places.first(where: { uses[$0] == 0 }) {
          (locks[index], uses[index]) = (lock, 1)
        } else {
          for index in places { uses[index] -= 1 }
        }
      }
    }

    // MARK: - Findings

    @inline(never) private func tell(
      _ conflict: Conflict, _ thread: RaceThread, isWrite: Bool, _ frame: UnsafeRawPointer
    ) {
      let epoch = hck_load64(&thread.pointee.epoch)
      var race = hck_race()
      keep(thread, epoch, frame, in: hck_side_access(hck_race_now(&race)))
      race.now.is_write = isWrite ? 1 : 0
      race.now.is_known = 1
      switch conflict {
      case .write(let other):
        pointer.pointee.races += 1
        // The write of `x += 1` races as its read has just done.
        let isSame = (pointer.pointee.raced, pointer.pointee.raced_with) == (epoch, other)
        (pointer.pointee.raced, pointer.pointee.raced_with) = (epoch, other)
        if isSame { return }
        RaceReport.fill(hck_race_before(&race), hck_shadow_last_write(pointer), isWrite: true)
      case .read(let other):
        pointer.pointee.races += 1
        RaceReport.fill(hck_race_before(&race), keptRead(other), isWrite: false)
      case .stale:
        RaceReport.fill(hck_race_before(&race), ownRead(thread), isWrite: false)
        RaceReport.fill(hck_race_between(&race), hck_shadow_last_write(pointer), isWrite: true)
      }
      RaceReport.raise(&race, pointer)
    }

    /// The thread read the value under a lock that it holds again now, and another one wrote it in
    /// between: what was read is written over what it no longer was.
    private func isStale(_ thread: RaceThread, _ last: Epoch) -> Bool {
      guard let read = ownRead(thread), read.pointee.version < pointer.pointee.version else {
        return false
      }
      return last.threadIndex != Int(thread.pointee.index) && holdsAgain(thread, read)
    }

    private func holdsAgain(
      _ thread: RaceThread, _ read: UnsafeMutablePointer<hck_race_access>
    ) -> Bool {
      for index in 0..<Int(read.pointee.held_count) {
        let lock = hck_access_held(read)[index] & ~sharedBit
        for held in 0..<Int(thread.pointee.held_count)
        where hck_race_held(thread)[held] & ~sharedBit == lock { return true }
      }
      return false
    }
  }
#endif
