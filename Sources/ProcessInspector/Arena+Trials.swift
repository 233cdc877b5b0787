internal import CHangcheck

/// What a thread tried to take in vain lately: see `hck_trial`.
struct RecordedTrial {
  var slot: UInt32
  var generation: UInt32
  var tid: KernelThreadID
  var lock: ResourceKey
  var failures: UInt32
  /// Arena clock, milliseconds.
  var since: UInt32
  /// Whom the lock's memory named.
  var owner: KernelThreadID?
  var site: RecordedSite?
  /// What it held then, the newest first.
  var holds: [RecordedHold]
}

extension Arena {
  /// How often the thread in a slot failed since it got on; 0 for a thread that did not fail.
  func failures(_ index: UInt32) -> UInt32 {
    let slot = pointer(index)
    guard hck_load64(&slot.pointee.trial.lock) != 0,
      hck_load32(&slot.pointee.state) == HCK_SLOT_LIVE.rawValue
    else { return 0 }
    return hck_load32(&slot.pointee.trial.failures)
  }

  /// nil for a thread that did not fail, and while it writes: the next look finds it again.
  func trial(_ index: UInt32) -> RecordedTrial? {
    let slot = pointer(index)
    let version = hck_load32(&slot.pointee.trial.version)
    guard version & 1 == 0, failures(index) != 0 else { return nil }
    var trial = slot.pointee.trial
    guard hck_load32(&slot.pointee.trial.version) == version, trial.lock != 0 else { return nil }
    let holds = withUnsafeMutablePointer(to: &trial.holds) { raw in
      let entries = UnsafeMutableRawPointer(raw).assumingMemoryBound(to: hck_entry.self)
      return (0..<Int(min(trial.held, UInt32(HCK_TRIAL_HELD)))).map { index in
        let word = entries[index].resource
        return RecordedHold(
          key: key(word), isShared: word & (1 << 60) != 0, since: entries[index].since,
          site: site(entries + index))
      }
    }
    var place = site(&trial.site)
    let more = Int(min(trial.more_words, UInt64(HCK_TALLY_WORDS))) * 8
    withUnsafeBytes(of: &trial.more) { place?.window += $0.prefix(more) }
    return RecordedTrial(
      slot: index, generation: slot.pointee.generation,
      tid: KernelThreadID(Int32(truncatingIfNeeded: slot.pointee.tid)), lock: key(trial.lock),
      failures: trial.failures, since: trial.since,
      owner: trial.owner == 0
        ? nil : KernelThreadID(Int32(truncatingIfNeeded: trial.owner)),
      site: place, holds: holds)
  }
}
