internal import HangReport
internal import WaitForGraph

/// Makes a report's threads, resources and findings from looks and copied stacks of one process.
///
/// Names and lines cost most, and only a report needs them. Confined to one thread; made anew for each report, since the
/// process may have loaded libraries meanwhile.
struct ReportAssembler {
  let files: ProcessFiles
  let arena: Arena
  private let memory: ProcessMemory
  private let symbolizer: Symbolizer
  private let unwinder: Unwinder?
  /// What could not be known, one sentence each.
  private(set) var limits: [String] = []
  private var cache: [RawFrame: [Frame]] = [:]

  /// `isRoot`: the process that was started, whose threads carry no pid in the report.
  let isRoot: Bool

  init(files: ProcessFiles, memory: ProcessMemory, arena: Arena, isRoot: Bool) {
    self.files = files
    self.arena = arena
    self.memory = memory
    self.isRoot = isRoot
    let images = ImageMap(files.mappings(), pid: files.pid.rawValue, memory: memory)
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

  mutating func threads(
    _ look: Look, stacks: [KernelThreadID: CapturedThread]
  ) -> [Thread] {
    look.snapshot.threads.map { seen in
      let kernel = look.thread(seen.id)
      var live: Unwound?
      if seen.isAlive, let captured = stacks[kernel.tid] {
        live = unwinder?.unwind(captured.registers, stack: [captured.stack])
      }
      let stack = live.map { frames($0.frames) } ?? []
      let holds = seen.holds.map { hold in
        let site = kernel.record?.holds.last { $0.key == look.resource(hold.resource) }?.site
        return Thread.Hold(
          resource: hold.resource, mode: hold.mode, seconds: hold.seconds,
          stack: acquisition(site, live: live?.frames ?? []))
      }
      let wait = seen.wait.map {
        Thread.Wait(resource: $0.resource, mode: $0.mode, seconds: $0.seconds, stack: stack)
      }
      return Thread(
        id: seen.id, tid: kernel.tid.rawValue, pid: isRoot ? nil : files.pid.rawValue,
        name: seen.isAlive ? files.name(kernel.tid) : kernel.record?.name ?? "",
        state: seen.isAlive ? state(kernel.tid, waits: seen.wait != nil) : .idle, waitsFor: wait,
        holds: holds, stack: stack)
    }
  }

  func resources(_ look: Look) -> [Resource] {
    look.snapshot.resources.compactMap { described in
      let key = look.resource(described.id)
      let owners = look.snapshot.threads.filter { thread in
        thread.id == described.thread || thread.holds.contains { $0.resource == described.id }
      }
      let waiters = look.snapshot.threads.filter { $0.wait?.resource == described.id }
      if owners.isEmpty && waiters.isEmpty { return nil }
      return Resource(
        id: described.id, kind: described.kind, name: name(key),
        address: Address(key.address), owners: owners.map(\.id), waiters: waiters.map(\.id))
    }
  }

  /// As the program named it, or else where it was made.
  private func name(_ key: ResourceKey) -> String? {
    arena.name(of: key.address) ?? CreationSite(ofMutex: key, memory)?.description
  }

  private mutating func acquisition(_ site: RecordedSite?, live: [RawFrame]) -> [Frame] {
    guard let site else { return [] }
    guard let unwinder else {
      return frames([RawFrame(pc: site.returnAddress, cfa: 0, isExact: false)])
    }
    let unwound = unwinder.unwindSite(
      returnAddress: site.returnAddress, sp: site.stackPointer, rbp: site.framePointer,
      window: StackCopy(base: site.stackPointer, bytes: site.window), live: live)
    return frames(unwound.frames)
  }

  private mutating func frames(_ raw: [RawFrame]) -> [Frame] {
    var result: [Frame] = []
    for frame in raw {
      // The same code is on many stacks; only its frame address differs.
      let key = RawFrame(pc: frame.pc, cfa: 0, isExact: frame.isExact)
      if let known = cache[key] {
        result += known
      } else {
        let made = symbolizer.frames(for: frame)
        cache[key] = made
        result += made
      }
    }
    return result
  }

  private func state(_ tid: KernelThreadID, waits: Bool) -> Thread.State {
    if waits { return .blocked }
    switch files.state(tid) {
    case .running: return .running
    case .call(let number, _):
      switch number {
      case 35, 230: return .sleeping  // nanosleep, clock_nanosleep
      case 202, 61, 247: return .blocked  // futex, wait4, waitid
      case 34, 130, 128: return .idle  // pause, rt_sigsuspend, rt_sigtimedwait
      default: return .io
      }
    case .blocked, .unknown: return .blocked
    }
  }
}
