// WITH(support.swift)
// All threads stand still for more than two seconds, and then something from outside, a timer or a
// signal makes them go on; the first argument says what. Nothing may be said of them.
import Foundation
import FoundationNetworking

@main enum Outside {
  static func main() {
    play([
      "after": after, "after-main": afterMain, "after-wall": afterWall, "timer": timer,
      "timer-repeats": timerRepeats, "run-loop": runLoop, "run-loop-until": runLoopUntil,
      "server": server, "child-ends": childEnds, "child-handler": childHandler,
      "child-writes": childWrites, "read-source": readSource, "readable": readable,
      "signal-source": signalSource, "url": url, "socket": socketPair, "wait-thread": waitThread,
      "sleeper": sleeper, "input": input, "io": io, "select": selecting, "queue-after": queueAfter,
      "file": fileAppears,
    ])
  }
}

let seconds = 2.8
let semaphore = DispatchSemaphore(value: 0)
let group = DispatchGroup()

// MARK: timers

func after() {
  DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { semaphore.signal() }
  semaphore.wait()
}

/// What comes later comes to the main queue, for which the main thread looks.
func afterMain() {
  DispatchQueue.main.asyncAfter(deadline: .now() + seconds) { semaphore.signal() }
  start("worker") {
    semaphore.wait()
    DispatchQueue.main.async { done() }
  }
  dispatchMain()
}

func afterWall() {
  group.enter()
  DispatchQueue(label: "alarm").asyncAfter(wallDeadline: .now() + seconds) { group.leave() }
  group.wait()
}

func timer() {
  let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "timer"))
  timer.setEventHandler { semaphore.signal() }
  timer.schedule(deadline: .now() + seconds)
  timer.resume()
  semaphore.wait()
  timer.cancel()
}

/// Only the fourth time is the one that counts.
func timerRepeats() {
  let timer = DispatchSource.makeTimerSource(flags: [], queue: .global())
  var left = 4
  timer.setEventHandler {
    left -= 1
    if left == 0 { group.leave() }
  }
  timer.schedule(deadline: .now() + 0.8, repeating: 0.8, leeway: .milliseconds(50))
  group.enter()
  timer.activate()
  group.wait()
  timer.cancel()
}

func runLoop() {
  let timer = Timer(timeInterval: seconds, repeats: false) { _ in done() }
  RunLoop.main.add(timer, forMode: .default)
  RunLoop.main.run()
}

func runLoopUntil() {
  start("waiter") { semaphore.wait() }
  RunLoop.main.run(until: Date(timeIntervalSinceNow: seconds))
}

/// A server with nothing to do; here it ends after a while.
func server() {
  let timer = DispatchSource.makeTimerSource(queue: .main)
  timer.setEventHandler { done() }
  timer.schedule(deadline: .now() + seconds)
  timer.resume()
  start("worker") { semaphore.wait() }
  dispatchMain()
}

/// The delayed block stands behind one that waits on another queue.
func queueAfter() {
  let (first, second) = (DispatchQueue(label: "first"), DispatchQueue(label: "second"))
  first.async { semaphore.wait() }
  second.asyncAfter(deadline: .now() + seconds) { semaphore.signal() }
  first.sync { print("first") }
}

// MARK: children

func shell(_ command: String) -> Process {
  let child = Process()
  child.executableURL = URL(fileURLWithPath: "/bin/sh")
  child.arguments = ["-c", command]
  return child
}
func run(_ child: Process) {
  do { try child.run() } catch { print("\(error)") }
}

func childEnds() {
  let child = shell("sleep \(seconds); exit 3")
  run(child)
  child.waitUntilExit()
  print(child.terminationStatus)
}

func childHandler() {
  let child = shell("sleep \(seconds)")
  child.terminationHandler = { _ in semaphore.signal() }
  run(child)
  semaphore.wait()
}

/// A thread reads what a child writes, the main thread waits for that thread.
func childWrites() {
  let (child, pipe) = (shell("sleep \(seconds); echo word"), Pipe())
  child.standardOutput = pipe
  run(child)
  start("reader") {
    print(String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self))
    semaphore.signal()
  }
  semaphore.wait()
  child.waitUntilExit()
}

func readSource() {
  let (child, pipe) = (shell("sleep \(seconds); echo word"), Pipe())
  child.standardOutput = pipe
  let descriptor = pipe.fileHandleForReading.fileDescriptor
  let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: .global())
  source.setEventHandler {
    source.cancel()
  }
  source.setCancelHandler { semaphore.signal() }
  source.resume()
  run(child)
  semaphore.wait()
  child.waitUntilExit()
}

