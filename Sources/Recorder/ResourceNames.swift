// Names that a program gives to its locks, in the arena where the reader finds them. Not on any hot
// path.
public import CHangcheck

/// Names the resource at `address`, in at most 55 bytes of UTF-8; drops the name when the table is
/// full.
public func nameResource(
  _ address: UInt64, _ text: UnsafePointer<CChar>, in arena: UnsafeMutablePointer<hck_arena>
) {
  guard let table = nameTable(arena, make: true) else { return }
  var probe = nameIndex(address)
  var left = 64
  while left > 0 {
    let record = table + Int(probe)
    let there = hck_load64(&record.pointee.address)
    if there <= 1, hck_cas64(&record.pointee.address, there, 2) != 0 {
      let bytes = UnsafeMutableRawPointer(record).advanced(by: 8).assumingMemoryBound(
        to: CChar.self)
      var length = 0
      while length < 55, text[length] != 0 {
        bytes[length] = text[length]
        length &+= 1
      }
      bytes[length] = 0
      hck_store64(&record.pointee.address, address)
      return
    }
    probe = (probe &+ 1) % UInt32(HCK_NAME_RECORDS)
    left &-= 1
  }
}

/// Forgets the name at `address`, which another resource may use next.
public func unnameResource(_ address: UInt64, in arena: UnsafeMutablePointer<hck_arena>) {
  guard let record = nameRecord(address, in: arena) else { return }
  hck_store64(&record.pointee.address, 1)
}

/// The record that names `address`.
public func nameRecord(_ address: UInt64, in arena: UnsafeMutablePointer<hck_arena>)
  -> UnsafeMutablePointer<hck_name>?
{
  guard let table = nameTable(arena, make: false) else { return nil }
  var probe = nameIndex(address)
  var left = 64
  while left > 0 {
    let record = table + Int(probe)
    let there = hck_load64(&record.pointee.address)
    if there == address { return record }
    if there == 0 { return nil }
    probe = (probe &+ 1) % UInt32(HCK_NAME_RECORDS)
    left &-= 1
  }
  return nil
}

private func nameTable(_ arena: UnsafeMutablePointer<hck_arena>, make: Bool)
  -> UnsafeMutablePointer<hck_name>?
{
  var offset = hck_load64(&arena.pointee.names)
  if offset == 0 {
    let bytes = UInt64(HCK_NAME_RECORDS) &* UInt64(MemoryLayout<hck_name>.stride)
    guard make, let fresh = takeChunk(arena, bytes: bytes) else { return nil }
    if hck_cas64(&arena.pointee.names, 0, fresh) == 0 {
      offset = hck_load64(&arena.pointee.names)
    } else {
      offset = fresh
    }
  }
  return UnsafeMutableRawPointer(arena).advanced(by: Int(offset)).assumingMemoryBound(
    to: hck_name.self)
}

private func nameIndex(_ address: UInt64) -> UInt32 {
  UInt32(truncatingIfNeeded: (address &* 0x9e37_79b9_7f4a_7c15) >> 40) % UInt32(HCK_NAME_RECORDS)
}
