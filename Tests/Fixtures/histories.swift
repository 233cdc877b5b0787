// WITH(support.swift)
// The main thread waits for what nobody can give it any more, in programs that have done something
// before; what that left behind must not look as if it could still act. The first argument says what.
import Foundation

@main enum Histories {
  static func main() {
    play([
      "child": child, "child-output": childOutput, "child-handler": childHandler, "slept": slept,
      "fired": fired, "fired-here": firedHere, "read-here": readHere, "run-loop": runLoop,
      "loop-thread": loopThread, "channel": channel, "right-child": rightChild,
      "right-hang-up": rightHangUp,
    ])
  }
}

let semaphore = DispatchSemaphore(value: 0)

func waitInVain() {
  semaphore.wait()  // WAITS(main)
}

/// What waits behind the main thread, which would have to look for it.
func stuck() {
  DispatchQueue.main.async { semaphore.signal() }
  waitInVain()
}

// MARK: children

func shell(_ command: String) -> Process {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/bin/sh")
  process.arguments = ["-c", command]
  return process
}

/// Foundation keeps a thread for its sockets and one with a run loop.
func child() {
  let process = shell("exit 0")
  try? process.run()
  process.waitUntilExit()
  stuck()
}

func childOutput() {
  let process = shell("echo three words here")
  let pipe = Pipe()
  process.standardOutput = pipe
  try? process.run()
  print(pipe.fileHandleForReading.readDataToEndOfFile().count)
  process.waitUntilExit()
  stuck()
}

/// Its handler says so on the main queue, for which the main thread does not look.
func childHandler() {
  let process = shell("exit 0")
  process.terminationHandler = { _ in DispatchQueue.main.async { semaphore.signal() } }
  try? process.run()
  waitInVain()
}

/// The second child lives for some seconds after the first.
func rightChild() {
  let first = shell("exit 0")
  try? first.run()
  first.waitUntilExit()
  let second = shell("sleep 3")
  second.terminationHandler = { _ in semaphore.signal() }
  try? second.run()
  semaphore.wait()
}

// MARK: timers

func slept() {
  let isRested = Flag()
  Task.detached {
    try? await Task.sleep(nanoseconds: 50_000_000)
    isRested.set()
  }
  isRested.poll()
  stuck()
}

func fired() {
  let isDue = Flag()
  DispatchQueue.global().asyncAfter(deadline: .now() + 0.05) { isDue.set() }
  isDue.poll()
  stuck()
}

/// The timer's own queue is the one that the main thread is on.
func firedHere() {
  let queue = DispatchQueue(label: "clock")
  queue.sync {
    queue.asyncAfter(deadline: .now() + 0.1) { semaphore.signal() }
    waitInVain()
  }
}

// MARK: descriptors

/// Something has come, and its handler waits for the queue that the main thread is on.
func readHere() {
  let queue = DispatchQueue(label: "inbox")
  let pipe = Pipe()
  let reader = DispatchSource.makeReadSource(
    fileDescriptor: pipe.fileHandleForReading.fileDescriptor, queue: queue)
  reader.setEventHandler { semaphore.signal() }
  reader.resume()
  queue.sync {
    pipe.fileHandleForWriting.write(Data([1]))
    waitInVain()
  }
}

/// The other end is closed, by a child, which is what the handler waits for.
func rightHangUp() {
  let pipe = Pipe()
  let process = shell("sleep 3")
  process.standardOutput = pipe
  try? process.run()
  try? pipe.fileHandleForWriting.close()
  let reader = DispatchSource.makeReadSource(
    fileDescriptor: pipe.fileHandleForReading.fileDescriptor, queue: DispatchQueue(label: "inbox"))
  reader.setEventHandler { semaphore.signal() }
  reader.resume()
  semaphore.wait()
  reader.cancel()
}

func channel() {
  let isRead = Flag()
  let io = DispatchIO(
    type: .stream, path: "/etc/passwd", oflag: O_RDONLY, mode: 0, queue: .global()
  ) { _ in }
  io?.read(offset: 0, length: 4096, queue: .global()) { isDone, _, _ in
    if isDone { isRead.set() }
  }
  isRead.poll()
  stuck()
}

// MARK: run loops

func runLoop() {
  RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.1))
  stuck()
}

/// A thread's run loop had a timer, and has none any more.
func loopThread() {
  let isDue = Flag()
  start("looper") {
    let timer = Timer(fire: Date(timeIntervalSinceNow: 0.05), interval: 0, repeats: false) { _ in
      isDue.set()
    }
    RunLoop.current.add(timer, forMode: .default)
    RunLoop.current.run()
  }
  isDue.poll()
  stuck()
}
