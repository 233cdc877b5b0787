internal import CHangcheck
internal import HangReport

extension DispatchMemory {
  /// What ends a wait for something that has no owner, and what begins one.
  enum Giving: Hashable, Sendable { case signal, leave, resume, wait }

  /// What a function's code does, in itself and in what it calls or refers to in its own binary, three
  /// deep: which of these functions it calls, and the semaphores and groups in variables that it names.
  struct CodeIntent {
    var gives: Set<Giving> = []
    var objects: Set<UInt64> = []
  }

  static let givingFunctions: [String: Giving] = [
    "dispatch_semaphore_signal": .signal, "$s8Dispatch0A9SemaphoreC6signalSiyF": .signal,
    "dispatch_group_leave": .leave, "$s8Dispatch0A5GroupC5leaveyyF": .leave,
    "dispatch_semaphore_wait": .wait, "dispatch_group_wait": .wait,
    "$s8Dispatch0A9SemaphoreC4waityyF": .wait, "$s8Dispatch0A5GroupC4waityyF": .wait,
    "$s8Dispatch0A9SemaphoreC4wait7timeoutAA0A13TimeoutResultOAA0A4TimeV_tF": .wait,
    "$s8Dispatch0A9SemaphoreC4wait11wallTimeoutAA0aE6ResultOAA0A8WallTimeV_tF": .wait,
    "$s8Dispatch0A5GroupC4wait7timeoutAA0A13TimeoutResultOAA0A4TimeV_tF": .wait,
    "$s8Dispatch0A5GroupC4wait11wallTimeoutAA0aE6ResultOAA0A8WallTimeV_tF": .wait,
  ]

  static func giving(_ name: String) -> Giving? {
    if let known = givingFunctions[name] { return known }
    let resumes = ["$sScC6resume", "$sScc6resume", "swift_continuation_"]
    return resumes.contains(where: name.hasPrefix)
      && (name.contains("resume") || name.contains("Resume")) ? .resume : nil
  }

  /// What work does that has yet to run: which of the functions above its code calls, the objects that
  /// this names, and what the work has at hand.
  func intent(
    of code: [UInt64], _ captures: Captures, _ known: inout [UInt64: CodeIntent]
  ) -> CodeIntent {
    var intent = CodeIntent()
    for function in Set(code).union(captures.functions).sorted().prefix(12) {
      let own = known[function] ?? codeIntent(of: function)
      known[function] = own
      intent.gives.formUnion(own.gives)
      intent.objects.formUnion(own.objects)
    }
    intent.objects.formUnion(captures.objects)
    return intent
  }

  /// The one object of that kind that work which has yet to run would signal, or leave; nil where it
  /// does no such thing, or could mean one of several. Work that waits itself asks for something, has
  /// that done, and waits for it in its turn: it gives nothing to those before it.
  ///
  /// Still a guess, though one that all of it agrees with: the code was not run.
  func given(_ giving: Giving, by intent: CodeIntent) -> UInt64? {
    guard intent.gives.contains(giving), !intent.gives.contains(.wait) else { return nil }
    let kind: ObjectKind = giving == .signal ? .semaphore : .group
    let named = intent.objects.filter { self.kind(of: $0) == kind }
    return named.count == 1 ? named.first : nil
  }

  private static let mostVariables: UInt64 = 16 << 20

  private func codeIntent(of function: UInt64) -> CodeIntent {
    var intent = CodeIntent()
    guard let home = images.image(at: function) else { return intent }
    let imported = imported(home)
    // Variables without a value in the file lie behind it.
    let reach = (home.end &- home.start) &+ Self.mostVariables
    var seen: Set<UInt64> = [function]
    var open: [(function: UInt64, depth: Int)] = [(function, 0)]
    var next = 0
    while next < open.count, next < 64 {
      let (start, depth) = open[next]
      next += 1
      let code = body(of: start)
      if depth < 3 {
        for target in shortJumps(code, from: start) where seen.insert(target).inserted {
          open.append((target, depth + 1))
        }
      }
      if let leaveSlot, usesSlot(leaveSlot, code) { intent.gives.insert(.leave) }
      for reference in CodeReferences(code, at: start) {
        let target = reference.target
        if reference.isSlot {
          if let giving = imported[target] { intent.gives.insert(giving) }
        } else if target &- home.start >= reach {
          continue
        } else if isCode(target) {
          if let slot = memory.slot(ofStub: target) {
            if let giving = imported[slot] { intent.gives.insert(giving) }
          } else if let giving = layout.givers[target] {
            intent.gives.insert(giving)
          } else if depth < 3, reference.mayBeFunction, seen.insert(target).inserted {
            open.append((target, depth + 1))
          }
        } else if target % 8 == 0, let word = memory.word(target) {
          for object in [word, wrapped(by: word) ?? 0] {
            if let kind = kind(of: object), [.semaphore, .group].contains(kind) {
              intent.objects.insert(object)
            }
          }
        }
      }
    }
    return intent
  }

