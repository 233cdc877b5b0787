internal import CHangcheck
internal import HangReport
internal import WaitForGraph

/// Makes a report's threads, resources and findings from looks and copied stacks of one process.
///
/// Names and lines cost most, and only a report needs them. Confined to one thread; made anew for
/// each report, since the process may have loaded libraries meanwhile.
struct ReportAssembler {
  let files: ProcessFiles
  let arena: Arena
  let memory: ProcessMemory
  let images: ImageMap
  let symbolizer: Symbolizer
  let unwinder: Unwinder?
  /// What could not be known, one sentence each.
  private(set) var limits: [String] = []

  /// `isRoot`: the process that was started, whose threads carry no pid in the report.
  let isRoot: Bool

  /// `mappings`: of a process that is gone, as they were last seen.
  init(
    files: ProcessFiles, memory: ProcessMemory, arena: Arena, isRoot: Bool,
    mappings: [Mapping]? = nil
  ) {
    self.files = files
    self.arena = arena
    self.memory = memory
    self.isRoot = isRoot
    images =
      mappings.map { ImageMap($0) }
      ?? files.images(memory)
    symbolizer = Symbolizer(images: images)
    do {
      unwinder = try Unwinder(images: images, memory: memory)
    } catch {
      unwinder = nil
      limits.append("no stacks: \(error)")
    }
    if arena.unrecorded != 0 {
      limits.append("\(arena.unrecorded) events were not recorded for want of memory")
    }
  }

  func threads(
    _ look: Look, stacks: [KernelThreadID: CapturedThread]
  ) -> [Thread] {
    let wanted = Set(look.snapshot.threads.compactMap(\.wait?.resource))
    return look.snapshot.threads.map { seen in
      let kernel = look.thread(seen.id)
      if seen.kind != .thread { return pendingWork(seen, kernel) }
      var live: Unwound?
      if seen.isAlive, let captured = stacks[kernel.tid] {
        live = unwinder?.unwind(captured.registers, stack: [captured.stack])
      }
      let stack = live.map { symbolizer.frames(for: $0.frames) } ?? []
      let holds = zip(seen.holds, kernel.holds).compactMap { hold, recorded -> Thread.Hold? in
        guard recorded.site != nil || isOfInterest(hold.resource, wanted, look) else { return nil }
        return Thread.Hold(
          resource: hold.resource, mode: hold.mode, seconds: hold.seconds,
          stack: self.stack(of: recorded, live: live?.frames ?? [])
            ?? ownCall(recorded, kernel.holds, look, stack)
            ?? withLock(recorded, kernel.holds, stack))
      }
      let wait = seen.wait.map {
        Thread.Wait(resource: $0.resource, mode: $0.mode, seconds: $0.seconds, stack: stack)
      }
      return Thread(
        id: seen.id, tid: kernel.tid.rawValue, pid: isRoot ? nil : files.pid.rawValue,
        name: name(of: kernel),
        queue: kernel.queue,
        state: !seen.isAlive || seen.isIdle
          ? .idle : wait != nil ? .blocked : state(kernel.tid, stacks[kernel.tid], stack),
        waitsFor: wait,
        holds: holds, stack: stack)
    }
  }

  /// One that has ended since the look bears the name that is on record.
  private func name(of thread: SeenThread) -> String {
    let name = thread.isAlive ? files.name(thread.tid) : ""
    return name.isEmpty ? thread.record?.name ?? "" : name
  }

  /// A task's stack; one that has not begun stands at a function's beginning.
  private func taskStack(_ code: [UInt64]) -> [Frame] {
    var stack = ConcurrencyMemory.named(code, symbolizer)
    guard let index = stack.firstIndex(where: { !$0.runtime }), (stack[index].line ?? 0) == 0,
      let whole = code.lazy.map(beginning).first(where: { frames in
        frames.last?.symbol == stack[index].symbol && (frames.last?.line ?? 0) > 0
      })
    else { return stack }
    stack.replaceSubrange(index...index, with: whole)
    return stack
  }

