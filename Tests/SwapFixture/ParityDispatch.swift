// Written for DispatchQueue and DispatchGroup: it compiles against the drop-ins (see Swap.swift) and
// says the same, or they have lost something.
import Dispatch
import Foundation

/// Counts from several threads.
final class Count: @unchecked Sendable {
  private let lock = NSLock()
  private var value = 0
  func up() { lock.withLock { value += 1 } }
  var now: Int { lock.withLock { value } }
}

struct Oops: Error, Equatable {}

extension DispatchQueue {
  static let store = DispatchQueue(label: "store", attributes: .concurrent)
  convenience init(purpose: String, attributes: Attributes = []) {
    self.init(label: "test.\(purpose)", qos: .utility, attributes: attributes)
  }
  func twice(_ body: () -> Void) {
    sync(execute: body)
    sync { body() }
  }
}

private protocol Running { func run(_ body: @escaping @Sendable () -> Void) }
extension DispatchQueue: Running {
  func run(_ body: @escaping @Sendable () -> Void) { async(execute: body) }
}

private final class Worker: Sendable {
  let queue: DispatchQueue
  let optional: DispatchQueue?
  init(queue: DispatchQueue = .global(), optional: DispatchQueue? = nil) {
    self.queue = queue
    self.optional = optional
  }
}

