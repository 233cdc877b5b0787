// What is said while it happens: misuse, and traps to come.
public import CHangcheck

// Milliseconds that a thread stands still for its alarm: while nobody reads it and the arena's
// clock stands, which is whoever watches being gone; and in all.
private let patienceUnwatched: UInt64 = 300
private let patience: UInt64 = 5000
// At the program's end, which is to be held up as little as can be.
private let patienceAtExit: UInt64 = 1000

/// Says that something is wrong, once for each kind and call site. With `waits` the thread stands
/// still until whoever watches has told it, within seconds at most, for what comes next ends the
/// program. `otherSite`: where the other side of it lies, such as where a lock was taken.
/// Async-signal-safe; never called on a path that is hot.
@inline(never)
public func raise(
  _ kind: hck_alarm_kind, _ word: ResourceWord, other: UInt64 = 0, waits: Bool = false,
  text: UnsafePointer<CChar>? = nil, otherSite: UnsafePointer<hck_entry>? = nil,
  _ frame: UnsafeRawPointer
) {
  // A thread that forks writes nowhere: its child would write into the parent's arena.
  if hck_forking_slot() != nil { return }
  let error = hck_errno()
  defer { hck_set_errno(error) }
  let slot = currentSlot()
  guard hck_arena_get() != nil else { return }
  var site = hck_entry()
  if let slot {
    hck_site(slot, &site, frame)
  } else {
    hck_short_site(&site, frame, (UInt64(UInt(bitPattern: frame)) | 4095) &+ 1)
  }
  raise(kind, word, other: other, waits: waits, text: text, otherSite: otherSite, site: &site)
}

/// The same from a site that was kept.
@inline(never)
public func raise(
  _ kind: hck_alarm_kind, _ word: ResourceWord, other: UInt64 = 0, waits: Bool = false,
  text: UnsafePointer<CChar>? = nil, otherSite: UnsafePointer<hck_entry>? = nil,
  site: UnsafePointer<hck_entry>
) {
  let slot = hck_slot_of_thread()
  guard let arena = hck_arena_get() else { return }
  let error = hck_errno()
  defer { hck_set_errno(error) }
  let tid = slot?.pointee.tid ?? hck_gettid()
  // One that traps stops each thread that comes there.
  let isOfThread = waits && kind != HCK_ALARM_CONTINUATION
  guard isNews(alarmKey(kind, word, site.pointee, tid: isOfThread ? tid : 0), in: arena) else {
    return
  }
  guard let alarm = freeAlarm(arena) else {
    hck_count64(&arena.pointee.unrecorded)
    return
  }
  let stands = waits && hck_load32(&arena.pointee.watched) != 0 && hck_is_confined() == 0
  alarm.pointee.kind = kind.rawValue
  alarm.pointee.resource = word
  alarm.pointee.other = other
  alarm.pointee.tid = tid
  alarm.pointee.clock = hck_load32(&arena.pointee.clock)
  alarm.pointee.waits = stands ? 1 : 0
  alarm.pointee.slot = slot.map { $0.pointee.index &+ 1 } ?? 0
  alarm.pointee.site = site.pointee
  if let text {
    copyText(text, to: alarm)
  } else {
    alarm.pointee.has_other_site = otherSite == nil ? 0 : 1
    if let otherSite { alarm.pointee.other_site = otherSite.pointee }
    hck_thread_name(hck_alarm_name(alarm))
  }
  hck_store32(&alarm.pointee.state, HCK_ALARM_RAISED.rawValue)
  // Behind the state: who sees the count finds the alarm.
  hck_add32(&arena.pointee.alarms_raised, 1)
  if stands {
    standStill(alarm, arena, kind == HCK_ALARM_AT_EXIT ? patienceAtExit : patience)
  }
}

