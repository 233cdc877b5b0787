// Brings libdispatch into known states and says what they are, one "name value" a line: addresses
// of its objects and ids of threads. What a reader of its memory finds must agree.
import Dispatch
import Foundation

/// The C object inside a Swift wrapper.
func object(_ wrapper: AnyObject) -> UInt {
  UnsafePointer<UInt>(OpaquePointer(Unmanaged.passUnretained(wrapper).toOpaque()))[2]
}
let output = NSLock()
func say(_ name: String, _ value: some BinaryInteger) {
  output.lock()
  print(name, String(value, radix: 10))
  fflush(stdout)
  output.unlock()
}
@_silgen_name("gettid") func gettid() -> Int32
func tid() -> Int { Int(gettid()) }

/// Nobody ever signals it.
let never = DispatchSemaphore(value: 0)
/// Everything that is told to block, once it does.
nonisolated(unsafe) var blocked: [String: Int] = [:]
func announce(_ name: String) {
  say("thread." + name, tid())
  output.lock()
  blocked[name] = tid()
  output.unlock()
}
func block(_ name: String) {
  announce(name)
  never.wait()
}
func sleeps(_ tid: Int) -> Bool {
  let path = "/proc/self/task/\(tid)/syscall"
  guard let file = fopen(path, "r") else { return false }
  defer { fclose(file) }
  var number: Int = -1
  return withUnsafeMutablePointer(to: &number) { pointer in
    withVaList([pointer]) { vfscanf(file, "%ld", $0) } == 1 && pointer.pointee == 202
  }
}
func waitUntilBlocked(_ names: String...) {
  for name in names {
    while true {
      output.lock()
      let tid = blocked[name]
      output.unlock()
      if let tid, sleeps(tid) { break }
      usleep(2000)
    }
  }
}
func thread(_ body: @escaping @Sendable () -> Void) {
  let thread = Thread(block: body)
  thread.start()
  // Kept: a thread that nobody knows may go.
  kept.append(thread)
}
nonisolated(unsafe) var kept: [AnyObject] = []

enum Lazy {
  static let value: Int = {
    block("onceOwner")
    return 1
  }()
}

// A thread inside two nested calls, and what then queues up.
let outer = DispatchQueue(label: "fixture.outer")
let inner = DispatchQueue(label: "fixture.inner")
let captured = DispatchSemaphore(value: 2)
let group = DispatchGroup()
say("queue.outer", object(outer))
say("queue.inner", object(inner))
say("semaphore.captured", object(captured))
say("semaphore.never", object(never))
say("group", object(group))
thread { outer.sync { inner.sync { block("nested") } } }
waitUntilBlocked("nested")
thread {
  announce("syncWaiter")
  outer.sync {}
}
waitUntilBlocked("syncWaiter")
outer.async { captured.signal() }
outer.async(group: group) { print("in the group") }
let item = DispatchWorkItem { captured.wait() }
outer.async(execute: item)
outer.async(flags: .barrier) { print("barrier") }
group.enter()
group.notify(queue: inner) { captured.signal() }
thread {
  announce("groupWaiter")
  group.wait()
}
thread {
  announce("plain")
  never.wait()
}

// A reader in, a barrier behind it, another reader behind that.
let readers = DispatchQueue(label: "fixture.readers", attributes: .concurrent)
say("queue.readers", object(readers))
readers.async { block("reader") }
waitUntilBlocked("reader")
readers.async(flags: .barrier) { print("writer") }
readers.async { print("late reader") }

// A barrier inside.
let written = DispatchQueue(label: "fixture.written", attributes: .concurrent)
say("queue.written", object(written))
thread { written.sync(flags: .barrier) { block("writer") } }
thread {
  waitUntilBlocked("writer")
  announce("lateReader")
  written.sync { print("read") }
}

// Two queues in one.
let parent = DispatchQueue(label: "fixture.parent")
let child = DispatchQueue(label: "fixture.child", target: parent)
let sibling = DispatchQueue(label: "fixture.sibling", target: parent)
say("queue.parent", object(parent))
say("queue.child", object(child))
say("queue.sibling", object(sibling))
sibling.async { block("sibling") }
waitUntilBlocked("sibling")
thread {
  announce("childWaiter")
  child.sync {}
}

let suspended = DispatchQueue(label: "fixture.suspended")
suspended.suspend()
suspended.suspend()
suspended.async {}
suspended.async {}
let inactive = DispatchQueue(label: "fixture.inactive", attributes: .initiallyInactive)
say("queue.suspended", object(suspended))
say("queue.inactive", object(inactive))

DispatchQueue.global(qos: .utility).async { block("worker") }
let operations = OperationQueue()
operations.name = "fixture.operations"
operations.maxConcurrentOperationCount = 1
operations.addOperation { block("operation") }
operations.addOperation { print("second operation") }

thread { print(Lazy.value) }
waitUntilBlocked("onceOwner")
thread {
  announce("onceWaiter")
  print(Lazy.value)
}
thread {
  announce("applyCaller")
  DispatchQueue.concurrentPerform(iterations: 2) { index in
    if tid() == blocked["applyCaller"] {
      // The caller leaves its own at once, when a helper has the other.
      while blocked["applyHelper"] == nil { usleep(1000) }
    } else {
      block("applyHelper")
    }
  }
}

let timed = CommandLine.arguments.contains("timers")
if timed {
  outer.asyncAfter(deadline: .now() + 7200) { captured.signal() }
  inner.asyncAfter(wallDeadline: .now() + 7200) { captured.signal() }
  let source = DispatchSource.makeTimerSource(queue: outer)
  source.schedule(deadline: .now() + 3600, repeating: 60)
  source.setEventHandler { captured.signal() }
  source.activate()
  kept.append(source as AnyObject)
  // More than lie in the first parts of a heap.
  for index in 0..<200 {
    outer.asyncAfter(deadline: .now() + 10000 + Double(index)) { captured.signal() }
  }
}

let cores = ProcessInfo.processInfo.activeProcessorCount
for index in 0..<(cores + 3) { Task.detached { block("task\(index)") } }
while true {
  output.lock()
  let started = blocked.keys.count { $0.hasPrefix("task") }
  output.unlock()
  if started >= cores { break }
  usleep(2000)
}
say("cores", cores)

DispatchQueue.main.async {
  if CommandLine.arguments.contains("dispatchMain") { block("mainItem") }
}
DispatchQueue.main.async { print("second on main") }

waitUntilBlocked(
  "nested", "syncWaiter", "groupWaiter", "plain", "reader", "writer", "lateReader", "sibling",
  "childWaiter", "worker", "operation", "onceOwner", "onceWaiter", "applyCaller", "applyHelper")
if CommandLine.arguments.contains("dispatchMain") {
  thread {
    waitUntilBlocked("mainItem")
    say("ready", 1)
  }
  dispatchMain()
}
announce("main")
say("ready", 1)
never.wait()
