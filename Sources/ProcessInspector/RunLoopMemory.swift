internal import CHangcheck
internal import HangReport

/// Foundation's run loops and their timers, in a process's memory.
///
/// Offsets are those of CoreFoundation in swift-corelibs on 64 bits; each object is believed only
/// where it bears its class and type, and refers to others that do. Confined to one thread.
final class RunLoopMemory {
  struct Loop: Hashable {
    var address: UInt64
    var pthread: UInt64
    /// In which mode it is being run; 0 while it is not.
    var mode: UInt64
    /// The first block of `RunLoop.perform` that has not run; 0 for none.
    var firstBlock: UInt64
  }
  struct Timer: Hashable {
    var address: UInt64
    var loop: UInt64
    /// CLOCK_MONOTONIC, nanoseconds.
    var due: UInt64
    var isRepeating: Bool
    var info: UInt64
  }

  private let files: ProcessFiles
  private let memory: ProcessMemory
  private let objects: SwiftObjects
  private let type: UInt64
  private let loopType: UInt64
  private let timerType: UInt64

  private enum Offset {
    static let info = 16
    static let loopThread = 80, loopMode = 112, loopBlocks = 128, loopBytes = 136
    static let timerLoop = 72, timerInterval = 96, timerDue = 112, timerInfo = 144, timerBytes = 152
    static let modeName = 64, modeTimers = 104, modeBytes = 112
    static let arrayCount = 24, arrayStore = 48
    static let stringBytes = 24
  }
  /// Of a timer's bits: it has not been invalidated.
  private static let isValid: UInt64 = 8

  /// nil where the process has no Foundation that is known.
  init?(files: ProcessFiles, memory: ProcessMemory) {
    let images = files.images(memory)
    let metadata = "$s10Foundation10__NSCFTypeCN"
    let names = [metadata, "CFRunLoopGetTypeID", "CFRunLoopTimerGetTypeID"]
    guard
      let mapping = images.mappings.first(where: {
        $0.isExecutable && $0.path.contains("/libFoundation.so")
      }), let image = images.image(at: mapping.start), let bias = images.loadBias(of: image),
      let symbols = ImageSymbols(Set(names), in: image, of: images)?.symbols
    else { return nil }
    let found = names.compactMap { symbols[$0].map { $0.value &+ bias } }
    guard found.count == names.count, let loop = Self.constant(found[1], memory),
      let timer = Self.constant(found[2], memory), loop != timer
    else { return nil }
    self.files = files
    self.memory = memory
    objects = SwiftObjects(memory: memory)
    (type, loopType, timerType) = (found[0], loop, timer)
  }

  /// What a function of a few bytes returns: `mov $constant, %eax`.
  private static func constant(_ function: UInt64, _ memory: ProcessMemory) -> UInt64? {
    guard let code = RemoteBytes(memory, function, 24) else { return nil }
    for at in 0..<8 where code.byte(at) == 0xb8 {
      let value = UInt64(code.word32(at + 1))
      return value > 0 && value < 1 << 16 ? value : nil
    }
    return nil
  }

  /// All run loops and valid timers; nil where the search took too long.
  func search(limit: UInt64) -> (loops: [Loop], timers: [Timer])? {
    var found: [UInt64] = []
    let space = WritableMemory(files: files, memory: memory, mappings: files.mappings())
    let isComplete = space.search(for: type, or: type, deadline: hck_monotonic_ns() &+ limit) {
      address, _ in found.append(address)
    }
    guard isComplete else { return nil }
    let loops = found.compactMap(loop)
    let known = Set(loops.map(\.address))
    return (loops, found.compactMap(timer).filter { known.contains($0.loop) })
  }

  private func object(_ address: UInt64, _ type: UInt64, _ bytes: Int) -> RemoteBytes? {
    guard address % 16 == 0, let words = RemoteBytes(memory, address, bytes),
      words.word(0) == self.type, words.word(Offset.info) >> 8 & 0xffff == type
    else { return nil }
    return words
  }

  func loop(_ address: UInt64) -> Loop? {
    guard let words = object(address, loopType, Offset.loopBytes) else { return nil }
    let mode = words.word(Offset.loopMode)
    if mode != 0 && object(mode, loopType + 1, 24) == nil { return nil }
    return Loop(
      address: address, pthread: words.word(Offset.loopThread), mode: mode,
      firstBlock: words.word(Offset.loopBlocks))
  }

  func timer(_ address: UInt64) -> Timer? {
    guard let words = object(address, timerType, Offset.timerBytes),
      words.word(Offset.info) & Self.isValid != 0, words.word(Offset.timerLoop) != 0
    else { return nil }
    return Timer(
      address: address, loop: words.word(Offset.timerLoop), due: words.word(Offset.timerDue),
      isRepeating: words.word(Offset.timerInterval) != 0, info: words.word(Offset.timerInfo))
  }

  /// Whether a timer is in a mode; true where that cannot be told.
  func isTimer(_ timer: Timer, in mode: UInt64) -> Bool {
    guard let words = object(mode, loopType + 1, Offset.modeBytes) else { return true }
    let array = words.word(Offset.modeTimers)
    if array == 0 { return false }
    guard let head = RemoteBytes(memory, array, 56), head.word(Offset.arrayCount) < 4096 else {
      return true
    }
    let count = Int(head.word(Offset.arrayCount))
    if count == 0 { return false }
    // Where it begins in its store, and how many that has room for.
    let store = head.word(Offset.arrayStore)
    guard let room = memory.word(store &+ 8), room >= count, room < 1 << 14,
      let items = RemoteBytes(memory, store &+ 16, Int(room) * 8 + 8)
    else { return true }
    let all = (0...Int(room)).map { items.word($0 * 8) }
    // All of the array must look like timers, or it was not understood.
    let timers = all.filter { self.timer($0) != nil }
    return timers.count < count || timers.contains(timer.address)
  }

  /// A mode's name, where it is plain text.
  func name(ofMode mode: UInt64) -> String? {
    guard let words = object(mode, loopType + 1, Offset.modeBytes),
      let text = RemoteBytes(memory, words.word(Offset.modeName), 40)
    else { return nil }
    let address = words.word(Offset.modeName) &+ UInt64(Offset.stringBytes)
    let found = memory.text(text.word(Offset.stringBytes)) ?? memory.text(address)
    return found.flatMap { name in
      name.count > 1 && name.utf8.allSatisfy { $0 > 32 && $0 < 127 } ? name : nil
    }
  }

  /// The function that Foundation's `Timer` calls.
  func function(of timer: Timer) -> UInt64? {
    guard let type = objects.classOfObject(timer.info),
      type.ancestor("Foundation.Timer") != nil,
      let field = type.ancestor("Foundation.Timer")?.fields["_fire"]
    else { return nil }
    return memory.word(timer.info &+ UInt64(field))
  }
}
