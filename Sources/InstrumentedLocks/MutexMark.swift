#if Detection
  internal import CHangcheck
  internal import Recorder
  public import Synchronization

  /// What lies right before the futex word of an `InstrumentedMutex`; its last 32 bytes are a
  /// `hck_futex_mark`.
  @usableFromInline struct MutexMark: ~Copyable {
    private let name: String?
    /// The address under which the recorder knows the mutex, 0 for none: a `deinit` may find it
    /// moved. The lowest bit: the hold is on record, for the calls that lock and unlock apart.
    private let known = Atomic<UInt64>(0)
    @usableFromInline let taken = Atomic<UInt64>(0)
    private let created: hck_creation

    @usableFromInline init(_ name: String?, _ fileID: StaticString, _ line: UInt) {
      InProcess.begin()
      self.name = name
      created = hck_creation(fileID, line)
    }

    /// Somebody waits for the mutex at that address, or its hold goes on record.
    @inline(__always) func tell(_ address: UnsafeRawPointer) {
      let address = UInt64(UInt(bitPattern: address))
      if known.load(ordering: .relaxed) & ~1 != address { tellNow(address) }
    }

    @inline(never) private func tellNow(_ address: UInt64) {
      let before = known.load(ordering: .relaxed)
      guard before & ~1 != address,
        // Whoever waits may tell it together with others.
        known.compareExchange(
          expected: before, desired: address | before & 1, ordering: .relaxed
        ).exchanged
      else { return }
      forget(before & ~1)
      if let name { InProcess.name(address, name) }
    }

    func end() { forget(known.load(ordering: .relaxed) & ~1) }

    private func forget(_ address: UInt64) {
      guard address != 0 else { return }
      if name != nil { InProcess.name(address, nil) }
      RaceOrder.ends(address)
      if hck_tells_agent() != 0, let pointer = UnsafeRawPointer(bitPattern: UInt(address)) {
        InProcess.agentEnds(resourceWord(pointer, HCK_FUTEX_LOCK))
      }
    }

    func setHoldRecorded(_ value: Bool) {
      if value {
        known.bitwiseOr(1, ordering: .relaxed)
      } else {
        known.bitwiseAnd(~1, ordering: .relaxed)
      }
    }

    func takeHoldRecorded() -> Bool {
      guard known.load(ordering: .relaxed) & 1 != 0 else { return false }
      known.bitwiseAnd(~1, ordering: .relaxed)
      return true
    }
  }
#endif
