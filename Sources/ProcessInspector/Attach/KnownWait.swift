internal import CHangcheck
internal import WaitForGraph

/// What a thread waits for that has nothing on record: told by the functions on its stack and by the
/// word that it sleeps on.
struct KnownWait {
  /// The word that the kernel has to see it blocked on; nil while it spins.
  var futex: UInt64?
  var wait: RecordedWait
  /// It asks for a one-time initialisation again and again, since the kernel refuses to let it wait: it
  /// would wait for itself, if only over others.
  var spins = false
  /// A signal or a tracer had stopped it in its wait, to which it comes back.
  var isStopped = false

  /// Whether the thread still stands there.
  func fits(_ standing: ThreadStanding) -> Bool {
    switch standing.kind {
    case .blocked(let address, _): address == futex
    case .running: spins
    case .outside: isStopped
    default: false
    }
  }

  func enters(_ key: ResourceKey) -> Bool { spins && wait.key == key }
}

extension LookBuilder {
  /// Who runs a one-time initialisation has it on record; without a record its word names the runner.
  mutating func addKnownHolds() {
    guard !knownWaits.isEmpty else { return }
    for index in threads.indices where threads[index].isAlive && threads[index].kind == .thread {
      guard let wait = waits[index], wait.key.kind == HCK_ONCE.rawValue else { continue }
      let word = memory.word(wait.key.address) ?? 0
      let half = UInt32(truncatingIfNeeded: word)
      let id = (half == 0 ? UInt32(truncatingIfNeeded: word >> 32) : half) & 0x3fff_ffff
      let runner = known(KernelThreadID(Int32(truncatingIfNeeded: id)))
      guard id != 0, let at = threads.firstIndex(where: { $0.isAlive && $0.tid == runner }),
        !holds[at].contains(where: { $0.key == wait.key })
      else { continue }
      holds[at].append(RecordedHold(key: wait.key, isShared: false, since: 0, site: nil))
    }
    settleReaders()
  }

  /// Readers are a number in a lock's memory and nothing else: whoever they are, they have to give way.
  private mutating func settleReaders() {
    for wait in waits {
      guard let key = wait?.key, key.kind == HCK_RWLOCK.rawValue,
        let lock = ReadWriteLockMemory(memory, key.address), lock.writer == nil, lock.readers > 0
      else { continue }
      let recorded = holds.joined().count { $0.key == key && $0.isShared }
      if recorded < lock.readers { isOpen[key] = true }
    }
  }
}
