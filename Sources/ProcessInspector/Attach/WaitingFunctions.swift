internal import HangReport

/// The functions in which threads wait, by where their code lies in one process.
///
/// Only what a symbol says counts: code without one is no known function. Making one reads the symbol
/// tables of up to three libraries, some milliseconds. Confined to one thread.
struct WaitingFunctions {
  enum Function: Hashable, Sendable {
    case lockMutex, waitForCondition, lockForReading, lockForWriting, waitForSemaphore
    case waitForProcess
    case spin, waitAtBarrier, join, dispatchOnce, swiftOnce, waitForItem
    /// What such functions wait in.
    case helper
  }
  private struct Code {
    var range: Range<UInt64>
    var function: Function
  }
  private var code: [Code] = []
  /// Executable mappings of the libraries that such functions lie in, and of libc.
  private var libraries: [Range<UInt64>] = []
  /// A C library with symbols was found.
  private(set) var hasLibC = false

  private static let libC: [String: Function] = {
    var names: [String: Function] = [:]
    func add(_ function: Function, _ bases: [String], _ prefixes: [String] = ["", "__", "___"]) {
      for base in bases {
        for prefix in prefixes { names[prefix + base] = function }
      }
    }
    add(
      .lockMutex,
      [
        "pthread_mutex_lock", "pthread_mutex_lock_full", "pthread_mutex_cond_lock",
        "pthread_mutex_cond_lock_full", "pthread_mutex_timedlock", "pthread_mutex_clocklock",
        "pthread_mutex_clocklock_common", "pthread_mutex_timedlock64", "pthread_mutex_clocklock64",
      ])
    add(
      .waitForCondition,
      ["pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "cnd_wait"]
        + ["pthread_cond_timedwait64", "pthread_cond_clockwait64"])
    add(.lockForReading, ["pthread_rwlock_rdlock", "pthread_rwlock_timedrdlock"])
    add(.lockForReading, ["pthread_rwlock_clockrdlock"])
    add(.lockForWriting, ["pthread_rwlock_wrlock", "pthread_rwlock_timedwrlock"])
    add(.lockForWriting, ["pthread_rwlock_clockwrlock"])
    add(.spin, ["pthread_spin_lock"])
    add(.waitForSemaphore, ["sem_wait", "sem_timedwait", "sem_clockwait", "new_sem_wait"])
    add(.waitAtBarrier, ["pthread_barrier_wait"])
    add(.join, ["pthread_join", "pthread_timedjoin_np", "pthread_clockjoin_np", "thrd_join"])
    add(.join, ["pthread_clockjoin_ex", "pthread_timedjoin_ex"])
    return names
  }()
  private static let dispatch: [String: Function] = [
    "_dispatch_once_wait": .dispatchOnce, "_dispatch_once_callout": .dispatchOnce,
    "dispatch_once_f": .dispatchOnce, "dispatch_once": .dispatchOnce,
    "dispatch_block_wait": .waitForItem,
  ]
  private static let swift: [String: Function] = [
    "swift_once": .swiftOnce,
    "_ZN5swift14threading_impl9once_slowERNS0_6once_tEPFvPvES3_": .swiftOnce,
  ]

  private static let foundation: [String: Function] = [
    "$s10Foundation7ProcessC13waitUntilExityyF": .waitForProcess
  ]
  /// Looked for where all of it is part of the program: its code cannot be told from the program's own
  /// by the library that it lies in.
  private static let helpers: Set<String> = [
    "syscall", "__lll_lock_wait", "__futex_abstimed_wait_common", "do_futex_wait",
    "__futex_abstimed_wait64", "__futex_abstimed_wait_cancelable64", "__futex_lock_pi64",
    "__new_sem_wait_slow64", "__new_sem_wait_slow64.constprop.0", "_dispatch_group_wait_slow",
    "dispatch_group_wait", "_dispatch_wait_on_address", "_dispatch_futex_wait",
    "_dispatch_ulock_wait",
  ]

  init(_ images: ImageMap, executable: String) {
    let deleted = " (deleted)"
    let program = executable.hasSuffix(deleted) ? String(executable.dropLast(10)) : executable
    func named(_ prefixes: [String]) -> [ImageMap.Image] {
      images.loaded.filter { image in
        let base = image.path.split(separator: "/").last ?? ""
        return prefixes.contains { base.hasPrefix($0) }
      }
    }
    let own = images.loaded.first { $0.path == program }
    let libC = named(["libc.so", "libc-2.", "libpthread.so", "libpthread-2."])
    let dispatch = named(["libdispatch.so"])
    let swift = named(["libswiftCore.so"])
    // What is linked statically is part of the program.
    var wanted: [UInt64: (image: ImageMap.Image, names: [String: Function])] = [:]
    func want(_ found: [ImageMap.Image], _ names: [String: Function]) {
      for image in found.isEmpty ? own.map({ [$0] }) ?? [] : found {
        wanted[image.start, default: (image, [:])].names.merge(names) { old, _ in old }
      }
    }
    want(libC, Self.libC)
    want(dispatch, Self.dispatch)
    want(swift, Self.swift)
    let foundation = named(["libFoundation.so"])
    want(foundation, Self.foundation)
    for (image, wantedNames) in wanted.values {
      let isProgram = image.start == own?.start
      let helpers =
        isProgram
        ? Dictionary(uniqueKeysWithValues: Self.helpers.map { ($0, Function.helper) }) : [:]
      let names = wantedNames.merging(helpers) { old, _ in old }
      for mapping in images.mappings
      where !isProgram && image.start != foundation.first?.start && mapping.isExecutable
        && mapping.start >= image.start
        && mapping.end <= image.end
      {
        libraries.append(mapping.start..<mapping.end)
      }
      guard let bias = images.loadBias(of: image),
        let found = ImageSymbols(Set(names.keys), in: image, of: images)
      else { continue }
      let all = found.symbols.map { (name: $0.key, symbol: $0.value) } + found.others
      for (name, symbol) in all where symbol.size > 1 && symbol.value != 0 {
        guard let function = names[name] else { continue }
        let start = bias &+ symbol.value
        code.append(Code(range: start..<(start &+ symbol.size), function: function))
        if Self.libC[name] != nil { hasLibC = true }
      }
    }
    code.sort {
      ($0.range.lowerBound, $0.range.upperBound) < ($1.range.lowerBound, $1.range.upperBound)
    }
  }

  /// The innermost known function of a stack, and the frame address behind it. Nil where code of the
  /// program stands before it, such as a handler that interrupted the wait.
  func innermost(
    _ frames: [RawFrame], _ memory: ProcessMemory
  ) -> (function: Function, end: UInt64)? {
    var end: UInt64 = 0
    for frame in frames.prefix(8) {
      let pc = frame.isExact ? frame.pc : frame.pc &- 1
      let function = function(at: pc)
      if let function, function != .helper { return (function, frame.cfa) }
      guard function == .helper || libraries.contains(where: { $0.contains(pc) }) else {
        // A function that ended in a jump into another one has left the stack: its caller names it.
        guard !frame.isExact, let target = Self.called(before: frame.pc, memory) else { return nil }
        return self.function(at: target).flatMap { $0 == .helper ? nil : ($0, end) }
      }
      end = frame.cfa
    }
    return nil
  }

  /// What the call in front of a return address calls, through a stub of the linker's where it goes
  /// through one.
  static func called(before address: UInt64, _ memory: ProcessMemory) -> UInt64? {
    guard let code = RemoteBytes(memory, address &- 6, 6) else { return nil }
    // call *displacement(%rip); call displacement
    if code.byte(0) == 0xff, code.byte(1) == 0x15 {
      return memory.word(address &+ distance(code.word32(2)))
    }
    guard code.byte(1) == 0xe8 else { return nil }
    let target = address &+ distance(code.word32(2))
    guard let slot = memory.slot(ofStub: target) else { return target }
    return memory.word(slot)
  }

  private static func distance(_ word: UInt32) -> UInt64 {
    UInt64(bitPattern: Int64(Int32(bitPattern: word)))
  }

  func ranges(of function: Function) -> [Range<UInt64>] {
    code.filter { $0.function == function }.map(\.range)
  }

  private func function(at pc: UInt64) -> Function? {
    var low = 0
    var high = code.count
    while low < high {
      let middle = (low + high) / 2
      if code[middle].range.lowerBound <= pc { low = middle + 1 } else { high = middle }
    }
    // Aliases begin at one place.
    return low > 0 && code[low - 1].range.contains(pc) ? code[low - 1].function : nil
  }
}
