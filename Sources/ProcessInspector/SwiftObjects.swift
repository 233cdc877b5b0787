/// A native Swift class of another process, from its metadata: its name, its superclass, and where
/// its stored properties lie.
final class SwiftClass {
  let metadata: UInt64
  let module: String
  let name: String
  let superclass: SwiftClass?
  let instanceSize: Int
  /// Offsets of the class's own stored properties; without those that it inherits.
  let fields: [String: Int]

  fileprivate init(
    metadata: UInt64, module: String, name: String, superclass: SwiftClass?, instanceSize: Int,
    fields: [String: Int]
  ) {
    self.metadata = metadata
    self.module = module
    self.name = name
    self.superclass = superclass
    self.instanceSize = instanceSize
    self.fields = fields
  }

  /// "Foundation.Operation"
  var fullName: String { module.isEmpty ? name : "\(module).\(name)" }

  /// This class or the nearest of its superclasses with that name.
  func ancestor(_ fullName: String) -> SwiftClass? {
    var next: SwiftClass? = self
    while let current = next {
      if current.fullName == fullName { return current }
      next = current.superclass
    }
    return nil
  }
}

/// Swift's objects in another process's memory, by what the compiler left there for reflection.
///
/// Whatever is read is checked against the rest, and what does not fit is nil: an address may be
/// anything. Layouts are those of Swift 5 and 6 where there is no Objective-C. A new class costs some
/// 20 reads, a known one a single read. Confined to one thread; may be kept as long as the process
/// lives, for metadata stays where it is.
final class SwiftObjects {
  let memory: ProcessMemory
  private var classes: [UInt64: SwiftClass?] = [:]

  init(memory: ProcessMemory) { self.memory = memory }

  /// The class of the object at an address; nil where there is no object with a Swift class.
  func classOfObject(_ address: UInt64) -> SwiftClass? {
    guard address % 8 == 0, let metadata = memory.word(address) else { return nil }
    return classAt(metadata)
  }

  func classAt(_ metadata: UInt64) -> SwiftClass? { classAt(metadata, depth: 0) }

  private func classAt(_ metadata: UInt64, depth: Int) -> SwiftClass? {
    guard metadata % 8 == 0, metadata >= 4096, metadata < 1 << 47, depth < 32 else { return nil }
    if let known = classes[metadata] { return known }
    let found = read(metadata, depth)
    // Any word of a stack is asked about; the answers are not worth keeping for ever.
    if classes.count > 4096 { classes.removeAll() }
    classes[metadata] = .some(found)
    return found
  }

  private func read(_ metadata: UInt64, _ depth: Int) -> SwiftClass? {
    // Kind 0 is a class; at 8 the superclass, at 24 the size of objects, at 40 the descriptor.
    guard let head = RemoteBytes(memory, metadata, 48), head.word(0) == 0 else { return nil }
    let size = Int(head.word32(24))
    let pointee = head.word(40)
    guard size >= 16, size < 1 << 20, head.word32(20) == 0, pointee % 4 == 0,
      let descriptor = RemoteBytes(memory, pointee, 44)
    else { return nil }
    let flags = descriptor.word32(0)
    // Kind 16 is a class. The layout of generic ones is the same; their vector begins elsewhere.
    guard flags & 31 == 16, let name = relativeText(descriptor, 8), isName(name) else { return nil }
    let parent = head.word(8)
    let superclass = parent == 0 ? nil : classAt(parent, depth: depth + 1)
    if parent != 0 && superclass == nil { return nil }
    let hasResilientSuperclass = flags >> 16 & 1 << 13 != 0
    let fields = hasResilientSuperclass ? [:] : fields(descriptor, metadata, size) ?? [:]
    return SwiftClass(
      metadata: metadata, module: module(descriptor), name: name, superclass: superclass,
      instanceSize: size, fields: fields)
  }

