import Foundation
import Watchdog

struct Refusal: Error, CustomStringConvertible { let description = "no, thank you" }

/// Scenarios that start the watchdog themselves.
let watching: [String: @Sendable () -> Void] = [
  "closure": {
    var configuration = Watchdog.Configuration()
    configuration.handlers = [
      .closure { _ in throw Refusal() },
      .closure { (report: Watchdog.Report) in
        say(report.mode, report.findings.map(\.kind.rawValue), report.threads.count)
        exit(report.findings.count == 1 ? 3 : 4)
      },
    ]
    Watchdog.shared.start(configuration)
    ring(3)
    waitForEver()
  },
  "blocking": {
    // A handler that never returns: the program goes on all the same.
    var configuration = Watchdog.Configuration()
    let told = Meeting(2)
    configuration.handlers = [
      .closure { _ in
        told.arrive()
        while true { sleep(1) }
      }
    ]
    Watchdog.shared.start(configuration)
    ring(2)
    told.arrive()
    let lock = NSLock()
    for _ in 0..<1000 { lock.withLock {} }
    Watchdog.shared.stop()
  },
  "stop": {
    Watchdog.shared.start()
    Watchdog.shared.stop()
    usleep(100_000)
    ring(2)
    sleep(1)
    say("quiet so far")
    Watchdog.shared.start()  // finds what hangs already
    sleep(1)
  },
  "reconfigured": {
    Watchdog.shared.start()
    var configuration = Watchdog.Configuration()
    configuration.handlers = [.closure { _ in say("told the second") }]
    Watchdog.shared.start(configuration)
    ring(2)
    sleep(1)
  },
  "ending": {
    var configuration = Watchdog.Configuration()
    configuration.onDeadlock = Watchdog.OnDeadlock(rawValue: CommandLine.arguments[2]) ?? .continue
    Watchdog.shared.start(configuration)
    ring(2)
    waitForEver()
  },
  "unwatched": {
    ring(2)
    sleep(1)
  },
  "fork": {
    // The parent's threads and what they hold are not the child's; it watches itself when it asks
    // to.
    Watchdog.shared.start()
    let (held, free, ready) = (NSLock(name: "held"), NSLock(name: "free"), Meeting(2))
    thread("holder") {
      held.lock()
      ready.arrive()
      waitForEver()
    }
    ready.arrive()
    free.lock()
    let child = forked()
    if child == 0 {
      free.unlock()
      for _ in 0..<1000 { free.withLock {} }
      Watchdog.shared.start()
      ring(2)  // names, cycle and threads are the child's own
      sleep(1)
      exit(7)
    }
    free.unlock()
    var status: Int32 = 0
    waitpid(child, &status, 0)
    say("child", (status >> 8) & 0xff)
    for _ in 0..<1000 { free.withLock {} }
  },
  "forks": {
    // Forks under load.
    Watchdog.shared.start()
    let (lock, end) = (NSLock(), Date(timeIntervalSinceNow: 1))
    for index in 0..<3 {
      thread("load \(index)") { while Date() < end { lock.withLock {} } }
    }
    while Date() < end {
      let child = forked()
      if child == 0 {
        let own = NSLock()
        for _ in 0..<10 { own.withLock {} }
        _exit(0)
      }
      var status: Int32 = 0
      waitpid(child, &status, 0)
      if status != 0 { say("child failed", status) }
    }
  },
]

/// Swift hides fork, since most programs may only execute another one afterwards.
func forked() -> pid_t {
  let symbol = dlsym(nil, "fork")
  return unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)()
}
