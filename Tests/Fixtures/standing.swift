// Swift programs that stand still in one way each; see OutsideWorldTests.
import Dispatch
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

nonisolated(unsafe) var kept: [Any] = []

func listening() -> (descriptor: Int32, port: UInt16) {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      _ = bind(descriptor, $0, length)
      listen(descriptor, 5)
      getsockname(descriptor, $0, &length)
    }
  }
  return (descriptor, UInt16(bigEndian: address.sin_port))
}

_ = write(1, "ready\n", 6)
switch CommandLine.arguments.dropFirst().first {
// Nobody can wake these.
case "main-queue": dispatchMain()
case "main-queue-used":
  DispatchQueue.global().async {}
  DispatchQueue.main.async {}
  dispatchMain()
case "semaphore": DispatchSemaphore(value: 0).wait()
case "workers":
  for _ in 0..<3 { DispatchQueue.global().async { DispatchSemaphore(value: 0).wait() } }
  DispatchSemaphore(value: 0).wait()
case "group":
  let group = DispatchGroup()
  group.enter()
  group.wait(timeout: .distantFuture)
case "condition":
  let condition = NSCondition()
  condition.lock()
  condition.wait()
case "distant-condition":
  let condition = NSCondition()
  condition.lock()
  condition.wait(until: .distantFuture)
case "continuation":
  Task { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
  dispatchMain()
case "run-loop": RunLoop.main.run()
case "second-run-loop":
  Thread {
    RunLoop.current.add(
      Timer(timeInterval: 1, repeats: true) { $0.invalidate() }, forMode: .default)
    RunLoop.current.run()
    DispatchSemaphore(value: 0).wait()
  }.start()
  RunLoop.main.run()
case "cancelled-timer":
  let source = DispatchSource.makeTimerSource(queue: .main)
  source.schedule(deadline: .now() + 1000)
  source.resume()
  source.cancel()
  dispatchMain()
case "cancelled-source":
  let source = DispatchSource.makeReadSource(fileDescriptor: 0, queue: .main)
  source.resume()
  source.cancel()
  dispatchMain()
case "suspended-operations":
  let queue = OperationQueue()
  queue.isSuspended = true
  queue.addOperation {}
  queue.waitUntilAllOperationsAreFinished()

// These can be woken.
case "signal-source":
  signal(SIGUSR1, SIG_IGN)
  let source = DispatchSource.makeSignalSource(signal: SIGUSR1, queue: .main)
  source.resume()
  kept.append(source)
  dispatchMain()
case "read-source":
  let source = DispatchSource.makeReadSource(fileDescriptor: 0, queue: .main)
  source.resume()
  kept.append(source)
  dispatchMain()
case "server":
  let source = DispatchSource.makeReadSource(fileDescriptor: listening().descriptor, queue: .main)
  source.resume()
  kept.append(source)
  dispatchMain()
case "timer-source":
  let source = DispatchSource.makeTimerSource(queue: .main)
  source.schedule(deadline: .now() + 1000)
  source.resume()
  kept.append(source)
  dispatchMain()
case "wall-timer":
  DispatchQueue.main.asyncAfter(wallDeadline: .now() + 1000) {}
  dispatchMain()
case "after-beside-semaphore":
  DispatchQueue.global().asyncAfter(deadline: .now() + 1000) {}
  DispatchSemaphore(value: 0).wait()
case "timed-semaphore": _ = DispatchSemaphore(value: 0).wait(timeout: .now() + 1000)
case "timed-condition":
  let condition = NSCondition()
  condition.lock()
  condition.wait(until: Date(timeIntervalSinceNow: 1000))
case "task-sleep":
  Task { try? await Task.sleep(for: .seconds(1000)) }
  dispatchMain()
case "run-loop-until": RunLoop.main.run(until: Date(timeIntervalSinceNow: 1000))
case "run-loop-timer":
  RunLoop.main.add(Timer(timeInterval: 1000, repeats: true) { _ in }, forMode: .default)
  RunLoop.main.run()
case "url-session":
  let done = DispatchSemaphore(value: 0)
  let url = URL(string: "http://127.0.0.1:\(listening().port)/")!
  URLSession.shared.dataTask(with: url) { _, _, _ in done.signal() }.resume()
  done.wait()
case "process":
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/bin/sleep")
  process.arguments = ["1000"]
  try process.run()
  process.waitUntilExit()
case "read-line": _ = readLine()
default: exit(2)
}
