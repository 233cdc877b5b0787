#if Detection
  internal import CHangcheck
  internal import Recorder
  public import Synchronization

  /// What lies right before the futex word of an `InstrumentedMutex`; its last 32 bytes are a
  /// `hck_futex_mark`.
  @usableFromInline struct MutexMark: ~Copyable {
    private let name: String?
    /// Whether the name is known to whoever reports; the address is, once somebody has waited
    /// or its holds go on record.
    private let isNamed = Atomic<Bool>(false)
    /// Whether the hold is on record, for the calls that lock and unlock apart.
    private let isHoldRecorded = Atomic<Bool>(false)
    @usableFromInline let taken = Atomic<UInt64>(0)
    private let created: hck_creation

    @usableFromInline init(_ name: String?, _ fileID: StaticString, _ line: UInt) {
      InProcess.begin()
      self.name = name
      created = hck_creation(fileID, line)
    }

    func tellName(_ address: UnsafeRawPointer) {
      guard let name, !isNamed.load(ordering: .relaxed),
        !isNamed.exchange(true, ordering: .relaxed)
      else { return }
      InProcess.name(UInt64(UInt(bitPattern: address)), name)
    }

    func end(_ address: UnsafeRawPointer) {
      if isNamed.load(ordering: .relaxed) {
        InProcess.name(UInt64(UInt(bitPattern: address)), nil)
      }
    }

    func setHoldRecorded(_ value: Bool) { isHoldRecorded.store(value, ordering: .relaxed) }

    func takeHoldRecorded() -> Bool {
      guard isHoldRecorded.load(ordering: .relaxed) else { return false }
      isHoldRecorded.store(false, ordering: .relaxed)
      return true
    }
  }
#endif
