// What is said of a race on a checked value: like an alarm, with a record of its own.
public import CHangcheck

/// Says that two accesses race, once for each pair of places. The details lie in the arena, where
/// whoever watches reads them, also when the process has gone. Async-signal-safe.
@inline(never)
public func raise(_ kind: hck_alarm_kind, _ race: UnsafeMutablePointer<hck_race>) {
  let error = hck_errno()
  defer { hck_set_errno(error) }
  if hck_forking_slot() != nil { return }
  let slot = currentSlot()
  guard let arena = hck_arena_get(), isNews(raceKey(kind, race), in: arena) else { return }
  guard let offset = takeChunk(arena, bytes: UInt64(MemoryLayout<hck_race>.stride)),
    let alarm = freeAlarm(arena)
  else {
    hck_count64(&arena.pointee.unrecorded)
    return
  }
  UnsafeMutableRawPointer(arena).advanced(by: Int(offset))
    .assumingMemoryBound(to: hck_race.self).pointee = race.pointee
  alarm.pointee.kind = kind.rawValue
  alarm.pointee.resource = race.pointee.value
  alarm.pointee.other = offset
  alarm.pointee.tid = race.pointee.now.access.tid
  alarm.pointee.clock = hck_load32(&arena.pointee.clock)
  alarm.pointee.waits = 0
  alarm.pointee.slot = slot.map { $0.pointee.index &+ 1 } ?? 0
  alarm.pointee.site = race.pointee.now.access.site
  alarm.pointee.has_other_site = 0
  hck_thread_name(hck_alarm_name(alarm))
  hck_store32(&alarm.pointee.state, HCK_ALARM_RAISED.rawValue)
  // Behind the state: who sees the count finds the alarm.
  hck_add32(&arena.pointee.alarms_raised, 1)
}

/// Kind and places, whichever of the two came first. A property's accessor makes all of its
/// accesses from one place, so callers count.
private func raceKey(_ kind: hck_alarm_kind, _ race: UnsafeMutablePointer<hck_race>) -> UInt64 {
  func place(_ side: UnsafeMutablePointer<hck_race_side>) -> UInt64 {
    let site = side.pointee.access.site
    if side.pointee.is_known == 0 || site.length < 16 { return 0 }
    var key = site.window.1 &* 0x9e37_79b9_7f4a_7c15
    if site.levels > 0 { key = (key ^ site.chain.1) &* 0x9e37_79b9_7f4a_7c15 }
    if site.levels > 1 { key = (key ^ site.chain.3) &* 0x9e37_79b9_7f4a_7c15 }
    return key ^ key >> 29
  }
  let both = place(hck_race_now(race)) &+ place(hck_race_before(race))
  return ((both ^ UInt64(kind.rawValue)) &* 0x9e37_79b9_7f4a_7c15) | 1
}
