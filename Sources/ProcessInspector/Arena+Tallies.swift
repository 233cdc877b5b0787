internal import CHangcheck

/// What one thread did to a resource at one place, copied out of the arena.
struct RecordedTally {
  enum Operation: UInt32 {
    case take = 1
    case give = 2
    case notify = 3
    case create = 4
    case takeByBlock = 5
    case giveByBlock = 6
  }
  var key: ResourceKey
  var operation: Operation
  /// nil where several threads that have ended share the record.
  var tid: KernelThreadID?
  /// Of a thread that has ended.
  var threadName: String?
  /// How often; of a creation the initial value.
  var count: UInt64
  /// Arena clock, milliseconds.
  var first: UInt32
  var last: UInt32
  /// It began before the resource was made that lies at the address now, so part of it may be of
  /// another one that lay there before.
  var mayIncludeEarlier: Bool
  var site: RecordedSite?
}

extension Arena {
  /// What is on record about one resource.
  func tallies(of key: ResourceKey) -> [RecordedTally] {
    var found: [RecordedTally] = []
    if let table = sharedTable() {
      let start = hck_shared_tally_start(key.address)
      for step in 0..<UInt32(HCK_TALLY_RUN) {
        if let tally = sharedTally(table, start &+ step), tally.key == key { found.append(tally) }
      }
    }
    forEachOwnTally { if $0.key == key { found.append($0) } }
    return current(found)
  }

  /// All that is on record: for reports about the whole process.
  func allTallies() -> [RecordedTally] {
    var found: [RecordedTally] = []
    if let table = sharedTable() {
      for index in 0..<UInt32(HCK_SHARED_TALLIES) {
        if let tally = sharedTally(table, index) { found.append(tally) }
      }
    }
    forEachOwnTally { found.append($0) }
    return current(found)
  }

  /// Leaves out what was done to resources that lay at the same addresses before.
  private func current(_ tallies: [RecordedTally]) -> [RecordedTally] {
    var created: [UInt64: (kind: UInt32, clock: UInt32)] = [:]
    for tally in tallies where tally.operation == .create {
      if let other = created[tally.key.address], other.clock >= tally.first { continue }
      created[tally.key.address] = (tally.key.kind, tally.first)
    }
    return tallies.compactMap { tally in
      guard let creation = created[tally.key.address] else { return tally }
      guard tally.key.kind == creation.kind, tally.last >= creation.clock else { return nil }
      var tally = tally
      tally.mayIncludeEarlier = tally.first < creation.clock
      return tally
    }
  }

  private func sharedTable() -> UnsafeMutableRawPointer? {
    let offset = hck_load64(&base.pointee.shared_tallies)
    guard offset != 0, offset % 8 == 0, offset <= size,
      size - offset >= hck_shared_tallies_bytes()
    else { return nil }
    return UnsafeMutableRawPointer(base).advanced(by: Int(offset))
  }

  private func sharedTally(_ table: UnsafeMutableRawPointer, _ index: UInt32) -> RecordedTally? {
    let word = hck_load64(hck_shared_tally_word(table, index))
    guard word > 1 else { return nil }
    let record = hck_shared_tally(table, index)
    guard record.pointee.resource == word else { return nil }
    return copy(record) { hck_load64(hck_shared_tally_word(table, index)) == word }
  }

  private func forEachOwnTally(_ body: (RecordedTally) -> Void) {
    for index in 0..<slots {
      let slot = pointer(index)
      let state = hck_load32(&slot.pointee.state)
      guard state == HCK_SLOT_LIVE.rawValue || state == HCK_SLOT_EXITED.rawValue,
        slot.pointee.tallies != nil
      else { continue }
      let offset = slot.pointee.tallies_offset
      guard offset != 0, offset % 8 == 0, offset <= size,
        size - offset >= UInt64(MemoryLayout<hck_tallies>.stride)
      else { continue }
      let tallies = UnsafeMutableRawPointer(base).advanced(by: Int(offset))
        .assumingMemoryBound(to: hck_tallies.self)
      for place in 0..<UInt32(HCK_TALLIES) {
        if let tally = copy(hck_tally_at(tallies, place), whole: { true }) { body(tally) }
      }
    }
  }

  /// A record, unless it is free, or became another one while it was copied.
  private func copy(_ record: UnsafeMutablePointer<hck_tally>, whole: () -> Bool) -> RecordedTally?
  {
    let tag = hck_load64(&record.pointee.key)
    guard tag != 0, let operation = RecordedTally.Operation(rawValue: record.pointee.operation)
    else { return nil }
    let key = key(record.pointee.resource)
    let tid = record.pointee.tid
    let name = withUnsafeBytes(of: &record.pointee.name) {
      String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
    var place = withUnsafeMutablePointer(to: &record.pointee.site) { self.site($0) }
    let more = Int(min(record.pointee.more_words, UInt64(HCK_TALLY_WORDS))) * 8
    withUnsafeBytes(of: &record.pointee.more) { place?.window += $0.prefix(more) }
    let tally = RecordedTally(
      key: key, operation: operation,
      tid: tid == 0 ? nil : KernelThreadID(Int32(truncatingIfNeeded: tid)),
      threadName: name.isEmpty ? nil : name, count: record.pointee.count,
      first: record.pointee.first, last: record.pointee.last, mayIncludeEarlier: false, site: place)
    guard hck_load64(&record.pointee.key) == tag, whole() else { return nil }
    return tally
  }
}
