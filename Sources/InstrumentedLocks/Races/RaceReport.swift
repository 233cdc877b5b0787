#if Detection
  internal import CHangcheck
  internal import Glibc
  internal import Recorder

  /// Makes of a race what whoever watches is told.
  enum RaceReport {
    /// One side, from what was kept of it; nil where that was another access's by then.
    static func fill(
      _ side: UnsafeMutablePointer<hck_race_side>, _ access: UnsafeMutablePointer<hck_race_access>?,
      isWrite: Bool
    ) {
      side.pointee.is_write = isWrite ? 1 : 0
      guard let access, access.pointee.epoch != 0 else { return }
      side.pointee.is_known = 1
      side.pointee.access = access.pointee
      // One that has ended left its name, unless another one has its record by now. One that lives
      // may have ended when this is told.
      guard let thread = RaceThreads[access.pointee.epoch.threadIndex],
        thread.pointee.tid == access.pointee.tid
      else { return }
      side.pointee.name = thread.pointee.name
      guard hck_load32(&thread.pointee.is_live) != 0 else { return }
      let file = open("/proc/self/task/\(access.pointee.tid)/comm", O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { return }
      defer { close(file) }
      let room = MemoryLayout.size(ofValue: side.pointee.name)
      let length = Glibc.read(file, hck_side_name(side), room)
      // The kernel ends it with a line break.
      if length > 0 { hck_side_name(side)[min(length, room) - 1] = 0 }
    }

    /// `race.between` tells a stale write from a data race.
    static func raise(_ race: UnsafeMutablePointer<hck_race>, _ shadow: ShadowPointer) {
      race.pointee.value = UInt64(UInt(bitPattern: shadow))
      race.pointee.accesses = shadow.pointee.accesses
      let (locks, uses) = (hck_shadow_locks(shadow), hck_shadow_lock_uses(shadow))
      if let best = (0..<Int(HCK_RACE_READS)).max(by: { uses[$0] < uses[$1] }), uses[best] > 1 {
        race.pointee.protector = locks[best]
        race.pointee.protected_uses = uses[best]
      }
      write(name(of: shadow), to: race)
      let isStale = race.pointee.between.is_known != 0
      InProcess.raise(isStale ? HCK_ALARM_STALE_WRITE : HCK_ALARM_DATA_RACE, race)
    }

    private static func name(of shadow: ShadowPointer) -> String {
      if let name = shadow.pointee.name { return String(cString: name) }
      guard let file = shadow.pointee.file, shadow.pointee.line > 0 else { return "" }
      let bytes = UnsafeBufferPointer(start: file, count: Int(shadow.pointee.file_bytes))
      return String(decoding: bytes, as: UTF8.self) + ":\(shadow.pointee.line)"
    }

    private static func write(_ text: String, to race: UnsafeMutablePointer<hck_race>) {
      let room = MemoryLayout.size(ofValue: race.pointee.text) - 1
      for (index, byte) in text.utf8.prefix(room).enumerated() {
        hck_race_text(race)[index] = CChar(bitPattern: byte)
      }
    }
  }
#endif