  private func fields(_ descriptor: RemoteBytes, _ metadata: UInt64, _ size: Int) -> [String: Int]?
  {
    let count = Int(descriptor.word32(36))
    let vector = Int(descriptor.word32(40))
    guard count > 0, count < 512, vector > 4, vector < 1 << 16,
      let offsets = RemoteBytes(memory, metadata &+ UInt64(vector * 8), count * 8),
      let list = relative(descriptor, 16),
      // Kind 1 is a class; records of 12 bytes.
      let head = RemoteBytes(memory, list, 16), head.word16(8) == 1, head.word16(10) == 12,
      Int(head.word32(12)) == count, let records = RemoteBytes(memory, list &+ 16, count * 12)
    else { return nil }
    var result: [String: Int] = [:]
    for index in 0..<count {
      let offset = offsets.word(index * 8)
      guard offset >= 16, offset < UInt64(size), let name = relativeText(records, index * 12 + 8)
      else { return nil }
      result[name] = Int(offset)
    }
    return result
  }

  /// The module that a descriptor's chain of parents ends in.
  private func module(_ descriptor: RemoteBytes) -> String {
    var current = descriptor
    for _ in 0..<16 {
      guard var parent = relative(current, 4) else { return "" }
      if parent & 1 != 0 {
        guard let pointee = memory.word(parent & ~1) else { return "" }
        parent = pointee
      }
      guard let next = RemoteBytes(memory, parent, 16) else { return "" }
      // Kind 0 is a module.
      if next.word32(0) & 31 == 0 { return relativeText(next, 8) ?? "" }
      current = next
    }
    return ""
  }

  private func relative(_ bytes: RemoteBytes, _ offset: Int) -> UInt64? {
    let distance = Int32(bitPattern: bytes.word32(offset))
    guard distance != 0 else { return nil }
    return bytes.address &+ UInt64(offset) &+ UInt64(bitPattern: Int64(distance))
  }

  private func relativeText(_ bytes: RemoteBytes, _ offset: Int) -> String? {
    relative(bytes, offset).flatMap { memory.text($0) }
  }

  private func isName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 > 32 && $0 != 127 }
  }
}

/// Swift's own values.
extension SwiftObjects {
  /// A `String` or `String?` of 16 bytes; nil also where it is none.
  func text(_ low: UInt64, _ high: UInt64) -> String? {
    if high == 0 { return nil }
    // Small: up to 15 bytes in the two words themselves.
    if high >> 61 & 1 != 0 {
      let count = Int(high >> 56 & 15)
      let bytes = (0..<count).map { at in
        UInt8(truncatingIfNeeded: at < 8 ? low >> (at * 8) : high >> ((at - 8) * 8))
      }
      return String(validating: bytes, as: UTF8.self)
    }
    // Text of another type, that has to be asked.
    if high >> 60 & 1 != 0 { return nil }
    let count = Int(low & 0xffff_ffff_ffff)
    guard count > 0 else { return "" }
    let shown = min(count, 256)
    // The bytes begin behind the object's head, of a constant as many bytes behind its address.
    guard let copy = RemoteBytes(memory, (high & 0x0fff_ffff_ffff_ffff) &+ 32, shown) else {
      return nil
    }
    return String(decoding: (0..<shown).map { copy.byte($0) }, as: UTF8.self)
  }

  /// The references in a native `Array` of class instances, up to a limit; nil where it is none.
  func references(inArray storage: UInt64, limit: Int = 1024) -> [UInt64]? {
    guard let head = RemoteBytes(memory, storage, 32) else { return nil }
    let count = Int(truncatingIfNeeded: head.word(16))
    // Twice the capacity, and a flag.
    guard count >= 0, count < 1 << 24, head.word(24) >> 1 >= UInt64(count) else { return nil }
    if count == 0 { return [] }
    let shown = min(count, limit)
    guard let copy = RemoteBytes(memory, storage &+ 32, shown * 8) else { return nil }
    return (0..<shown).map { copy.word($0 * 8) }
  }
}
