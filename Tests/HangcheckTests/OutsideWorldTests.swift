import Foundation
import Glibc
import Testing

@testable import ProcessInspector

/// Who could still wake a process: programs that stand still, and what is found of each.
@Suite struct OutsideWorldTests {
  /// libdispatch's own memory is another reader's business: here the program's timers are given.
  static let isStatic = ["-static-stdlib", "-DALONE"]
  static let noTimers = OutsideWorld.DispatchTimers.known([])

  @Test(
    arguments: [
      "mutex", "condition", "distant", "semaphore", "rwlock", "barrier", "join", "exited",
      "inherits", "descriptors", "zombie", "many",
      "crowd",
    ])
  func closed(_ mode: String) throws {
    let subject = try Standing(try Standing.program("standing.c"), [mode])
    #expect(subject.becomesClosed() == [])
  }

  @Test(
    arguments: [
      "spin", "sleep", "one-sleeps", "one-reads", "timed-condition", "timed-semaphore", "shared",
      "shared-private-call", "handler", "quit-handler", "realtime-handler", "itimer", "timer",
      "child", "waitpid", "accept", "own-pipe", "eventfd", "timerfd", "own-epoll", "timed-epoll",
      "poll", "select", "signalfd", "sigwait", "pause", "sigsuspend", "inotify", "stopped",
      "file-lock", "full-pipe",
    ])
  func open(_ mode: String) throws {
    let subject = try Standing(try Standing.program("standing.c"), [mode])
    #expect(subject.staysOpen(timers: Self.noTimers))
  }

  @Test(
    arguments: [
      "main-queue", "main-queue-used", "semaphore", "workers", "group", "condition",
      "distant-condition", "continuation", "run-loop", "cancelled-timer", "cancelled-source",
      "suspended-operations",
    ])
  func closedSwift(_ mode: String) throws {
    let subject = try Standing(try Standing.program("standing.swift"), [mode])
    #expect(subject.becomesClosed() == [])
  }

  @Test(arguments: [
    "semaphore", "workers", "group", "condition", "main-queue", "main-queue-used", "run-loop",
  ])
  func closedStatic(_ mode: String) throws {
    let subject = try Standing(try Standing.program("standing.swift", Self.isStatic), [mode])
    #expect(subject.becomesClosed() == [])
  }

  @Test(
    arguments: [
      "signal-source", "read-source", "server", "timer-source", "wall-timer",
      "after-beside-semaphore", "timed-semaphore", "timed-condition", "task-sleep",
      "run-loop-until", "run-loop-timer", "url-session", "process", "read-line",
    ])
  func openSwift(_ mode: String) throws {
    let subject = try Standing(try Standing.program("standing.swift"), [mode])
    #expect(subject.staysOpen())
    #expect(subject.staysOpen(timers: .unknown))
  }

  @Test(
    arguments: [
      "signal-source", "read-source", "timer-source", "after-beside-semaphore", "task-sleep",
      "run-loop-until",
    ])
  func openStatic(_ mode: String) throws {
    let subject = try Standing(try Standing.program("standing.swift", Self.isStatic), [mode])
    #expect(subject.staysOpen())
  }

  @Test(
    arguments: [
      ["/bin/sleep", "1000"], ["/bin/cat"], ["/bin/bash"], ["/bin/bash", "-c", "sleep 1000; :"],
      ["/bin/bash", "-c", "read line"], ["/usr/bin/env", "python3"],
      ["/usr/bin/env", "python3", "-c", "import time; time.sleep(1000)"],
      [
        "/usr/bin/env", "python3", "-c",
        "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); s.accept()",
      ],
      ["/usr/bin/tail", "-f", "/dev/null"], ["/usr/bin/sort"],
    ])
  func normalProgramsAreOpen(_ command: [String]) throws {
    let subject = try Standing(command[0], Array(command.dropFirst()), saysReady: false)
    #expect(subject.staysOpen(timers: Self.noTimers))
  }

  @Test(arguments: [[], Self.isStatic])
  func mainQueueIsBoundUntilDispatchMain(_ flags: [String]) throws {
    for mode in ["run-loop", "semaphore", "main-queue"] {
      let subject = try Standing(try Standing.program("standing.swift", flags), [mode])
      #expect(subject.becomesClosed() == [])
      #expect(subject.dispatch?.isMainQueueUnbound == (mode == "main-queue"), "\(mode)")
    }
  }

  @Test func withoutLibdispatchsMemoryItIsOpen() throws {
    let subject = try Standing(try Standing.program("standing.swift"), ["semaphore"])
    #expect(subject.becomesClosed() == [])
    #expect(subject.openings(timers: Self.noTimers) == ["libdispatch's queues cannot be read"])
  }

  @Test func wordsSayWhat() throws {
    let words = [
      "one-sleeps": "waits with a time-out", "handler": "a handler for SIGUSR1",
      "child": "child process", "accept": "accept on descriptor 3, a socket",
      "timer": "1 timers of timer_create", "shared": "other processes may share",
      "stopped": "stopped", "waitpid": "a child process",
    ]
    for (mode, expected) in words {
      let subject = try Standing(try Standing.program("standing.c"), [mode])
      #expect(subject.says(expected), "\(mode): \(subject.openings())")
    }
  }

  @Test func crowdEndsAtTheFirst() throws {
    let subject = try Standing(try Standing.program("standing.c"), ["one-reads"])
    #expect(subject.says("read on descriptor 0"))
    let world = subject.world()
    #expect(world.firstThatCanMove(among: subject.files.threads()) != nil)
    #expect(world.openings(limit: 1).count == 1)
  }

  @Test func exceptionsDoNotCount() throws {
    let handled = try Standing(try Standing.program("standing.c"), ["handler"])
    let exceptions = OutsideWorld.Exceptions(signals: [SIGUSR1])
    #expect(handled.becomesClosed(ignoring: exceptions) == [])
    let sleeping = try Standing(try Standing.program("standing.c"), ["one-sleeps"])
    let others = sleeping.files.threads().dropFirst()
    #expect(sleeping.says("time-out"))
    #expect(
      sleeping.becomesClosed(ignoring: OutsideWorld.Exceptions(threads: Set(others)))
        == (others.isEmpty ? sleeping.openings() : []))
  }
}
