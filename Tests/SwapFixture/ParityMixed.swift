// What takes a queue, a group or an operation and has no drop-in of its own.
import Dispatch
import Foundation

/// What another module, which is not swapped, would give and take.
private enum Elsewhere {
  static func queue(_ attributes: Dispatch.DispatchQueue.Attributes = []) -> Dispatch.DispatchQueue
  {
    Dispatch.DispatchQueue(label: "elsewhere", attributes: attributes)
  }
}

func parityOfMixtures() -> [UInt] {
  var checks = Checks()
  let (queue, count, ended) = (DispatchQueue(label: "mixed"), Count(), DispatchSemaphore(value: 0))
  let optional: DispatchQueue? = queue
  let (group, foreign) = (DispatchGroup(), Elsewhere.queue())

  // Sources.
  let timer = DispatchSource.makeTimerSource(queue: queue)
  timer.schedule(deadline: .now(), repeating: .milliseconds(1), leeway: .milliseconds(1))
  timer.setEventHandler {
    dispatchPrecondition(condition: .onQueue(queue))
    ended.signal()
  }
  timer.resume()
  ended.wait()
  timer.cancel()
  let sources: [any DispatchSourceProtocol] = [
    DispatchSource.makeTimerSource(), DispatchSource.makeTimerSource(flags: .strict, queue: .main),
    DispatchSource.makeTimerSource(flags: [], queue: nil),
    DispatchSource.makeTimerSource(flags: .strict, queue: optional),
    DispatchSource.makeReadSource(fileDescriptor: 0, queue: queue),
    DispatchSource.makeWriteSource(fileDescriptor: 1, queue: .global()),
    DispatchSource.makeSignalSource(signal: SIGUSR1, queue: queue),
    DispatchSource.makeUserDataAddSource(queue: queue),
    DispatchSource.makeUserDataOrSource(queue: optional),
    DispatchSource.makeUserDataReplaceSource(),
    DispatchSource.makeTimerSource(queue: foreign),
  ]
  for source in sources {
    source.setEventHandler(handler: nil)
    source.activate()
    source.cancel()
  }

  // Predicates.
  queue.sync {
    dispatchPrecondition(condition: .onQueue(queue))
    dispatchPrecondition(condition: .notOnQueue(.global()))
    dispatchPrecondition(condition: .notOnQueue(foreign))
  }
  queue.sync(flags: .barrier) { dispatchPrecondition(condition: .onQueueAsBarrier(queue)) }
  dispatchPrecondition(condition: .notOnQueue(queue))
  dispatchPrecondition(condition: .notOnQueue(DispatchQueue.global()))

  // Work items.
  let item = DispatchWorkItem(qos: .utility, flags: [.inheritQoS]) { count.up() }
  item.notify(queue: queue) { ended.signal() }
  item.notify(queue: .global(), execute: DispatchWorkItem { ended.signal() })
  item.notify(qos: .default, flags: .noQoS, queue: queue, execute: { ended.signal() })
  queue.async(execute: item)
  item.wait()
  for _ in 0..<3 { ended.wait() }
  let other = DispatchWorkItem { count.up() }
  other.perform()
  other.cancel()
  queue.async(execute: other)
  queue.sync {}
  checks.check(count.now == 2 && other.isCancelled)
  let third = DispatchWorkItem {}
  queue.async(group: group, execute: third)
  checks.check(third.wait(timeout: .now() + 10) == .success)

  // Data and channels.
  let bytes = DispatchData(
    bytesNoCopy: UnsafeRawBufferPointer(start: nil, count: 0), deallocator: .custom(queue, {}))
  checks.check(bytes.isEmpty)
  let pipe = Pipe()
  let channel = DispatchIO(
    type: .stream, fileDescriptor: pipe.fileHandleForReading.fileDescriptor, queue: queue
  ) { _ in ended.signal() }
  channel.setLimit(lowWater: 1)
  channel.read(offset: 0, length: 3, queue: queue) { isDone, data, _ in
    if data?.isEmpty == false { count.up() }
    if isDone { ended.signal() }
  }
  DispatchIO.write(
    toFileDescriptor: pipe.fileHandleForWriting.fileDescriptor,
    data: "abc".withUTF8Bytes { DispatchData(bytes: $0) }, runningHandlerOn: queue
  ) { _, _ in ended.signal() }
  ended.wait()
  ended.wait()
  channel.close()
  ended.wait()
  checks.check(count.now == 3)
  let again = DispatchIO(type: .stream, io: channel, queue: .global()) { _ in }
  again.close(flags: .stop)

  // Both kinds of queue.
  foreign.async(group: group) { count.up() }
  let target = DispatchQueue(label: "upon", target: foreign)
  let (moved, movedForeign) = (
    DispatchQueue(label: "moved", attributes: .initiallyInactive),
    Elsewhere.queue(.initiallyInactive)
  )
  moved.setTarget(queue: foreign)
  movedForeign.setTarget(queue: queue)
  moved.activate()
  movedForeign.activate()
  target.async(group: group) { count.up() }
  group.notify(queue: foreign) { ended.signal() }
  group.wait()
  ended.wait()
  checks.check(count.now == 5)
  let raw = Dispatch.DispatchGroup()
  queue.async(group: raw) { count.up() }
  queue.async(group: raw, execute: DispatchWorkItem { count.up() })
  raw.notify(queue: queue) { ended.signal() }
  raw.notify(queue: .global()) { ended.signal() }
  ended.wait()
  ended.wait()
  checks.check(count.now == 7)

  // Foundation.
  let operations = OperationQueue()
  operations.underlyingQueue = queue
  operations.addOperation {
    dispatchPrecondition(condition: .onQueue(queue))
    count.up()
  }
  operations.waitUntilAllOperationsAreFinished()
  checks.check(count.now == 8)
  let underlying: DispatchQueue? = operations.underlyingQueue
  checks.check(underlying?.label == "mixed")
  operations.underlyingQueue?.sync {}
  operations.underlyingQueue = nil
  operations.underlyingQueue = .global()
  let observer = NotificationCenter.default.addObserver(
    forName: Notification.Name("test"), object: nil, queue: operations
  ) { _ in count.up() }
  NotificationCenter.default.post(name: Notification.Name("test"), object: nil)
  NotificationCenter.default.removeObserver(observer)
  let onMain = NotificationCenter.default.addObserver(
    forName: Notification.Name("test"), object: nil, queue: OperationQueue.main
  ) { _ in count.up() }
  NotificationCenter.default.post(name: Notification.Name("test"), object: nil)
  NotificationCenter.default.removeObserver(onMain)
  checks.check(count.now == 10)
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/bin/true")
  process.terminationHandler = { _ in queue.async { ended.signal() } }
  do { try process.run() } catch { checks.check(false) }
  ended.wait()
  let tick = Timer(timeInterval: 0.001, repeats: false) { _ in count.up() }
  RunLoop.current.add(tick, forMode: .default)
  RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.05))
  checks.check(count.now == 11)
  return checks.wrong
}

extension String {
  fileprivate func withUTF8Bytes<T>(_ body: (UnsafeRawBufferPointer) -> T) -> T {
    var copy = self
    return copy.withUTF8 { body(UnsafeRawBufferPointer($0)) }
  }
}