  /// Where a function begins. The first instructions often have no line of their own, and a
  /// forwarder has none at all: then what it calls stands for it, where that bears its name.
  func beginning(of function: UInt64) -> [Frame] {
    beginning(of: function, forwards: 2)
  }

  private func beginning(of function: UInt64, forwards: Int) -> [Frame] {
    func frames(_ offset: UInt64) -> [Frame] {
      symbolizer.frames(for: [RawFrame(pc: function &+ offset, cfa: 0, isExact: true)])
    }
    let first = frames(0)
    guard let name = first.last?.symbol, (first.last?.line ?? 0) == 0 else { return first }
    for offset in stride(from: UInt64(4), to: 64, by: 4) {
      let next = frames(offset)
      if next.last?.symbol != name { break }
      if let line = next.last?.line, line > 0 { return next }
    }
    guard forwards > 0, let code = RemoteBytes(memory, function, 128) else { return first }
    for offset in 0..<123 where code.byte(offset) & 0xfe == 0xe8 {
      let distance = Int64(Int32(bitPattern: code.word32(offset + 1)))
      let target = function &+ UInt64(offset + 5) &+ UInt64(bitPattern: distance)
      let next = beginning(of: target, forwards: forwards - 1)
      if next.last?.symbol == name, (next.last?.line ?? 0) > 0 { return next }
    }
    return first
  }

  /// Whether a thread is listed with it although nobody waits for it.
  private func isShown(_ resource: ResourceID, _ look: Look) -> Bool {
    isOfInterest(resource, [], look)
      || zip(look.snapshot.threads, look.threads).contains { seen, kernel in
        zip(seen.holds, kernel.holds).contains { $0.resource == resource && $1.site != nil }
      }
  }

  /// Where a thread runs is worth telling when somebody waits for that: the main thread always runs
  /// on the main queue.
  private func isOfInterest(
    _ resource: ResourceID, _ wanted: Set<ResourceID>, _ look: Look
  ) -> Bool {
    switch ResourceKind(recorded: look.resource(resource).kind) {
    case .queue, .pool, .task, .taskGroup, .actor, .group, .operation, .operationQueue:
      wanted.contains(resource)
    default: true
    }
  }

  /// A queued block, a task: no thread, but something that waits, and that others wait for.
  private func pendingWork(_ seen: Snapshot.Thread, _ kernel: SeenThread) -> Thread {
    let stack =
      seen.kind == .task
      ? taskStack(kernel.code)
      : kernel.code.flatMap(beginning)
    return Thread(
      id: seen.id, kind: seen.kind, tid: 0, address: Address(kernel.subject),
      pid: isRoot ? nil : files.pid.rawValue, name: nameOfWork(kernel), queue: kernel.queue,
      state: .blocked,
      waitsFor: seen.wait.map {
        Thread.Wait(resource: $0.resource, mode: $0.mode, seconds: nil, stack: stack)
      },
      holds: seen.holds.map {
        Thread.Hold(resource: $0.resource, mode: $0.mode, seconds: nil, stack: [])
      }, stack: stack)
  }

  private func nameOfWork(_ kernel: SeenThread) -> String {
    if let name = kernel.name, !name.isEmpty || kernel.kind != .operation { return name }
    guard kernel.kind == .operation else { return "" }
    return name(ResourceKey(address: kernel.subject, kind: HCK_OPERATION.rawValue)) ?? ""
  }

