#if Detection
  internal import CHangcheck
  internal import Foundation
  internal import Recorder

  typealias MutexPointer = UnsafeMutablePointer<pthread_mutex_t>

  /// The memory of a lock: a pthread mutex like the original's, and behind it where it was made.
  ///
  /// A plain value beside the class that owns it; `end` gives the memory back.
  struct LockCore {
    private let memory: UnsafeMutablePointer<hck_marked_mutex>
    let mutex: MutexPointer
    var word: ResourceWord { resourceWord(mutex, HCK_MUTEX) }

    init(isRecursive: Bool, fileID: StaticString, line: UInt) {
      InProcess.begin()
      memory = .allocate(capacity: 1)
      memory.initialize(to: hck_marked_mutex())
      // The first member: the two have one address.
      mutex = UnsafeMutableRawPointer(memory).assumingMemoryBound(to: pthread_mutex_t.self)
      if isRecursive {
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        pthread_mutexattr_settype(&attributes, CInt(PTHREAD_MUTEX_RECURSIVE))
        pthread_mutex_init(mutex, &attributes)
        pthread_mutexattr_destroy(&attributes)
      } else {
        pthread_mutex_init(mutex, nil)
      }
      memory.pointee.created = hck_creation(fileID, line)
    }

    func end(wasNamed: Bool, _ frame: UnsafeRawPointer) {
      RecordedMutex(pointer: mutex).end(frame)
      if wasNamed { setName(nil) }
      memory.pointee.created.mark = 0
      memory.deinitialize(count: 1)
      memory.deallocate()
    }

    func setName(_ name: String?) { InProcess.name(UInt64(UInt(bitPattern: mutex)), name) }

    /// When a wait until `limit` ends, or nil when that is past; counts and traps as the original
    /// does.
    static func time(until limit: Date) -> timespec? {
      guard limit.timeIntervalSinceNow > 0 else { return nil }
      let nanoseconds = Int64(limit.timeIntervalSince1970 * 1e9)
      return timespec(
        tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    }
  }
#endif