  /// Where a queued item refers to its block: the item, and the agent's record in front of it.
  func places(ofItem address: UInt64) -> [Range<UInt64>] {
    var places = [(address, 64)]
    if let jobEntries, let item = RemoteBytes(memory, address, 64), item.word(0) < 0x1000,
      [jobEntries.run, jobEntries.apply].contains(item.word(0x20))
    {
      places.append((item.word(0x28), MemoryLayout<hck_job>.size))
    }
    return places.filter { $0.0 < 1 << 47 }.map { $0..<($0 + UInt64($1)) }
  }

  /// Swift calls `DispatchGroup.leave()` through the class's table: where in it.
  private var leaveSlot: UInt32? {
    if let known = leaveSlotInTable { return known == 0 ? nil : known }
    let names: Set<String> = ["$s8Dispatch0A5GroupCN", "$s8Dispatch0A5GroupC5leaveyyF"]
    var slot: UInt32 = 0
    let library = images.loaded.first { $0.path.contains("/libswiftDispatch.so") }
    if let image = library ?? images.loaded.first, let bias = images.loadBias(of: image),
      let found = ImageSymbols(names, in: image, of: images)?.symbols,
      let table = found["$s8Dispatch0A5GroupCN"]?.value,
      let leave = found["$s8Dispatch0A5GroupC5leaveyyF"]?.value,
      let words = RemoteBytes(memory, table &+ bias, 0x100)
    {
      slot =
        (0..<words.words).first { words.word($0 * 8) == leave &+ bias }.map { UInt32($0 * 8) } ?? 0
    }
    leaveSlotInTable = slot
    return slot == 0 ? nil : slot
  }

  /// Whether code loads, or calls, what lies that far behind a register.
  private func usesSlot(_ slot: UInt32, _ code: [UInt8]) -> Bool {
    let isShort = slot < 0x80
    return code.withUnsafeBytes { bytes in
      (2..<max(2, code.count - 3)).contains { at in
        let distance =
          isShort ? UInt32(code[at]) : bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self)
        guard distance == slot else { return false }
        let (operation, operand) = (code[at - 2], code[at - 1])
        let isLoad = operation == 0x8b
        let isCall = operation == 0xff && [0x10, 0x20].contains(operand & 0x38)
        return operand & 0xc0 == (isShort ? 0x40 : 0x80) && operand & 7 != 4 && (isLoad || isCall)
      }
    }
  }

  /// Where short jumps out of a function lead, as a closure's entry may do that only hands on.
  private func shortJumps(_ code: [UInt8], from start: UInt64) -> [UInt64] {
    code.indices.dropLast().compactMap { at in
      guard code[at] == 0xeb else { return nil }
      let target =
        start &+ UInt64(at + 2) &+ UInt64(bitPattern: Int64(Int8(bitPattern: code[at + 1])))
      return target != start && target % 16 == 0 ? target : nil
    }
  }

  /// Which of them a binary calls, by the slot of its table.
  private func imported(_ image: ImageMap.Image) -> [UInt64: Giving] {
    if let known = importedByImage[image.start] { return known }
    let found = images.loadBias(of: image).map {
      ImportedFunctions(image, bias: $0, memory) { Self.giving($0) != nil }.names
    }
    let result = (found ?? [:]).compactMapValues(Self.giving)
    importedByImage[image.start] = result
    return result
  }
}

/// Where a function's code leads, as far as bytes tell without decoding: each is tried as what it
/// would be at the beginning of a call, a jump or an address.
private struct CodeReferences: Sequence {
  struct Reference {
    var target: UInt64
    /// A function's address lies there.
    var isSlot = false
    var mayBeFunction = false
  }
  private let code: [UInt8]
  private let start: UInt64

  init(_ code: [UInt8], at start: UInt64) {
    self.code = code
    self.start = start
  }

  func makeIterator() -> AnyIterator<Reference> {
    var at = 0
    return AnyIterator {
      guard at + 4 < code.count else { return nil }
      defer { at += 1 }
      let distance = code.withUnsafeBytes {
        Int64($0.loadUnaligned(fromByteOffset: at + 1, as: Int32.self))
      }
      // The distance is what an instruction ends with: one that has no operand behind it.
      let target = start &+ UInt64(at + 5) &+ UInt64(bitPattern: distance)
      let before = at > 0 ? code[at - 1] : 0
      let isAddress = before == 0x8d && code[at] & 0xc7 == 0x05
      return Reference(
        target: target, isSlot: before == 0xff && [0x15, 0x25].contains(code[at]),
        mayBeFunction: [0xe8, 0xe9].contains(code[at]) || isAddress)
    }
  }
}