  func resources(_ look: Look) -> [Resource] {
    look.snapshot.resources.compactMap { described in
      let key = look.resource(described.id)
      let owners = look.snapshot.threads.filter { thread in
        thread.id == described.thread || thread.holds.contains { $0.resource == described.id }
      }
      let waiters = look.snapshot.threads.filter { $0.wait?.resource == described.id }
      if waiters.isEmpty && (owners.isEmpty || !isShown(described.id, look)) { return nil }
      return Resource(
        id: described.id, kind: described.kind,
        name: arena.name(of: key.address) ?? look.names[key] ?? name(key),
        address: Address(key.address), owners: owners.map(\.id), waiters: waiters.map(\.id),
        value: look.values[key])
    }
  }

  /// What is on record of the resources among these that nobody holds as one holds a lock.
  func history(_ resources: [ResourceID], _ look: Look) -> [ResourceID: [ResourceEvent]] {
    var result: [ResourceID: [ResourceEvent]] = [:]
    for resource in resources where result[resource] == nil {
      result[resource] = events(of: look.resource(resource), look)
    }
    return result
  }

  func events(of key: ResourceKey, _ look: Look) -> [ResourceEvent] {
    var events: [ResourceEvent] = []
    for tally in arena.tallies(of: key).sorted(by: { ($0.first, $0.last) < ($1.first, $1.last) }) {
      let action: ResourceEvent.Action
      switch tally.operation {
      case .create: action = .made
      case .take, .takeByBlock: action = .took
      case .give, .giveByBlock: action = .gave
      case .notify: action = .askedToBeNotified
      }
      let stack = acquisition(tally.site, live: [])
      // From where it was made is often not kept, and then tells nothing.
      guard !stack.isEmpty, action != .made || stack.contains(where: { !$0.runtime }) else {
        continue
      }
      let seen = look.threads.first { $0.isAlive && $0.kind == .thread && $0.tid == tally.tid }
      let event = ResourceEvent(
        action: action, count: Int(clamping: tally.count), thread: seen?.id,
        threadName: tally.threadName,
        secondsAgo: Double(arena.clock &- tally.last) / 1000, stack: stack)
      if let index = events.firstIndex(where: { $0.isAtSamePlace(as: event) }) {
        events[index].add(event)
      } else {
        events.append(event)
      }
    }
    return events
  }

  /// What a one-time initialisation makes, from the function that asks for it.
  static func named(_ resources: [Resource], by threads: [Thread]) -> [Resource] {
    var names: [ResourceID: String] = [:]
    for thread in threads {
      for (resource, stack) in thread.holds.map({ ($0.resource, $0.stack) })
        + (thread.waitsFor.map { [($0.resource, $0.stack)] } ?? [])
      {
        guard let symbol = stack.first(where: { $0.symbol?.hasSuffix(accessor) ?? false })?.symbol
        else { continue }
        names[resource] = names[resource] ?? String(symbol.dropLast(accessor.count))
      }
    }
    return resources.map { resource in
      guard resource.kind == .once, resource.name == nil, let name = names[resource.id] else {
        return resource
      }
      var resource = resource
      resource.name = name
      return resource
    }
  }
  private static let accessor = ".unsafeMutableAddressor"

  /// As the program named it, or else where it was made. Who knows a queue's label asks for that
  /// first.
  func name(_ key: ResourceKey) -> String? {
    arena.name(of: key.address) ?? CreationSite(of: key, memory)?.description
  }

  /// A synchronous call and a one-time initialisation last as long as they are on record: from where
  /// they were made is on the thread's stack as it is.
  private func stack(of hold: RecordedHold, live: [RawFrame]) -> [Frame]? {
    let isCall = [HCK_QUEUE.rawValue, HCK_ONCE.rawValue].contains(hold.key.kind)
    if isCall, let site = hold.site,
      let first = live.firstIndex(where: { $0.cfa > site.stackPointer })
    {
      return symbolizer.frames(for: Array(live[first...]))
    }
    return hold.site == nil ? nil : acquisition(hold.site, live: live)
  }

