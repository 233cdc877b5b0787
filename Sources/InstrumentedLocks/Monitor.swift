#if Detection
  internal import CHangcheck
  internal import Foundation
  internal import Recorder

  /// The recursive lock of an object that is synchronized on.
  final class Monitor: @unchecked Sendable {
    private let memory: UnsafeMutablePointer<hck_marked_mutex>
    private let mutex: RecordedMutex

    init() {
      InProcess.begin()
      memory = .allocate(capacity: 1)
      memory.initialize(to: hck_marked_mutex())
      mutex = RecordedMutex(
        pointer: UnsafeMutableRawPointer(memory).assumingMemoryBound(to: pthread_mutex_t.self))
      var attributes = pthread_mutexattr_t()
      pthread_mutexattr_init(&attributes)
      pthread_mutexattr_settype(&attributes, CInt(PTHREAD_MUTEX_RECURSIVE))
      pthread_mutex_init(mutex.pointer, &attributes)
      pthread_mutexattr_destroy(&attributes)
    }

    deinit {
      mutex.end(hck_frame())
      memory.pointee.created.mark = 0
      memory.deinitialize(count: 1)
      memory.deallocate()
    }

    /// Nobody holds it or waits for it.
    func beginUse(_ fileID: StaticString, _ line: UInt) {
      memory.pointee.created = hck_creation(fileID, line)
    }

    @inline(__always) func lock(_ frame: UnsafeRawPointer) { mutex.lock(frame) }
    @inline(__always) func unlock(_ frame: UnsafeRawPointer) { mutex.unlock(isOwned: true, frame) }

    @inline(never) func identityChanged(_ frame: UnsafeRawPointer) {
      InProcess.raise(HCK_ALARM_IDENTITY_CHANGED, mutex.word, frame)
    }
  }
#endif
