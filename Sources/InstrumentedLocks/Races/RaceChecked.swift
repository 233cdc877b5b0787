#if Detection
  public import CHangcheck

  /// A value whose data races `Watchdog` and `hangcheck` tell: two accesses by different threads, one
  /// of them a write, that nothing orders.
  ///
  /// As a wrapper, for stored properties of classes and for global variables, or as a box:
  ///
  ///     final class Statistics: @unchecked Sendable {
  ///       @RaceChecked var hits = 0
  ///     }
  ///     let total = RaceChecked(0, name: "total")
  ///     total.value += 1
  ///
  /// Accesses are compared by what the drop-ins of this library order: locks, read-write locks,
  /// conditions, semaphores, queues, groups, once, operations and `InstrumentedThread`. A race is
  /// found although the two accesses did not meet in time, and told once for each pair of places.
  /// A report has both of them, with what their threads held, and the lock that is held at most of
  /// the other accesses. `value += 1` is a read and a write.
  ///
  /// It is a reference: a copy of a structure that has one shares it. Any thread may use it, as it
  /// could use the plain variable: it adds no protection, and memory that is not safe to race on
  /// (strings, arrays, references) is no safer here.
  ///
  /// Costs some nanoseconds an access that repeats what its thread did since it last gave a lock
  /// back, some fifty others, about 1 300 bytes a value; from the first one on, some fifty
  /// nanoseconds for each use of a drop-in. Not for signal handlers.
  ///
  /// Cannot see an order that anything else makes: an atomic, a plain lock, a pipe. What only such
  /// orders is reported, unless `HappensBefore` says it. Where the order is not known for other
  /// reasons it is taken for granted: accesses in Swift tasks and actors, in blocks of libdispatch
  /// that no drop-in has submitted, before a plain thread's first step, and after its end. A forked
  /// child checks nothing.
  ///
  /// Epochs and adaptive clocks are those of FastTrack (Flanagan and Freund, PLDI 2009).
  // Unchecked: what is wrong with sharing it is what it is there to find.
  @propertyWrapper
  public final class RaceChecked<Value>: @unchecked Sendable {
    @usableFromInline final let shadow: UnsafeMutablePointer<hck_shadow>
    // Not a stored property: of a class's, Swift checks on each access that the thread does not change
    // it just then, which costs as much as all that is done here. `_raceModify` sees to that.
    @usableFromInline final let storage: UnsafeMutablePointer<Value>

    /// What `@RaceChecked var x = 0` calls. Reports call the value `name` or, without one, by the
    /// place where it was made. 95 bytes of the name are kept.
    public init(
      wrappedValue: Value, name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line
    ) {
      shadow = RaceShadow.make(name: name, fileID: fileID, line: line)
      storage = .allocate(capacity: 1)
      storage.initialize(to: wrappedValue)
    }

    /// A box.
    public init(
      _ value: Value, name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line
    ) {
      shadow = RaceShadow.make(name: name, fileID: fileID, line: line)
      storage = .allocate(capacity: 1)
      storage.initialize(to: value)
    }

    deinit {
      storage.deinitialize(count: 1)
      storage.deallocate()
      RaceShadow(pointer: shadow).end()
    }

    /// The value; each access is checked.
    public var value: Value {
      @inlinable @inline(__always) get {
        _raceRead(shadow)
        return storage.pointee
      }
      @inlinable @inline(__always) set {
        _raceWrite(shadow)
        storage.pointee = newValue
      }
      @inlinable @inline(__always) _modify {
        _raceModify(shadow)
        defer { hck_end_modifying(shadow) }
        yield &storage.pointee
      }
    }

    /// The same. Not by way of the other: in code that is not optimised each is a frame, and few are
    /// kept.
    public var wrappedValue: Value {
      @inlinable @inline(__always) get {
        _raceRead(shadow)
        return storage.pointee
      }
      @inlinable @inline(__always) set {
        _raceWrite(shadow)
        storage.pointee = newValue
      }
      @inlinable @inline(__always) _modify {
        _raceModify(shadow)
        defer { hck_end_modifying(shadow) }
        yield &storage.pointee
      }
    }

    /// The box behind a wrapped property: `$hits.value`.
    public var projectedValue: RaceChecked<Value> { self }

    /// How many races were found on this value.
    var races: Int { Int(shadow.pointee.races) }
  }

  // Not expanded in the program: a thread-local of this library's lies below. What they tell the
  // optimiser is that the box outlives them.

  @usableFromInline @inline(never) @_effects(releasenone)
  func _raceRead(_ shadow: UnsafeMutablePointer<hck_shadow>) {
    if hck_reads_again(shadow) == 0 {
      RaceShadow(pointer: shadow).access(isWrite: false, hck_frame())
    }
  }

  @usableFromInline @inline(never) @_effects(releasenone)
  func _raceWrite(_ shadow: UnsafeMutablePointer<hck_shadow>) {
    if hck_writes_again(shadow) == 0 {
      RaceShadow(pointer: shadow).access(isWrite: true, hck_frame())
    }
  }

  @usableFromInline @inline(never) @_effects(releasenone)
  func _raceModify(_ shadow: UnsafeMutablePointer<hck_shadow>) {
    if hck_writes_again(shadow) == 0 {
      let frame = hck_frame()
      RaceShadow(pointer: shadow).access(isWrite: false, frame)
      RaceShadow(pointer: shadow).access(isWrite: true, frame)
    }
    hck_begin_modifying(shadow)
  }
#endif
