// A program that starts another one, which deadlocks: itself, with another argument. The report's
// cycle names the child's threads (or the child's child's). `healthy` starts one that does not.
import Foundation
import Synchronization

setvbuf(stdout, nil, _IOLBF, 0)
alarm(60)
let place = Atomic<Int>(0)
func meet(_ all: Int) {
  place.add(1, ordering: .sequentiallyConsistent)
  while place.load(ordering: .sequentiallyConsistent) < all { usleep(1000) }
}
let a = NSLock()
let b = NSLock()

func deadlock() {
  for (name, first, second) in [("child-1", a, b), ("child-2", b, a)] {
    let started = DispatchSemaphore(value: 0)
    let thread = Thread {
      // Foundation forgets one that comes before `start` has returned, and can lose another's.
      started.wait()
      Thread.current.name = name
      first.lock()  // HOLDS(child-1,child-2)
      meet(2)
      second.lock()  // WAITS(child-1,child-2)
      second.unlock()
      first.unlock()
    }
    thread.start()
    started.signal()
  }
  for _ in 0..<3000 { usleep(10_000) }
}
func run(_ path: String, _ arguments: [String]) {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: path)
  process.arguments = arguments
  do { try process.run() } catch { print("\(error)") }
  process.waitUntilExit()
  print(process.terminationReason == .exit ? "it ended" : "it was ended")
}
let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
switch CommandLine.arguments.dropFirst().first {
case "deadlock": deadlock()
case "child": run(own, ["deadlock"])
case "grandchild": run(own, ["child"])
case "shell": run("/bin/sh", ["-c", "'\(own)' deadlock; true"])
case "healthy":
  for i in 0..<5 { run("/bin/sh", ["-c", "echo \(i) | cat; exit \(i)"]) }
  run(own, ["leaf"])
case "leaf": a.withLock { b.withLock { print("leaf") } }
default:
  print("which?")
  exit(2)
}
print("DONE")
exit(0)
