internal import CHangcheck

/// What libunwind's callbacks need: registers, memory and tables of the stack being walked.
final class UnwindContext {
  let library: LibUnwind
  let memory: LayeredMemory
  private let images: ImageMap
  /// By image; nil in the value: looked for and not there.
  private var tables: [Int: UnwindTable?] = [:]
  private var registers: [UInt64] = []
  private var isSite = false

  /// An address for which there is no unwind information.
  private(set) var missed: UInt64?
  /// The last address that could not be read.
  private(set) var unreadable: UInt64?
  /// For a site: stack words that were read from live memory, hence may be of another time.
  var readLive: [UInt64] = []

  init(library: LibUnwind, images: ImageMap, memory: LayeredMemory) {
    self.library = library
    self.images = images
    self.memory = memory
  }

  func begin(_ start: Registers, overlays: [StackCopy], isSite: Bool) {
    memory.begin(overlays: overlays)
    // In the library's order, which is DWARF's.
    registers = [
      start.rax, start.rdx, start.rcx, start.rbx, start.rsi, start.rdi, start.rbp, start.rsp,
      start.r8, start.r9, start.r10, start.r11, start.r12, start.r13, start.r14, start.r15,
      start.rip,
    ]
    self.isSite = isSite
    missed = nil
    unreadable = nil
    readLive.removeAll(keepingCapacity: true)
  }

  /// Whether the code at `pc` is the call of rt_sigreturn by which signal handlers end.
  func isSignalReturn(_ pc: UInt64) -> Bool {
    // mov $15, %rax; syscall is 48 c7 c0 0f 00 00 00 0f 05.
    memory.word(at: pc)?.value == 0x0f00_0000_0fc0_c748
      && memory.word(at: pc &+ 1)?.value == 0x050f_0000_000f_c0c7
  }

  func procedureStart(of pc: UInt64) -> UInt64? {
    table(at: pc)?.procedureStart(of: pc, memory: memory)
  }

  private func table(at pc: UInt64) -> UnwindTable? {
    guard let image = images.image(at: pc) else { return nil }
    if let known = tables[image.index] { return known }
    var table: UnwindTable?
    let opened = images.open(image)
    let headers =
      opened.headers
      ?? (image.mappings[0].offset == 0
        ? ProgramHeaders { memory.bytes(at: image.start &+ $0, $1) } : nil)
    let first = image.mappings[0]
    if let headers,
      let bias = headers.loadBias(mappedAt: first.start, offset: first.offset)
    {
      table = UnwindTable(headers: headers, bias: bias, memory: memory)
    }
    tables[image.index] = .some(table)
    return table
  }

  private func find(
    _ space: hck_unwind_space?, _ pc: UInt64,
    _ procedure: UnsafeMutablePointer<hck_unwind_procedure>?, _ needsInfo: Int32
  ) -> Int32 {
    if let table = table(at: pc), table.textStart <= pc, pc < table.textEnd {
      var description = library.describe(
        base: table.base, entries: table.entries, count: table.count, textStart: table.textStart,
        textEnd: table.textEnd)
      let argument = Unmanaged.passUnretained(self).toOpaque()
      let result = library.search(space, pc, &description, procedure, needsInfo, argument)
      if result >= 0 { return result }
    }
    missed = pc
    return LibUnwind.stop
  }

  private func read(_ address: UInt64, _ value: UnsafeMutablePointer<UInt64>) -> Int32 {
    let found = memory.word(at: address)
    if isSite, found == nil || found?.source == .target, !isConstant(address) {
      // A site's walk is checked against the live stack, so a wrong value here does no harm.
      readLive.append(address)
      value.pointee = found?.value ?? 0
      return 0
    }
    guard let found else {
      unreadable = address
      return LibUnwind.unsupported
    }
    value.pointee = found.value
    return 0
  }

  private func isConstant(_ address: UInt64) -> Bool {
    images.mapping(at: address).map { !$0.isWritable } ?? false
  }

  private func register(_ number: Int32, _ value: UnsafeMutablePointer<UInt64>) -> Int32 {
    guard number >= 0, Int(number) < registers.count else { return LibUnwind.unsupported }
    value.pointee = registers[Int(number)]
    return 0
  }
}

extension UnwindContext {
  /// The callbacks; their last argument is the context, which the caller of the library keeps.
  static var accessors: hck_unwind_accessors {
    var accessors = hck_unwind_accessors()
    accessors.find_proc_info = { space, pc, procedure, needsInfo, argument in
      UnwindContext.of(argument)?.find(space, pc, procedure, needsInfo) ?? LibUnwind.stop
    }
    // The library keeps small records in a pool of its own; there is nothing to give back.
    accessors.put_unwind_info = { _, _, _ in }
    accessors.get_dyn_info_list_addr = { _, _, _ in -10 }
    accessors.access_mem = { _, address, value, isWrite, argument in
      guard isWrite == 0, let value else { return LibUnwind.unsupported }
      return UnwindContext.of(argument)?.read(address, value) ?? LibUnwind.unsupported
    }
    accessors.access_reg = { _, number, value, isWrite, argument in
      guard isWrite == 0, let value else { return LibUnwind.unsupported }
      return UnwindContext.of(argument)?.register(number, value) ?? LibUnwind.unsupported
    }
    return accessors
  }

  private static func of(_ argument: UnsafeMutableRawPointer?) -> UnwindContext? {
    // Always the pointer that `withCursor` made from a context that it keeps alive.
    argument.map { Unmanaged<UnwindContext>.fromOpaque($0).takeUnretainedValue() }
  }
}
