internal import CHangcheck
internal import HangReport
internal import WaitForGraph

extension AlarmReport {
  /// Both accesses, as they were kept beside the value, and the locks that they speak of.
  mutating func addRace(_ alarm: RecordedAlarm, _ thread: ThreadID) {
    guard var record = assembler.arena.race(at: alarm.other) else { return }
    let value = value(alarm.key, text(&record))
    var race = DataRace(
      value: value, now: access(hck_race_now(&record), of: thread),
      before: access(hck_race_before(&record), of: nil))
    if record.between.is_known != 0 { race.between = access(hck_race_between(&record), of: nil) }
    if record.protector != 0 {
      race.protector = DataRace.Protector(
        lock: resource(assembler.arena.key(record.protector)), uses: record.protected_uses,
        accesses: record.accesses)
    }
    races.append(race)
  }

  private func text(_ record: inout hck_race) -> String {
    let room = MemoryLayout.size(ofValue: record.text)
    let bytes = UnsafeBufferPointer(start: hck_race_text(&record), count: room)
    return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private mutating func value(_ key: ResourceKey, _ name: String) -> ResourceID {
    let id = resource(key)
    if let index = resources.firstIndex(where: { $0.id == id }) {
      resources[index].kind = .value
      resources[index].name = name.isEmpty ? nil : name
    }
    return id
  }

  private mutating func access(
    _ side: UnsafeMutablePointer<hck_race_side>, of known: ThreadID?
  ) -> DataRace.Access {
    var access = DataRace.Access(isWrite: side.pointee.is_write != 0)
    guard side.pointee.is_known != 0 else { return access }
    let tid = KernelThreadID(Int32(truncatingIfNeeded: side.pointee.access.tid))
    let bytes = UnsafeBufferPointer(start: hck_side_name(side), count: 16)
    let name = String(
      decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let id = known ?? thread(tid, name: name.isEmpty ? nil : name)
    access.thread = id
    access.stack = withLine(
      Self.withoutAccessor(
        stack(assembler.arena.site(hck_access_site(hck_side_access(side))), of: id)))
    let held = hck_access_held(hck_side_access(side))
    let count = min(Int(side.pointee.access.held_count), Int(HCK_RACE_KEPT))
    access.holds = (0..<count).map { index in
      DataRace.Hold(
        resource: resource(assembler.arena.key(held[index])),
        mode: held[index] & (1 << 60) != 0 ? .shared : .exclusive)
    }
    return access
  }

  /// In code that is not optimised the call to the accessor of `x += 1` has no line; what is done
  /// with what it returns has.
  private func withLine(_ stack: [Frame]) -> [Frame] {
    guard let index = stack.firstIndex(where: { !$0.runtime }), (stack[index].line ?? 0) == 0 else {
      return stack
    }
    var stack = stack
    for distance in UInt64(1)...32 {
      let next = assembler.symbolizer.frames(
        for: [RawFrame(pc: stack[index].address.rawValue &+ distance, cfa: 0, isExact: true)])
      guard let frame = next.first, frame.symbol == stack[index].symbol else { return stack }
      if let line = frame.line, line > 0 {
        (stack[index].file, stack[index].line) = (frame.file, line)
        stack[index].column = frame.column
        return stack
      }
    }
    return stack
  }

  /// A wrapped property's own accessor, which the compiler makes, is no place to look at.
  private static func withoutAccessor(_ stack: [Frame]) -> [Frame] {
    guard
      let index = stack.firstIndex(where: { !$0.runtime }), index > 0, index + 1 < stack.count,
      (stack[index].line ?? 0) == 0,
      stack[index - 1].symbol?.contains("RaceChecked.wrappedValue") ?? false,
      [".getter", ".setter", ".modify"].contains(
        where: stack[index].symbol?.hasSuffix ?? { _ in false })
    else { return stack }
    var stack = stack
    stack[index].runtime = true
    return stack
  }
}

extension Arena {
  /// What a thread left of a race; nil where no such record can lie.
  func race(at offset: UInt64) -> hck_race? {
    let bytes = UInt64(MemoryLayout<hck_race>.stride)
    guard offset % 8 == 0, offset >= UInt64(HCK_FIRST_SLOT), offset <= size, size - offset >= bytes
    else { return nil }
    return UnsafeMutableRawPointer(base).advanced(by: Int(offset))
      .assumingMemoryBound(to: hck_race.self).pointee
  }
}