  /// An uncontended `Mutex` is taken without any call, but it is held while a closure runs, and
  /// `withLock` is part of who calls that: where one only is held, the innermost closure whose caller
  /// is the program's own code is taken for it.
  private func withLock(
    _ hold: RecordedHold, _ all: [RecordedHold], _ stack: [Frame]
  ) -> [Frame] {
    let kind = HCK_FUTEX_LOCK.rawValue
    guard hold.key.kind == kind else { return [] }
    if let mark = Self.mark(of: hold.key.address, memory) {
      return symbolizer.frames(for: [RawFrame(pc: mark.taken, cfa: 0, isExact: false)])
    }
    guard all.count(where: { $0.key.kind == kind && $0.site == nil }) == 1 else { return [] }
    for (index, frame) in stack.enumerated().dropLast()
    where !frame.runtime && frame.symbol?.hasPrefix("closure #") ?? false {
      if !stack[index + 1].runtime { return Array(stack[(index + 1)...]) }
    }
    return []
  }

  /// A drop-in Mutex says where it was taken last, in front of the word; nil for any other.
  static func mark(of word: UInt64, _ memory: ProcessMemory) -> hck_futex_mark? {
    var mark = hck_futex_mark()
    let size = MemoryLayout<hck_futex_mark>.size
    let got = withUnsafeMutableBytes(of: &mark) { memory.read(word &- UInt64(size), into: $0) }
    return got == size && mark.created.mark == HCK_CREATION_MARK && mark.taken != 0 ? mark : nil
  }

  func acquisition(_ site: RecordedSite?, live: [RawFrame]) -> [Frame] {
    guard let site else { return [] }
    guard let unwinder else {
      return symbolizer.frames(for: [RawFrame(pc: site.returnAddress, cfa: 0, isExact: false)])
    }
    let unwound = unwinder.unwindSite(
      returnAddress: site.returnAddress, sp: site.stackPointer, rbp: site.framePointer,
      kept: site.copies, live: live)
    return symbolizer.frames(for: unwound.frames)
  }

  /// Where libdispatch keeps it (`dispatch_queue_offsets`).
  func label(ofQueue queue: UInt64) -> String? {
    guard let label = memory.word(queue &+ UInt64(DispatchLayout.label)), label != 0 else {
      return nil
    }
    // The queue may be gone, and its memory another object's.
    return memory.text(label).flatMap { text in
      text.unicodeScalars.contains { $0.value < 32 } ? nil : text
    }
  }

  /// What a thread does: as it was stopped, so that it agrees with its stack, else as the kernel
  /// sees it now.
  private func state(
    _ tid: KernelThreadID, _ captured: CapturedThread?, _ stack: [Frame]
  ) -> Thread.State {
    func state(_ number: Int) -> Thread.State {
      // What goes on after a stop has another number: its function tells.
      guard number == SystemCalls.restart, let symbol = stack.first?.symbol else {
        return Self.state(systemCall: number)
      }
      return symbol.contains("sleep") ? .sleeping : symbol.contains("poll") ? .io : .blocked
    }
    if let captured { return captured.systemCall.map(state) ?? .running }
    switch files.state(tid) {
    case .running: return .running
    case .call(let number, _): return state(number)
    case .blocked, .unknown: return .blocked
    }
  }

  private static func state(systemCall number: Int) -> Thread.State {
    switch number {
    case 35, 230: .sleeping  // nanosleep, clock_nanosleep
    case 202, 219, 61, 247: .blocked  // futex, restart_syscall, wait4, waitid
    case 34, 130, 128: .idle  // pause, rt_sigsuspend, rt_sigtimedwait
    default: .io
    }
  }
}

extension RecordedSite {
  /// What was kept of the stack, as an unwinder takes it.
  fileprivate var copies: [StackCopy] {
    [StackCopy(base: stackPointer, bytes: window)]
      + chain.map { frame in
        let words = [frame.saved, frame.returnAddress]
        return StackCopy(base: frame.address, bytes: words.withUnsafeBytes(Array.init))
      }
  }
}
