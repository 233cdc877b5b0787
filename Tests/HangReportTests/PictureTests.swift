import HangReport
import Testing
import WaitForGraph

/// All threads of a program, whether or not anything is wrong.
@Suite struct PictureTests {
  private func text(_ made: Fixture, findings: [Finding] = [], width: Int = 100) -> String {
    var report = made.report
    report.mode = .inProcess
    report.findings = findings
    // The renderer is given the owners; a builder of reports knows them.
    for index in report.resources.indices {
      let id = report.resources[index].id
      report.resources[index].owners = report.threads.filter { thread in
        thread.holds.contains { $0.resource == id }
      }.map(\.id)
    }
    return TextRenderer(options: .init(width: width, folder: "/src/app")).renderPicture(report)
  }

  @Test func aProgramInWhichNothingIsWrong() {
    var made = Fixture()
    made.resource(1, name: "timers")
    made.resource(2)
    made.thread(
      0, "app", tid: 4711, state: .sleeping,
      stack: [made.runtime("nanosleep"), made.frame("main", 40)])
    made.thread(
      1, "keeper",
      holds: [
        (1, .exclusive, made.stack("Store.cancel()", 4)), (2, .exclusive, made.stack("f()", 7)),
      ], state: .running, stack: [made.frame("Store.cancel()", 5)])
    made.thread(2, "waiter", waits: (1, .exclusive, made.stack("Store.schedule()", 24)))
    made.limits = ["1 threads block signals"]
    #expect(
      text(made) == """
        hangcheck: app (pid 4711): 3 threads, nothing hangs

        Threads that wait or hold something
          "keeper" (tid 4712) running; holds mutex "timers" at 0x55d0c0de1040 for 2.0 s taken at main.swift:4 in Store.cancel(); holds mutex 0x55d0c0de1080 for 2.0 s taken at main.swift:7 in f()
            #0 main.swift:5 in Store.cancel()
          "waiter" (tid 4713) waiting for mutex "timers" at 0x55d0c0de1040, which "keeper" has, for 2.0 s
            #0 pthread_mutex_lock of libc.so.6
            #1 NSLock.lock() of libFoundation.so
            #2 main.swift:24 in Store.schedule()
            #3 main.swift:30 in closure #1 in main
            #4 start_thread of libc.so.6
            #5 clone of libc.so.6

        Other threads
          main thread (tid 4711) sleeping
            #0 nanosleep of libc.so.6
            #1 main.swift:40 in main

        What could not be known
          - 1 threads block signals

        """)
  }

  @Test func oneThreadAlone() {
    var made = Fixture()
    made.thread(0, "app", tid: 4711, state: .io, stack: [made.runtime("read")])
    #expect(
      text(made) == """
        hangcheck: app (pid 4711): 1 thread, nothing hangs

        Threads
          main thread (tid 4711) in I/O
            #0 read of libc.so.6

        """)
  }

  @Test func aKnownDeadlock() {
    let made = Fixture.crosswise
    let lines = text(made, findings: made.findings).split(separator: "\n")
    #expect(lines[0] == "hangcheck: app (pid 4711): 3 threads, 1 deadlock")
    #expect(lines[1] == "  - " + made.findings[0].message)
  }

  @Test func threadsThatStandAtOnePlaceShareIt() {
    let lines = text(.ring(2, others: 500)).split(separator: "\n")
    #expect(lines.contains { $0.hasPrefix("  500 threads idle") })
    #expect(lines.count < 60)
  }
}
