import Foundation
import Watchdog

/// Scenarios of SIGQUIT.
let quitting: [String: @Sendable () -> Void] = [
  "quit": {
    startDumping()
    let (lock, held) = (NSLock(name: "accounts"), Meeting(2))
    let (gate, leaving) = (NSLock(name: "gate"), Meeting(3))
    gate.lock()
    thread("holder") {
      lock.lock()
      held.arrive()
      gate.withLock {}
      lock.unlock()
      leaving.arrive()
    }
    held.arrive()
    thread("waiter") {
      lock.withLock {}
      leaving.arrive()
    }
    usleep(300_000)
    kill(getpid(), SIGQUIT)
    waitForText("nothing hangs")
    gate.unlock()
    leaving.arrive()
  },
  "quit in a deadlock": {
    startDumping()
    ring(2)
    waitForText("DEADLOCK")
    kill(getpid(), SIGQUIT)
    waitForText("1 deadlock\n")
  },
  "quit twice": {
    startDumping()
    kill(getpid(), SIGQUIT)
    waitForText("nothing hangs")
    kill(getpid(), SIGQUIT)
    waitForText("nothing hangs", times: 2)
  },
  "quit without text": {
    startDumping(handlers: [.closure { _ in say("told a picture") }])
    kill(getpid(), SIGQUIT)
    waitForText("nothing hangs")
  },
  "quit handled": {
    // The program's own handler stays.
    signal(SIGQUIT) { _ in mine.signal() }
    startDumping()
    kill(getpid(), SIGQUIT)
    mine.wait()
    usleep(300_000)
    say("mine")
  },
  "quit caught as a crash": {
    for crash in [SIGQUIT, SIGSEGV, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGTRAP] {
      signal(crash) { _ in _exit(9) }
    }
    startDumping()
    kill(getpid(), SIGQUIT)
    waitForText("nothing hangs")
  },
  "quit ignored": {
    // As a shell starts what runs in the background.
    signal(SIGQUIT, SIG_IGN)
    startDumping()
    kill(getpid(), SIGQUIT)
    waitForText("nothing hangs")
    Watchdog.shared.stop()
    kill(getpid(), SIGQUIT)
  },
  "quit given back": {
    startDumping()
    Watchdog.shared.stop()
    kill(getpid(), SIGQUIT)
    sleep(1)
  },
  "quit in a child": {
    startDumping()
    let child = forked()
    if child == 0 {
      kill(getpid(), SIGQUIT)
      sleep(5)
      _exit(1)
    }
    var status: Int32 = 0
    waitpid(child, &status, 0)
    say("child", status & 0x7f)
  },
]

private let mine = DispatchSemaphore(value: 0)

private func startDumping(handlers: [Watchdog.Handler] = [.standardError]) {
  var configuration = Watchdog.Configuration()
  configuration.handlers = handlers
  configuration.dumpsOnQuit = true
  Watchdog.shared.start(configuration)
}

/// Until standard error, which is a file, holds these words. The test ends what does not get there.
private func waitForText(_ words: String, times: Int = 1) {
  while true {
    let text = (try? String(contentsOfFile: "/proc/self/fd/2", encoding: .utf8)) ?? ""
    if text.components(separatedBy: words).count > times { return }
    usleep(20_000)
  }
}