/// Until the alarm is told, or nobody is there to tell it.
private func standStill(
  _ alarm: UnsafeMutablePointer<hck_alarm>, _ arena: UnsafeMutablePointer<hck_arena>,
  _ patience: UInt64
) {
  let begun = hck_monotonic_ns() / 1_000_000
  var clock = hck_load32(&arena.pointee.clock)
  var moved = begun
  while true {
    let state = hck_load32(&alarm.pointee.state)
    if state == HCK_ALARM_TOLD.rawValue {
      hck_store32(&alarm.pointee.state, HCK_ALARM_FREE.rawValue)
      return
    }
    let now = hck_monotonic_ns() / 1_000_000
    if hck_load32(&arena.pointee.clock) != clock || state == HCK_ALARM_TAKEN.rawValue
      || hck_load32(&arena.pointee.watched) == HCK_WATCH_BEGINS
    {
      clock = hck_load32(&arena.pointee.clock)
      moved = now
    }
    if now &- moved >= patienceUnwatched || now &- begun >= patience {
      // From here on it is the reader's, or free for the next alarm once it is told.
      hck_store32(&alarm.pointee.waits, 0)
      return
    }
    hck_alarm_sleep(&alarm.pointee.state, state, 50)
  }
}

/// A record of the arena's, being written from here on. One whose thread has given up is free once
/// it is told.
func freeAlarm(_ arena: UnsafeMutablePointer<hck_arena>) -> UnsafeMutablePointer<hck_alarm>? {
  let alarms = hck_alarms(arena)
  var index = 0
  while index < Int(HCK_ALARMS) {
    let alarm = alarms + index
    index &+= 1
    let state = hck_load32(&alarm.pointee.state)
    guard
      state == HCK_ALARM_FREE.rawValue
        || (state == HCK_ALARM_TOLD.rawValue && hck_load32(&alarm.pointee.waits) == 0)
    else { continue }
    if hck_cas32(&alarm.pointee.state, state, HCK_ALARM_WRITTEN.rawValue) != 0 { return alarm }
  }
  return nil
}

private func copyText(_ text: UnsafePointer<CChar>, to alarm: UnsafeMutablePointer<hck_alarm>) {
  let bytes = hck_alarm_text(alarm)
  let room = MemoryLayout.size(ofValue: alarm.pointee.text) &- 1
  var length = 0
  while length < room, text[length] != 0 {
    bytes[length] = text[length]
    length &+= 1
  }
  bytes[length] = 0
}

/// What makes two alarms the same: kind and call site, and the thread of one that stops it. A
/// wrapper such as NSLock makes all calls from one place, so its callers count; where they are not
/// known, so does the resource.
private func alarmKey(
  _ kind: hck_alarm_kind, _ word: ResourceWord, _ site: hck_entry, tid: UInt32
) -> UInt64 {
  var key: UInt64 = 0xcbf2_9ce4_8422_2325
  func mix(_ value: UInt64) {
    key = (key ^ value) &* 0x9e37_79b9_7f4a_7c15
    key ^= key >> 29
  }
  mix(UInt64(kind.rawValue))
  mix(UInt64(tid))
  if site.frame != 0, site.length >= 16 { mix(site.window.1) }
  if site.levels > 0 { mix(site.chain.1) }
  if site.levels > 1 { mix(site.chain.3) }
  if site.levels == 0 { mix(word) }
  return key | 1
}

/// Notes that it is being alarmed about; false when it was before, and when there is no room to
/// note it.
func isNews(_ key: UInt64, in arena: UnsafeMutablePointer<hck_arena>) -> Bool {
  let count = MemoryLayout.size(ofValue: arena.pointee.told) / 8
  let told = hck_told(arena)
  var probe = Int(truncatingIfNeeded: key >> 32) % count
  var left = count
  while left > 0 {
    let there = hck_load64(told + probe)
    if there == key { return false }
    if there == 0 {
      if hck_cas64(told + probe, 0, key) != 0 { return true }
      continue
    }
    probe = (probe &+ 1) % count
    left &-= 1
  }
  hck_count64(&arena.pointee.unrecorded)
  return false
}
