#if Detection
  internal import CHangcheck
  internal import Dispatch
  internal import Recorder

  /// libdispatch's own objects behind the classes of the module Dispatch: they are what the
  /// recorder and its readers know.
  enum DispatchObjects {
    typealias Object = UnsafeMutableRawPointer

    /// Whether they lie where this was written for. Where they do not, nothing about queues and
    /// groups is recorded, and every call goes its usual way.
    static let areKnown: Bool = {
      InProcess.begin()
      guard hck_linked_queues_known() != 0,
        pointer(in: Dispatch.DispatchQueue.main).map({ UnsafeRawPointer($0) }) == hck_main_queue()
      else { return false }
      let group = Dispatch.DispatchGroup()
      guard let object = pointer(in: group), hck_group_count(object) == 0 else { return false }
      group.enter()
      defer { group.leave() }
      return hck_group_count(object) == 1 && hck_do_outer_references(object) == 0
    }()

    /// The object behind `wrapper`, unless it is not known where that lies.
    static func object(behind wrapper: DispatchObject) -> Object? {
      areKnown ? pointer(in: wrapper) : nil
    }

    // The overlay's classes have one stored property, right behind the header of a Swift object.
    private static func pointer(in wrapper: DispatchObject) -> Object? {
      Unmanaged.passUnretained(wrapper).toOpaque().load(fromByteOffset: 16, as: Object?.self)
    }

    /// The object's resource word; 0 where nothing is recorded.
    static func word(_ object: Object?, _ kind: hck_kind) -> ResourceWord {
      object.map { resourceWord($0, kind) } ?? 0
    }
  }

  /// Where an object was made, kept where whoever reads its memory finds it: libdispatch's context
  /// pointer, which Swift programs have no other use for.
  struct CreationMark {
    private let memory: UnsafeMutablePointer<hck_creation>?

    init(_ object: DispatchObjects.Object?, fileID: StaticString, line: UInt) {
      guard let object, fileID.hasPointerRepresentation, hck_dispatch_get_context(object) == nil
      else {
        memory = nil
        return
      }
      let memory = UnsafeMutablePointer<hck_creation>.allocate(capacity: 1)
      memory.initialize(to: hck_creation(fileID: fileID, line: line))
      hck_dispatch_set_context(object, memory)
      self.memory = memory
    }

    /// The object may outlive the drop-in.
    func end(_ object: DispatchObjects.Object?) {
      guard let object, let memory else { return }
      if hck_dispatch_get_context(object) == UnsafeMutableRawPointer(memory) {
        hck_dispatch_set_context(object, nil)
      }
      memory.pointee.mark = 0
      memory.deallocate()
    }
  }

  extension hck_creation {
    init(fileID: StaticString, line: UInt) {
      self.init()
      file = fileID.hasPointerRepresentation ? fileID.utf8Start : nil
      file_bytes =
        fileID.hasPointerRepresentation ? UInt32(truncatingIfNeeded: fileID.utf8CodeUnitCount) : 0
      self.line = UInt32(truncatingIfNeeded: line)
      mark = HCK_CREATION_MARK
    }
  }

  /// The slot to record in; nil where this thread, this process or this object is not recorded.
  @inline(__always) func recordingSlot(_ word: ResourceWord) -> Slot? {
    word == 0 ? nil : currentSlot()
  }

  /// Says that the thread waits for `word` in a call that has `frame`.
  @inline(__always) func beginWait(
    _ slot: Slot, _ word: ResourceWord, in frame: UnsafeRawPointer
  ) -> ResourceWord {
    slot.pointee.wait_frame = UInt64(UInt(bitPattern: frame))
    return beginWait(slot, word)
  }
#endif
