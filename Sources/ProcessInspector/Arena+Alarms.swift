internal import CHangcheck

/// What a thread of the watched process said of itself, copied out of the arena.
struct RecordedAlarm {
  /// Of the arena's records, for `settle`; nil for what was seen from outside.
  var record: Int?
  var kind: UInt32
  var key: ResourceKey
  var isShared: Bool
  /// Another resource, a thread's id or a number: see `hck_alarm_kind`.
  var other: UInt64
  var tid: KernelThreadID
  /// Its thread stands still until it is told.
  var waits: Bool
  /// The index of its thread's slot, where it has one.
  var slot: UInt32?
  var site: RecordedSite?
  var otherSite: RecordedSite?
  /// Of the thread when it said it.
  var name: String
  var text: String

  /// A kind that no agent raises: a group that has asked for a notification and can never be left.
  static let groupNeverLeft: UInt32 = 1000
}

extension Arena {
  /// The alarms that were raised since they were last asked for. They keep their place, and their
  /// threads wait, until each is settled.
  func takeAlarms() -> [RecordedAlarm] {
    let raised = hck_load32(&base.pointee.alarms_raised)
    guard raised != seenAlarms else { return [] }
    seenAlarms = raised
    let records = hck_alarms(base)
    var result: [RecordedAlarm] = []
    for index in 0..<Int(HCK_ALARMS) {
      let alarm = records + index
      guard
        hck_cas32(
          &alarm.pointee.state, HCK_ALARM_RAISED.rawValue, HCK_ALARM_TAKEN.rawValue) != 0
      else { continue }
      result.append(copy(alarm, index))
    }
    return result
  }

  /// Lets the thread of an alarm go on; of one that does not wait the record is free again.
  func settle(_ alarm: RecordedAlarm) {
    guard let index = alarm.record else { return }
    let record = hck_alarms(base) + index
    hck_store32(
      &record.pointee.state,
      (alarm.waits ? HCK_ALARM_TOLD : HCK_ALARM_FREE).rawValue)
    if alarm.waits { hck_alarm_wake(&record.pointee.state) }
  }

  private func copy(_ alarm: UnsafeMutablePointer<hck_alarm>, _ index: Int) -> RecordedAlarm {
    let slot = alarm.pointee.slot
    let word = alarm.pointee.resource
    let kind = alarm.pointee.kind
    let hasText = kind == HCK_ALARM_CONTINUATION.rawValue
    return RecordedAlarm(
      record: index, kind: kind, key: key(word), isShared: word & (1 << 60) != 0,
      other: alarm.pointee.other,
      tid: KernelThreadID(Int32(truncatingIfNeeded: alarm.pointee.tid)),
      waits: hck_load32(&alarm.pointee.waits) != 0,
      slot: slot == 0 || slot > slots ? nil : slot - 1,
      site: site(hck_alarm_site(alarm)),
      otherSite: hasText || alarm.pointee.has_other_site != 1
        ? nil : site(hck_alarm_other_site(alarm)),
      name: hasText ? "" : string(hck_alarm_name(alarm), 16),
      text: hasText ? string(hck_alarm_text(alarm), 168) : "")
  }

  private func string(_ bytes: UnsafePointer<CChar>, _ room: Int) -> String {
    let all = UnsafeBufferPointer(start: bytes, count: room)
    return String(decoding: all.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