func readable() {
  let (child, pipe) = (shell("sleep \(seconds); echo word"), Pipe())
  child.standardOutput = pipe
  pipe.fileHandleForReading.readabilityHandler = { handle in
    print(handle.availableData.count)
    handle.readabilityHandler = nil
    semaphore.signal()
  }
  run(child)
  semaphore.wait()
  child.waitUntilExit()
}

func signalSource() {
  signal(SIGUSR1, SIG_IGN)
  let source = DispatchSource.makeSignalSource(signal: SIGUSR1, queue: .global())
  source.setEventHandler { semaphore.signal() }
  source.resume()
  // Not a child of this process any more: nothing but the signal can come.
  let child = shell("(sleep \(seconds); kill -USR1 \(getpid())) >/dev/null 2>&1 &")
  run(child)
  child.waitUntilExit()
  semaphore.wait()
}

/// A child's end is waited for by a thread, in the kernel.
func waitThread() {
  var pid = pid_t()
  let words = ["/bin/sleep", "\(seconds)", nil].map { word in word.flatMap { strdup($0) } }
  posix_spawn(&pid, "/bin/sleep", nil, nil, words, environ)
  start("reaper") { [pid] in
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    group.leave()
  }
  group.enter()
  group.wait()
}

// MARK: descriptors

/// A server of one answer, in a thread of this process; its answer is late.
func listen() -> (port: UInt16, descriptor: Int32) {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = inet_addr("127.0.0.1")
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      _ = bind(descriptor, $0, length)
      _ = getsockname(descriptor, $0, &length)
    }
  }
  _ = Glibc.listen(descriptor, 8)
  return (UInt16(bigEndian: address.sin_port), descriptor)
}
func url() {
  let (port, descriptor) = listen()
  start("server") {
    while true {
      let client = accept(descriptor, nil, nil)
      var request = [UInt8](repeating: 0, count: 4096)
      _ = read(client, &request, request.count)
      usleep(UInt32(seconds * 1e6))
      let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
      _ = write(client, answer, answer.utf8.count)
      close(client)
    }
  }
  guard let url = URL(string: "http://127.0.0.1:\(port)/") else { return }
  let task = URLSession.shared.dataTask(with: url) { data, _, _ in
    print(String(decoding: data ?? Data(), as: UTF8.self))
    semaphore.signal()
  }
  task.resume()
  semaphore.wait()
}

/// A thread in poll; another process has the other end.
func selecting() {
  let (child, pipe) = (shell("sleep \(seconds); echo word"), Pipe())
  child.standardOutput = pipe
  run(child)
  start("poller") {
    var polled = pollfd(
      fd: pipe.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0)
    poll(&polled, 1, -1)
    group.leave()
  }
  group.enter()
  group.wait()
  child.waitUntilExit()
}

func socketPair() {
  var ends: [Int32] = [0, 0]
  socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
  start("receiver") {
    var byte: UInt8 = 0
    print(recv(ends[0], &byte, 1, 0), byte)
    semaphore.signal()
  }
  start("sender") {
    usleep(UInt32(seconds * 1e6))
    send(ends[1], [7 as UInt8], 1, 0)
  }
  semaphore.wait()
}

/// Whoever started the program may still write to it: a thread reads the standard input.
func input() {
  let pipe = Pipe()
  let child = shell("sleep \(seconds); echo word")
  child.standardOutput = pipe
  run(child)
  dup2(pipe.fileHandleForReading.fileDescriptor, 0)
  try? pipe.fileHandleForWriting.close()
  start("terminal") {
    print(readLine() ?? "nothing")
    semaphore.signal()
  }
  semaphore.wait()
  child.waitUntilExit()
}

func io() {
  let (child, pipe) = (shell("sleep \(seconds); echo word"), Pipe())
  child.standardOutput = pipe
  run(child)
  let channel = DispatchIO(
    type: .stream, fileDescriptor: pipe.fileHandleForReading.fileDescriptor, queue: .global()
  ) { _ in }
  channel.setLimit(lowWater: 1)
  group.enter()
  channel.read(offset: 0, length: 5, queue: .global()) { isDone, data, _ in
    print(data?.count ?? 0)
    if isDone { group.leave() }
  }
  group.wait()
  child.waitUntilExit()
}

/// A thread looks for a file now and then, and sleeps in between.
func fileAppears() {
  let path = NSTemporaryDirectory() + "/outside-\(getpid())"
  let child = shell("sleep \(seconds); touch \(path)")
  run(child)
  start("looker") {
    while access(path, F_OK) != 0 { sleep(1) }
    unlink(path)
    semaphore.signal()
  }
  semaphore.wait()
  child.waitUntilExit()
}

func sleeper() {
  start("sleeper") {
    sleep(3)
    semaphore.signal()
  }
  semaphore.wait()
}
