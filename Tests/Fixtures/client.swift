// A program that gets and sends files by URLSession, in all the ways that it knows; the first argument is
// a local server's port. What it prints does not depend on who answers first.
import Foundation
import FoundationNetworking

setvbuf(stdout, nil, _IOLBF, 0)
alarm(60)

let port = CommandLine.arguments.dropFirst().first ?? "80"
func url(_ path: String) -> URL {
  guard let url = URL(string: "http://127.0.0.1:\(port)/\(path)") else { exit(2) }
  return url
}
func status(_ response: URLResponse?) -> Int { (response as? HTTPURLResponse)?.statusCode ?? 0 }

// Completion handlers, and a group that waits for all.
let group = DispatchGroup()
let lock = NSLock()
nonisolated(unsafe) var lines: [String] = []
for i in 0..<8 {
  group.enter()
  let task = URLSession.shared.dataTask(with: url("file-\(i)")) { data, response, _ in
    lock.withLock { lines.append("\(i): \(status(response)), \(data?.count ?? 0) bytes") }
    group.leave()
  }
  task.resume()
}
group.wait()
print(lines.sorted().joined(separator: "\n"))

// A delegate on a queue of operations, and a semaphore that waits for the end.
final class Listener: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  let ended = DispatchSemaphore(value: 0)
  var count = 0
  func urlSession(_: URLSession, dataTask _: URLSessionDataTask, didReceive data: Data) {
    count += data.count
  }
  func urlSession(_: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    print(
      "delegate: \(status(task.response)), \(count) bytes, \(error == nil ? "ended" : "failed")")
    ended.signal()
  }
}
let listener = Listener()
let delegates = OperationQueue()
// Else the last two calls may overtake each other.
delegates.maxConcurrentOperationCount = 1
let session = URLSession(
  configuration: .ephemeral, delegate: listener, delegateQueue: delegates)
session.dataTask(with: url("large")).resume()
listener.ended.wait()
session.finishTasksAndInvalidate()

// What is not there, and what nobody serves.
let missed = DispatchSemaphore(value: 0)
URLSession.shared.downloadTask(with: url("missing")) { _, response, error in
  print("missing: \(status(response)), \(error == nil)")
  missed.signal()
}.resume()
missed.wait()
var request = URLRequest(url: url("file-0"))
request.httpMethod = "POST"
URLSession.shared.uploadTask(with: request, from: Data(count: 1000)) { _, response, _ in
  print("sent: \(status(response))")
  missed.signal()
}.resume()
missed.wait()

// Tasks.
func sum() async -> Int {
  await withTaskGroup(of: Int.self) { group in
    for i in 0..<4 {
      group.addTask { (try? await URLSession.shared.data(from: url("file-\(i)")).0.count) ?? -1 }
    }
    var sum = 0
    for await count in group { sum += count }
    return sum
  }
}
print("awaited: \(await sum()) bytes")
print("DONE")
