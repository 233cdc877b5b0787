import HangReport
import Testing
import WaitForGraph

@Suite struct TextTests {
  @Test func crosswise() {
    var made = Fixture.crosswise
    made.limits = ["pthread_join of thread 9 was not seen"]
    #expect(
      made.text() == """
        hangcheck: DEADLOCK in app (pid 4711): threads "cancel" and "schedule" each hold a lock that the other waits for.

          ┌─▶ "cancel" (tid 4712)
          │      │  waits for B, held by
          │      ▼
          │   "schedule" (tid 4713)
          │      │  waits for A, held by
          └──────┘

          A is mutex "timers" at 0x55d0c0de1040
          B is mutex 0x55d0c0de1080

        "cancel" (tid 4712)
          took A 2.0 s ago at main.swift:4 in Store.cancel()
            4 | timers.lock()
              |        ^
          has waited 2.0 s for B at main.swift:5 in Store.cancel()
            5 | jobs.lock()
              |      ^
            called from main.swift:30 in closure #1 in main
            … 2 runtime frames

        "schedule" (tid 4713)
          took B 2.0 s ago at main.swift:24 in Store.schedule()
          has waited 2.0 s for A at main.swift:25 in Store.schedule()
            called from main.swift:30 in closure #1 in main
            … 2 runtime frames

        What to change
          Take the locks in one order everywhere:
            "cancel" takes A at main.swift:4, then B at main.swift:5
            "schedule" takes B at main.swift:24, then A at main.swift:25
          or release the first lock before taking the second.

        Other threads
          main thread (tid 4711) blocked in pthread_join at main.swift:40 in main

        What could not be known
          - pthread_join of thread 9 was not seen
        """ + "\n")
  }

  @Test func selfDeadlock() {
    #expect(
      Fixture.selfDeadlock.text() == """
        hangcheck: DEADLOCK in app (pid 4711): thread 4712 waits for a mutex that it already holds.

          ┌─▶ thread 4712
          │      │  waits for A, held by itself
          └──────┘

          A is mutex 0x55d0c0de1040

        thread 4712
          took A 2.0 s ago at main.swift:4 in Store.cancel()
            4 | timers.lock()
              | ^
          has waited 2.0 s for A at main.swift:5 in Store.cancel()
            5 | jobs.lock()
              | ^
            called from main.swift:30 in closure #1 in main
            … 2 runtime frames

        What to change
          main.swift:5 takes A again in the thread that took it at main.swift:4.
          Release it first, call code that expects it to be held, or use a recursive lock.
        """ + "\n")
  }

  @Test("a reader behind a writer behind itself, and a thread that merely waits")
  func pendingWriter() {
    var made = Fixture()
    made.resource(1, .rwlock, name: "cache")
    made.thread(
      1, "reader", holds: [(1, .shared, made.stack("lookUp()", 14))],
      waits: (1, .shared, made.stack("load()", 20)))
    made.thread(2, "writer", waits: (1, .exclusive, made.stack("store()", 30)))
    made.thread(3, "late", waits: (1, .shared, made.stack("lookUp()", 14)))
    #expect(
      made.text() == """
        hangcheck: DEADLOCK in app (pid 4711): "reader" waits to read a read-write lock behind "writer", which waits to write it, and "writer" waits to write the same read-write lock that "reader" holds for reading. "late" waits behind them.

          ┌─▶ "reader" (tid 4712)
          │      │  waits to read A, behind the waiting writer
          │      ▼
          │   "writer" (tid 4713)
          │      │  waits to write A, held for reading by
          └──────┘

          A is read-write lock "cache" at 0x55d0c0de1040

        "reader" (tid 4712)
          took A for reading 2.0 s ago at main.swift:14 in lookUp()
          has waited 2.0 s to read A at main.swift:20 in load()
            called from main.swift:30 in closure #1 in main
            … 2 runtime frames

        "writer" (tid 4713)
          has waited 2.0 s to write A at main.swift:30 in store()
            called from main.swift:30 in closure #1 in main
            … 2 runtime frames

        What to change
          "reader" reads A at main.swift:20, but a writer that waits keeps new readers out.
          Do not take a read lock again in a thread that holds it already.

        Waiting behind
          "late" (tid 4714) for A at main.swift:14 in lookUp()
        """ + "\n")
  }

  @Test("a join under a lock that the joined thread needs")
  func join() {
    var made = Fixture()
    made.resource(1)
    made.resource(2, .thread, thread: 2)
    made.thread(
      0, "app", holds: [(1, .exclusive, made.stack("stop()", 14))],
      waits: (2, .exclusive, made.stack("stop()", 15)))
    made.thread(2, "worker", waits: (1, .exclusive, made.stack("work()", 5)))
    #expect(
      made.text(sources: false) == """
        hangcheck: DEADLOCK in app (pid 4711): main thread waits for "worker" to end, and "worker" waits for a mutex that main thread holds.

          ┌─▶ main thread (tid 4711)
          │      │  waits for the end of
          │      ▼
          │   "worker" (tid 4713)
          │      │  waits for A, held by
          └──────┘

          A is mutex 0x55d0c0de1040

        main thread (tid 4711)
          took A 2.0 s ago at main.swift:14 in stop()
          has waited 2.0 s for the end of "worker" at main.swift:15 in stop()
            called from main.swift:30 in closure #1 in main
            … 2 runtime frames

        "worker" (tid 4713)
          has waited 2.0 s for A at main.swift:5 in work()
            called from main.swift:30 in closure #1 in main
            … 2 runtime frames

        What to change
          main thread waits at main.swift:15 for "worker" to end
          while it holds A, taken at main.swift:14.
          Release A before that wait: "worker" needs it to go on.
        """ + "\n")
  }

  @Test("an owner that is gone, without debug information")
  func ownerGone() {
    var made = Fixture()
    made.resource(1)
    made.thread(1, "waiter", waits: (1, .exclusive, made.stack("b()", 15)), seconds: 7325)
    made.thread(2, "late", waits: (1, .exclusive, made.stack("b()", 15)))
    made.thread(3, "gone", holds: [(1, .exclusive, [made.frame("take()")])], isAlive: false)
    #expect(
      made.text() == """
        hangcheck: DEADLOCK in app (pid 4711): "waiter" waits for a mutex that is held by "gone", a thread that no longer exists in this process. "late" waits behind it.

              "waiter" (tid 4712)
                 │  waits for A, last held by
                 ▼
              "gone" (tid 4714), which no longer exists in this process

          A is mutex 0x55d0c0de1040

        "waiter" (tid 4712)
          has waited 2 h 2 min for A at main.swift:15 in b()
            called from main.swift:30 in closure #1 in main
            … 2 runtime frames

        "gone" (tid 4714)
          took A 2.0 s ago at take() of app (no debug information: build with -g)
            (who called that was not kept)

        What to change
          "gone" took A at take() of app and never gave it back: it ended, or a fork left it behind.
          Release A on every way out, for example with defer; in a forked child, lock nothing before exec.

        Waiting behind
          "late" (tid 4713) for A at main.swift:15 in b()
        """ + "\n")
  }

  @Test("a hundred in a circle, and five thousand others, on two screens")
  func hundred() {
    let made = Fixture.ring(100, others: 5000)
    let report = made.report
    let text = TextRenderer(
      options: .init(folder: "/src/app", sources: SourcesInMemory(files: [:]))
    )
    .render(report)
    #expect(
      text == """
        hangcheck: DEADLOCK in app (pid 4711): 100 threads, from "philosopher 0" to "philosopher 99", wait for each other in a circle.

          ┌─▶ "philosopher 0" (tid 4712)
          │      │  waits for B, held by
          │      ▼
          │   "philosopher 1" (tid 4713)
          │      │  waits for C, held by
          │      ▼
          │   "philosopher 2" (tid 4714)
          │      │  waits for D, held by
          │      ▼
          │   "philosopher 3" (tid 4715)
          │      │  waits for E, held by
          │      ⋮  93 more threads, each waiting for the next
          │      ▼
          │   "philosopher 97" (tid 4809)
          │      │  waits for CU, held by
          │      ▼
          │   "philosopher 98" (tid 4810)
          │      │  waits for CV, held by
          │      ▼
          │   "philosopher 99" (tid 4811)
          │      │  waits for A, held by
          └──────┘

          A is mutex 0x55d0c0de1000
          B is mutex 0x55d0c0de1040
          C is mutex 0x55d0c0de1080
          D is mutex 0x55d0c0de10c0
          E is mutex 0x55d0c0de1100
          CT is mutex 0x55d0c0de2840
          CU is mutex 0x55d0c0de2880
          CV is mutex 0x55d0c0de28c0

        "philosopher 0" (tid 4712)
          took A 2.0 s ago at main.swift:4 in eat(_:)
          has waited 2.0 s for B at main.swift:5 in eat(_:)
            called from main.swift:30 in closure #1 in main
            … 2 runtime frames
        … 99 more threads of the circle at the same places

        What to change
          All 100 threads run the same lines: one lock at main.swift:4, the next at main.swift:5.
          Let them all take their locks in one order, for example by index or by address.

        Other threads
          5000 threads idle in pthread_cond_wait at main.swift:33 in Pool.run()
            "worker 0", "worker 1", "worker 2", "worker 3", "worker 4", "worker 5", … 4994 more
        """ + "\n")
  }

  @Test("an upgrade says so")
  func upgrade() {
    var made = Fixture()
    made.resource(1, .rwlock)
    made.thread(
      1, "up", holds: [(1, .shared, made.stack("a()", 14))],
      waits: (1, .exclusive, made.stack("b()", 15)))
    let text = made.text()
    #expect(
      text.hasPrefix(
        "hangcheck: DEADLOCK in app (pid 4711): "
          + "\"up\" waits to write a read-write lock that it holds for reading itself.\n"))
    #expect(text.contains("main.swift:15 asks to write A, which the same thread took for reading"))
  }

  @Test("two upgraders: the one behind is at fault as well, and the text says so")
  func twoUpgraders() {
    var made = Fixture()
    made.resource(1, .rwlock)
    for (id, name) in [(1, "one"), (2, "two")] {
      made.thread(
        id, name, holds: [(1, .shared, made.stack("a()", 14))],
        waits: (1, .exclusive, made.stack("b()", 15)))
    }
    #expect(
      made.text().contains(
        "Waiting behind\n  \"two\" (tid 4713) for A, which it holds itself, at main.swift:15"))
  }

  @Test("an owner that nobody knows")
  func unknownOwner() {
    var report = Fixture.selfDeadlock.report
    report.findings[0].cycle[0].ownedBy = nil
    report.threads[0].holds = []
    let text = render(report)
    #expect(text.contains("thread 4712 waits for a mutex that nobody is left to give."))
    #expect(!text.contains("no longer exists"))
  }

  @Test("other kinds of finding, and none")
  func generic() {
    var report = Fixture().report
    #expect(render(report) == "hangcheck: no finding.\n")
    report.findings = [
      Finding(
        kind: .longWait, severity: .note, certainty: .possible, message: "it took long",
        evidence: [.init(label: "it waits here", thread: nil, stack: Fixture().stack("f()", 9))]),
      Finding(
        kind: .lockMisuse, severity: .error, certainty: .certain, message: "unlocked twice"),
    ]
    #expect(
      render(report) == """
        hangcheck: LOCK MISUSE in app (pid 4711): unlocked twice

        hangcheck: LONG WAIT (possible) in app (pid 4711): it took long

        it waits here
          at main.swift:9 in f()
            called from main.swift:30 in closure #1 in main
            … 2 runtime frames

        """)
  }

  @Test("no finding of a process looked at: its threads are told")
  func attached() {
    var report = Fixture.ring(0, others: 3).report
    report.mode = .attach
    #expect(
      render(report) == """
        hangcheck: nothing hangs in app (pid 4711): 3 threads, 3 rest

        Threads
          3 threads idle in pthread_cond_wait at main.swift:33 in Pool.run()
            "worker 0", "worker 1", "worker 2"

        """)
  }

  @Test("colours only when asked, and the same words")
  func colours() {
    let plain = Fixture.crosswise.text()
    let coloured = Fixture.crosswise.text(color: true)
    #expect(!plain.contains("\u{1b}"))
    #expect(coloured.contains("\u{1b}[1;31mhangcheck: DEADLOCK"))
    #expect(coloured.replacing(#/\u{1b}\[[0-9;]*m/#, with: "") == plain)
  }

  @Test("verbose writes every frame and every thread of the cycle")
  func verbose() {
    let text = Fixture.ring(20).text(verbose: true)
    #expect(text.contains("\n\"philosopher 11\" (tid 4723)\n"))
    #expect(text.contains("    #0 pthread_mutex_lock of libc.so.6\n"))
  }

  @Test("a finding whose threads and resources are not listed still reads")
  func unlisted() {
    var report = Fixture.crosswise.report
    report.threads = []
    report.resources = []
    #expect(render(report).contains("DEADLOCK in app (pid 4711)"))
    report = Fixture.crosswise.report
    for index in report.threads.indices { report.threads[index].waitsFor = nil }
    // The evidence remembers what the threads no longer show.
    #expect(render(report).contains("waits for B at main.swift:5 in Store.cancel()"))
  }

  private func render(_ report: HangReport) -> String {
    TextRenderer(options: .init(folder: "/src/app", sources: SourcesInMemory(files: [:])))
      .render(report)
  }
}