/// Checks, with the line of the first that is not so.
struct Checks {
  var wrong: [UInt] = []
  mutating func check(_ isTrue: Bool, line: UInt = #line) { if !isTrue { wrong.append(line) } }
}

func parityOfQueues() -> [UInt] {
  var checks = Checks()
  let count = Count()
  let serial = DispatchQueue(label: "serial")
  let concurrent = DispatchQueue(label: "concurrent", qos: .utility, attributes: [.concurrent])
  let targeted = DispatchQueue(
    label: "targeted", qos: .userInitiated, attributes: .initiallyInactive,
    autoreleaseFrequency: .workItem, target: serial)
  let onMain = DispatchQueue(label: "on main", target: .main)
  let onGlobal = DispatchQueue(label: "on global", target: .global(qos: .background))
  let untargeted = DispatchQueue(label: "none", target: nil)
  _ = (onMain, untargeted)
  targeted.activate()
  checks.check(serial.label == "serial" && concurrent.qos == .utility)
  checks.check(DispatchQueue.main.label == "com.apple.main-thread")
  checks.check(DispatchQueue.global().label == "com.apple.root.default-qos")
  checks.check(DispatchQueue.global(qos: .utility).qos.qosClass == .utility)
  checks.check(DispatchQueue.global(priority: .high).label.contains("user-initiated"))
  checks.check(DispatchQueue(purpose: "some").label == "test.some")

  // sync
  serial.sync { count.up() }
  serial.sync(execute: { count.up() })
  let result: Int = serial.sync { 5 }
  checks.check(result == 5 && serial.sync { count.now } == 2)
  checks.check(concurrent.sync(flags: .barrier) { count.now } == 2)
  checks.check(concurrent.sync(flags: []) { true })
  do {
    try targeted.sync { throw Oops() }
    checks.check(false)
  } catch { checks.check(error is Oops) }
  do {
    let _: Int = try serial.sync(flags: .barrier) { throw Oops() }
    checks.check(false)
  } catch { checks.check(error is Oops) }
  serial.sync(execute: DispatchWorkItem { count.up() })
  serial.twice { count.up() }
  checks.check(count.now == 5)
  serial.sync { targeted.label == "" ? () : concurrent.sync { onGlobal.sync { count.up() } } }
  checks.check(count.now == 6)

  // async
  let group = DispatchGroup()
  let body: @Sendable () -> Void = { count.up() }
  serial.async { count.up() }
  serial.async(execute: body)
  serial.async(execute: DispatchWorkItem(qos: .userInitiated, flags: .enforceQoS) { count.up() })
  serial.async(group: group) { count.up() }
  serial.async(group: nil) { count.up() }
  serial.async(group: group, execute: DispatchWorkItem { count.up() })
  concurrent.async(group: group, qos: .background, flags: [.barrier], execute: body)
  concurrent.async(flags: .barrier) { count.up() }
  concurrent.async(qos: .userInteractive) { count.up() }
  serial.run(body)
  checks.check(group.wait(timeout: .now() + 10) == .success)
  serial.sync {}
  concurrent.sync(flags: .barrier) {}
  checks.check(count.now == 16)

  // Later.
  group.enter()
  group.enter()
  group.enter()
  group.enter()
  serial.asyncAfter(deadline: .now() + .milliseconds(5)) { group.leave() }
  serial.asyncAfter(deadline: .now() + 0.005, qos: .utility, flags: .barrier) { group.leave() }
  serial.asyncAfter(wallDeadline: .now() + 0.005) { group.leave() }
  serial.asyncAfter(deadline: .now(), execute: DispatchWorkItem { group.leave() })
  serial.asyncAfter(wallDeadline: .now(), execute: DispatchWorkItem { count.up() })
  checks.check(group.wait(wallTimeout: .now() + 10) == .success)
  group.enter()
  checks.check(group.wait(timeout: .now() + 0.01) == .timedOut)
  group.leave()
  group.wait()

  // Specifics.
  let key = DispatchSpecificKey<String>()
  serial.setSpecific(key: key, value: "here")
  checks.check(serial.getSpecific(key: key) == "here" && DispatchQueue.getSpecific(key: key) == nil)
  checks.check(serial.sync { DispatchQueue.getSpecific(key: key) } == "here")
  checks.check(targeted.sync { DispatchQueue.getSpecific(key: key) } == "here")
  serial.setSpecific(key: key, value: nil)
  checks.check(serial.getSpecific(key: key) == nil)

  // Suspend, resume, targets.
  serial.suspend()
  serial.suspend()
  let before = count.now
  serial.async { count.up() }
  usleep(10_000)
  checks.check(count.now == before)
  serial.resume()
  serial.resume()
  serial.sync {}
  checks.check(count.now >= before + 1)
  let later = DispatchQueue(label: "later", attributes: [.initiallyInactive, .concurrent])
  later.setTarget(queue: serial)
  later.async { count.up() }
  later.activate()
  later.sync(flags: .barrier) {}

  DispatchQueue.concurrentPerform(iterations: 10) { _ in count.up() }
  let queues: [DispatchQueue] = [serial, .main, .global(), .store, Worker().queue]
  checks.check(queues.count == 5 && Worker(queue: .main, optional: serial).optional === serial)
  let make: (DispatchQueue) -> String = { $0.label }
  let sendable: any Sendable = serial
  _ = sendable
  checks.check(queues.map(make).first == "serial" && queues.map(\.label).last?.isEmpty == false)
  let attributes: DispatchQueue.Attributes = [.concurrent, .initiallyInactive]
  let frequency: DispatchQueue.AutoreleaseFrequency = .never
  let priority: DispatchQueue.GlobalQueuePriority = .default
  checks.check(attributes.contains(.concurrent) && frequency == .never && priority == .default)
  return checks.wrong
}

func parityOfGroups() -> [UInt] {
  var checks = Checks()
  let (group, ended, count) = (DispatchGroup(), DispatchSemaphore(value: 0), Count())
  let queue = DispatchQueue(label: "notified")
  group.enter()
  group.notify(queue: queue) {
    count.up()
    ended.signal()
  }
  group.notify(qos: .userInitiated, flags: [.enforceQoS], queue: .global()) { ended.signal() }
  group.notify(queue: .global(), work: DispatchWorkItem { ended.signal() })
  group.notify(queue: DispatchQueue.global(qos: .utility), execute: { ended.signal() })
  checks.check(group.wait(timeout: .now()) == .timedOut && count.now == 0)
  group.leave()
  for _ in 0..<4 { ended.wait() }
  checks.check(count.now == 1)
  let groups = (0..<3).map { _ in DispatchGroup() }
  for group in groups {
    queue.async(group: group) { count.up() }
    group.notify(queue: .main) { count.up() }
  }
  for group in groups { group.wait() }
  checks.check(count.now == 4)
  let make: () -> DispatchGroup = DispatchGroup.init
  checks.check(make().wait(timeout: .now()) == .success)
  return checks.wrong
}
