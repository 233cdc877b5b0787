#if Detection
  public import Dispatch
  internal import Glibc

  extension DispatchSource {
    /// Equals `makeReadSource` with the original queue.
    @_disfavoredOverload public class func makeReadSource(
      fileDescriptor: Int32, queue: InstrumentedQueue?
    ) -> any DispatchSourceRead {
      makeReadSource(fileDescriptor: fileDescriptor, queue: queue?.original)
    }

    /// Equals `makeWriteSource` with the original queue.
    @_disfavoredOverload public class func makeWriteSource(
      fileDescriptor: Int32, queue: InstrumentedQueue?
    ) -> any DispatchSourceWrite {
      makeWriteSource(fileDescriptor: fileDescriptor, queue: queue?.original)
    }

    /// Equals `makeSignalSource` with the original queue.
    @_disfavoredOverload public class func makeSignalSource(
      signal: Int32, queue: InstrumentedQueue?
    ) -> any DispatchSourceSignal {
      makeSignalSource(signal: signal, queue: queue?.original)
    }

    /// Equals `makeTimerSource` with the original queue.
    @_disfavoredOverload public class func makeTimerSource(
      flags: DispatchSource.TimerFlags = [], queue: InstrumentedQueue?
    ) -> any DispatchSourceTimer {
      makeTimerSource(flags: flags, queue: queue?.original)
    }

    /// Equals `makeUserDataAddSource` with the original queue.
    @_disfavoredOverload public class func makeUserDataAddSource(queue: InstrumentedQueue?)
      -> any DispatchSourceUserDataAdd
    {
      makeUserDataAddSource(queue: queue?.original)
    }

    /// Equals `makeUserDataOrSource` with the original queue.
    @_disfavoredOverload public class func makeUserDataOrSource(queue: InstrumentedQueue?)
      -> any DispatchSourceUserDataOr
    {
      makeUserDataOrSource(queue: queue?.original)
    }

    /// Equals `makeUserDataReplaceSource` with the original queue.
    @_disfavoredOverload public class func makeUserDataReplaceSource(queue: InstrumentedQueue?)
      -> any DispatchSourceUserDataReplace
    {
      makeUserDataReplaceSource(queue: queue?.original)
    }
  }

  extension DispatchIO {
    /// Equals `read(fromFileDescriptor:maxLength:runningHandlerOn:handler:)` with the original queue.
    @_disfavoredOverload public class func read(
      fromFileDescriptor: Int32, maxLength: Int, runningHandlerOn queue: InstrumentedQueue,
      handler: @escaping (_ data: DispatchData, _ error: Int32) -> Void
    ) {
      read(
        fromFileDescriptor: fromFileDescriptor, maxLength: maxLength,
        runningHandlerOn: queue.original, handler: handler)
    }

    /// Equals `write(toFileDescriptor:data:runningHandlerOn:handler:)` with the original queue.
    @_disfavoredOverload public class func write(
      toFileDescriptor: Int32, data: DispatchData, runningHandlerOn queue: InstrumentedQueue,
      handler: @escaping (_ data: DispatchData?, _ error: Int32) -> Void
    ) {
      write(
        toFileDescriptor: toFileDescriptor, data: data, runningHandlerOn: queue.original,
        handler: handler)
    }

    /// Equals `init(type:fileDescriptor:queue:cleanupHandler:)` with the original queue.
    @_disfavoredOverload public convenience init(
      type: StreamType, fileDescriptor: Int32, queue: InstrumentedQueue,
      cleanupHandler: @escaping (_ error: Int32) -> Void
    ) {
      self.init(
        type: type, fileDescriptor: fileDescriptor, queue: queue.original,
        cleanupHandler: cleanupHandler)
    }

    /// Equals `init(type:path:oflag:mode:queue:cleanupHandler:)` with the original queue.
    @_disfavoredOverload public convenience init?(
      type: StreamType, path: UnsafePointer<Int8>, oflag: Int32, mode: mode_t,
      queue: InstrumentedQueue, cleanupHandler: @escaping (_ error: Int32) -> Void
    ) {
      self.init(
        type: type, path: path, oflag: oflag, mode: mode, queue: queue.original,
        cleanupHandler: cleanupHandler)
    }

    /// Equals `init(type:io:queue:cleanupHandler:)` with the original queue.
    @_disfavoredOverload public convenience init(
      type: StreamType, io: DispatchIO, queue: InstrumentedQueue,
      cleanupHandler: @escaping (_ error: Int32) -> Void
    ) {
      self.init(type: type, io: io, queue: queue.original, cleanupHandler: cleanupHandler)
    }

    /// Equals `read(offset:length:queue:ioHandler:)` with the original queue.
    @_disfavoredOverload public func read(
      offset: off_t, length: Int, queue: InstrumentedQueue,
      ioHandler: @escaping (_ done: Bool, _ data: DispatchData?, _ error: Int32) -> Void
    ) {
      read(offset: offset, length: length, queue: queue.original, ioHandler: ioHandler)
    }

    /// Equals `write(offset:data:queue:ioHandler:)` with the original queue.
    @_disfavoredOverload public func write(
      offset: off_t, data: DispatchData, queue: InstrumentedQueue,
      ioHandler: @escaping (_ done: Bool, _ data: DispatchData?, _ error: Int32) -> Void
    ) {
      write(offset: offset, data: data, queue: queue.original, ioHandler: ioHandler)
    }
  }
#endif
