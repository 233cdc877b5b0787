internal import HangReport

/// Which functions of other binaries one binary's code reaches through its global offset table.
///
/// From the dynamic section in memory: a slot that the loader has yet to bind says as much as one
/// that it has bound.
struct ImportedFunctions {
  /// By the address of the slot.
  private(set) var names: [UInt64: String] = [:]

  private enum Tag {
    static let pltBytes: UInt64 = 2
    static let strings: UInt64 = 5
    static let symbols: UInt64 = 6
    static let relocations: UInt64 = 7
    static let relocationBytes: UInt64 = 8
    static let stringBytes: UInt64 = 10
    static let plt: UInt64 = 23
  }
  private static let dynamic: UInt32 = 2
  private static let globalData: UInt64 = 6
  private static let jumpSlot: UInt64 = 7
  private static let mostBytes: UInt64 = 8 << 20

  /// `isSought`: which names are kept. Empty where the binary cannot be read.
  init(
    _ image: ImageMap.Image, bias: UInt64, _ memory: ProcessMemory, isSought: (String) -> Bool
  ) {
    guard let header = RemoteBytes(memory, image.start, 64), header.word32(0) == 0x464c_457f,
      let table = RemoteBytes(
        memory, image.start &+ header.word(32), Int(header.word16(56)) * Int(header.word16(54)))
    else { return }
    var tags: [UInt64: UInt64] = [:]
    let size = Int(header.word16(54))
    for at in stride(from: 0, to: Int(header.word16(56)) * size, by: max(size, 56))
    where table.word32(at) == Self.dynamic {
      let bytes = min(table.word(at + 40), 1 << 16)
      guard let entries = RemoteBytes(memory, bias &+ table.word(at + 16), Int(bytes)) else {
        return
      }
      for index in 0..<entries.words / 2 where tags[entries.word(index * 16)] == nil {
        tags[entries.word(index * 16)] = entries.word(index * 16 + 8)
      }
    }
    // The loader has made addresses of what the file has as distances; not everywhere.
    func address(_ tag: UInt64) -> UInt64? {
      tags[tag].map { $0 < image.start ? $0 &+ bias : $0 }
    }
    guard let symbols = address(Tag.symbols), let strings = address(Tag.strings),
      let length = tags[Tag.stringBytes], length <= Self.mostBytes,
      let text = RemoteBytes(memory, strings, Int(length))
    else { return }
    var offsets: [UInt32: String] = [:]
    let parts = [(Tag.plt, Tag.pltBytes), (Tag.relocations, Tag.relocationBytes)]
    for (start, size) in parts {
      guard let start = address(start), let bytes = tags[size], bytes <= Self.mostBytes,
        let entries = RemoteBytes(memory, start, Int(bytes))
      else { continue }
      for at in stride(from: 0, to: entries.count - 23, by: 24) {
        let info = entries.word(at + 8)
        guard [Self.globalData, Self.jumpSlot].contains(info & 0xffff_ffff),
          let name = memory.word32(symbols &+ (info >> 32) &* 24)
        else { continue }
        let known = offsets[name] ?? text.string(Int(name))
        offsets[name] = known
        if isSought(known) { names[bias &+ entries.word(at)] = known }
      }
    }
  }
}

extension RemoteBytes {
  /// What stands there up to the next zero.
  fileprivate func string(_ offset: Int) -> String {
    var bytes: [UInt8] = []
    var at = offset
    while at < count, bytes.count < 512, case let byte = byte(at), byte != 0 {
      bytes.append(byte)
      at += 1
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
