internal import HangReport

extension DispatchMemory {
  /// Which of `objects` a function's code names through global variables, itself or in what it calls
  /// in its own binary, three deep.
  ///
  /// A hint, as with `references`: the code is not decoded, but every four bytes are tried as the
  /// distance to a variable that leads to one of the objects, which no other bytes do by chance.
  func codeReferences(from function: UInt64, to objects: Set<UInt64>) -> Set<UInt64> {
    var found: Set<UInt64> = []
    guard !objects.isEmpty, let home = images.image(at: function) else { return found }
    var seen: Set<UInt64> = [function]
    var open: [(function: UInt64, depth: Int)] = [(function, 0)]
    var next = 0
    while next < open.count, next < 64, found.count < objects.count {
      let (start, depth) = open[next]
      next += 1
      let code = body(of: start)
      guard code.count >= 5 else { continue }
      for offset in 0..<(code.count - 4) {
        let distance = code.withUnsafeBytes {
          Int64($0.loadUnaligned(fromByteOffset: offset, as: Int32.self))
        }
        let target = start &+ UInt64(offset + 4) &+ UInt64(bitPattern: distance)
        guard target >= home.start, target < home.end else { continue }
        if offset > 0, code[offset - 1] == 0xe8, depth < 3, isCode(target) {
          if seen.insert(target).inserted { open.append((target, depth + 1)) }
        } else if target % 8 == 0, !isCode(target), let word = memory.word(target) {
          if objects.contains(word) { found.insert(word) }
          // Swift's wrapper of an object of libdispatch.
          if word % 8 == 0, word > 1 << 16, let inner = wrapped(by: word),
            objects.contains(inner)
          {
            found.insert(inner)
          }
        }
      }
    }
    return found
  }

  /// A function's bytes, as far as the last return or jump, which filling or another function follows.
  func body(of function: UInt64) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 1024)
    let got = code.withUnsafeMutableBytes { memory.read(function, into: $0) }
    code.removeLast(code.count - max(0, got))
    for at in code.indices.dropLast(8) {
      let length =
        switch (code[at], code[at + 1]) {
        case (0xc3, _): 1
        case (0xff, 0xe0...0xe7): 2
        case (0xe9, _): 5
        default: 0
        }
      guard length > 0 else { continue }
      let end = at + length
      let isAligned = (function &+ UInt64(end)) % 16 == 0
      if isAligned ? length == 1 || Self.beginnings.contains(code[end]) : isFilling(code, end) {
        return Array(code[..<end])
      }
    }
    return code
  }

  /// What functions begin with: most of them save a register.
  private static let beginnings: Set<UInt8> = [0x41, 0x50, 0x53, 0x55, 0xf3]

  private func isFilling(_ code: [UInt8], _ at: Int) -> Bool {
    switch (code[at], code[at + 1]) {
    case (0x90, _), (0xcc, _), (0x0f, 0x1f), (0x66, 0x0f), (0x66, 0x2e), (0x66, 0x66),
      (0x66, 0x90):
      true
    default: false
    }
  }
}
