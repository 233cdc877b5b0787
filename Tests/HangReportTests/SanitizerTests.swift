import Testing
import WaitForGraph

@testable import HangReport

/// ThreadSanitizer's output as it comes, piece by piece, and what is made of it.
@Suite struct SanitizerTests {
  /// Clang's runtime in a Swift program.
  private static let swift = [
    "==================", "WARNING: ThreadSanitizer: data race (pid=15519)",
    "  Write of size 1 at 0x7208000002d0 by thread T1", ":",
    "    #0 $s3app5writeyyF /src/my app/main.swift:17:44 (app+0xfcd83) (BuildId: d6153faf)",
    "    #1 $s10Foundation6ThreadC4mainyyF <null> (libFoundation.so+0x3795f8) (BuildId: bbe2)", "",
    "  Previous atomic read of size 8 at 0x7208000002d0 by main thread", " (mutexes:", " write M0",
    ", read M1", ")", ":", "    #0 $s3app4readyyF /src/main.swift (app+0xfd089)", "",
    "  As if synchronized via sleep:", "    #0 usleep /x/compiler-rt/lib/tsan.cpp:1:1 (app+0x1)",
    "", "  Location is heap block of size 18 at 0x7208000002c0 allocated by main thread:",
    "    #0 main /src/main.swift:16:9 (app+0xfde0a)", "",
    "  Mutex M0 (0x55d0c0de1040) created at:", "    #0 main /src/main.swift:2:3 (app+0x20)", "",
    "  Thread T1", " 'my ann'", " (tid=4712, running) created by main thread", " at:", "",
    "    #0 main /src/main.swift:17:6 (app+0xfdec0)", "",
    "SUMMARY: ThreadSanitizer: data race /src/main.swift:17:44 in $s3app5writeyyF",
    "==================",
  ]

  private static func reports(_ pieces: [String]) -> [SanitizerReport] {
    var reader = SanitizerReader()
    return pieces.compactMap { reader.add($0) }
  }

  @Test("a race is read whole")
  func race() throws {
    let reports = Self.reports(Self.swift + Self.swift)
    try #require(reports.count == 2)
    #expect(reports[0] == reports[1])
    let report = reports[0]
    #expect(report.kind == "data race")
    #expect(report.isRace)
    try #require(report.accesses.count == 2)
    #expect(report.accesses[0].action == "write")
    #expect(report.accesses[0].size == 1)
    #expect(report.accesses[0].address == 0x7208_0000_02d0)
    #expect(report.accesses[0].who == .thread(1))
    #expect(
      report.accesses[0].stack == [
        .init(
          image: "app", offset: 0xfcd83, function: "$s3app5writeyyF",
          file: "/src/my app/main.swift", line: 17),
        .init(
          image: "libFoundation.so", offset: 0x3795f8,
          function: "$s10Foundation6ThreadC4mainyyF", file: nil, line: nil),
      ])
    #expect(report.accesses[1].action == "atomic read")
    #expect(report.accesses[1].who == .main)
    #expect(report.accesses[1].mutexes == [0, 1])
    #expect(report.accesses[1].stack.map(\.file) == ["/src/main.swift"])
    #expect(report.location == .heap(size: 18, by: .main))
    #expect(report.locationStack.count == 1)
    #expect(report.mutexes.map(\.address) == [0x55d0_c0de_1040])
    #expect(
      report.threads == [
        .init(
          number: 1, name: "my ann", tid: 4712, isRunning: true, creator: .main,
          stack: [
            .init(
              image: "app", offset: 0xfdec0, function: "main", file: "/src/main.swift", line: 17)
          ])
      ])
  }

  @Test("no summary is printed, and symbols are not asked for")
  func plain() throws {
    let pieces = Self.swift.filter { !$0.hasPrefix("SUMMARY") }.map { piece in
      piece.hasPrefix("    #0") ? "    #0 <null> <null> (app+0x40)" : piece
    }
    let report = try #require(Self.reports(pieces).first)
    #expect(report.accesses.map(\.stack.first?.offset) == [0x40, 0x40])
    #expect(report.accesses.map(\.stack.first?.function) == [nil, nil])
  }

  @Test(
    "what the memory is",
    arguments: [
      ("global 'counter' of size 4 at 0x562b158670c0 (r.gcc+0x40c0)", .global("counter")),
      ("stack of main thread.", .stack(of: .main)),
      ("TLS of thread T4.", .threadLocal(of: .thread(4))),
      ("file descriptor 7 created by main thread at:", .descriptor(7)),
      ("global '<null>' at 0x000000000000 ([stack]+0x1eab0)", nil),
    ] as [(String, SanitizerReport.Location?)])
  func location(_ words: String, _ expected: SanitizerReport.Location?) throws {
    let pieces = Self.swift.map {
      $0.hasPrefix("  Location") ? "  Location is \(words)" : $0
    }
    #expect(try #require(Self.reports(pieces).first).location == expected)
  }

  @Test(
    "what is no race is none",
    arguments: [
      [
        "WARNING: ThreadSanitizer: thread leak (pid=1)", "  Thread T3",
        " (tid=16028, finished) created by main thread", " at:", "    #0 main <null> (a+0x1)", "",
        "SUMMARY: ThreadSanitizer: thread leak",
      ],
      [
        "WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=1)",
        "  Cycle in lock order graph: ", "M0 (0x55) => ", "M1 (0x66) => ", "M0", "", "  Mutex ",
        "M1 acquired here while holding mutex ", "M0 in ", "main thread:",
        "    #0 main <null> (a+0x1)", "SUMMARY: ThreadSanitizer: lock-order-inversion",
      ],
      [
        "WARNING: ThreadSanitizer: heap-use-after-free (pid=1)",
        "  Write of size 4 at 0x7b04 by main thread:", "    #0 main <null> (a+0x1)", "",
        "  Previous write of size 8 at 0x7b04 by main thread:", "    #0 free <null> (a+0x2)", "",
        "SUMMARY: ThreadSanitizer: heap-use-after-free",
      ],
    ])
  func others(_ pieces: [String]) throws {
    let report = try #require(Self.reports(pieces).first)
    #expect(!report.isRace)
    #expect(Self.finding(report) == nil)
  }

  @Test("text of others, and cut text, is no report", arguments: [1, 2, 10, 30])
  func cut(_ count: Int) {
    #expect(Self.reports(["ThreadSanitizer: reported 1 warnings", "hello"]).isEmpty)
    #expect(Self.reports(Array(Self.swift.prefix(count))).isEmpty)
  }

  // MARK: - Findings

  private static func finding(
    _ report: SanitizerReport, name: ((SanitizerReport.Call) -> [Frame])? = nil
  ) -> Finding? {
    var made = Fixture()
    made.thread(1, "ann")
    made.thread(2, "app", tid: made.pid)
    return SanitizerFinding(
      threads: made.threads, process: made.process,
      who: [.thread(1): ThreadID(1), .main: ThreadID(2)], frames: name ?? { [$0.frame] }
    ).finding(for: report, time: "2026-01-02T03:04:05.678Z")
  }

  @Test("the sentence names the threads, the memory and the places")
  func message() throws {
    let report = try #require(Self.reports(Self.swift).first)
    let finding = try #require(Self.finding(report))
    #expect(finding.kind == .dataRace)
    #expect(finding.severity == .error)
    #expect(finding.certainty == .certain)
    #expect(
      finding.message == """
        "ann" writes a heap block of 18 bytes at main.swift:17 in write() while main thread reads it \
        at main.swift in read(); no happens-before edge orders them
        """)
    #expect(
      finding.evidence.map(\.label) == [
        "\"ann\" writes it here",
        "main thread read it here, holding mutex 0x55d0c0de1040 and a mutex that is no more",
        "main thread allocated the memory here", "mutex 0x55d0c0de1040 was made here",
        "\"ann\" was started here by main thread",
      ])
    #expect(finding.threads == [ThreadID(1), ThreadID(2)])
  }

  @Test("whichever access comes first, the fingerprint is the same")
  func fingerprint() throws {
    var report = try #require(Self.reports(Self.swift).first)
    let first = try #require(Self.finding(report)).fingerprint
    report.accesses.swapAt(0, 1)
    report.accesses[0].stack[0].line = 99
    report.accesses[0].address += 64
    #expect(Self.finding(report)?.fingerprint == first)
    report.accesses[0].stack[0].function = "$s3app5otheryyF"
    #expect(Self.finding(report)?.fingerprint != first)
  }

  @Test("inside of libraries that are not instrumented TSan knows too little")
  func noise() throws {
    var report = try #require(Self.reports(Self.swift).first)
    let interceptor = SanitizerReport.Call(
      image: "app", offset: 1, function: "memcpy", file: "/b/compiler-rt/lib/tsan/x.cpp", line: 1)
    let inner = SanitizerReport.Call(
      image: "libswiftCore.so", offset: 2, function: "swift_getGenericMetadata", file: nil,
      line: nil)
    report.accesses[0].stack.insert(contentsOf: [interceptor, inner], at: 0)
    #expect(Self.finding(report) != nil, "one of them is the program's own")
    report.accesses[1].stack.insert(contentsOf: [interceptor, inner], at: 0)
    #expect(Self.finding(report) == nil)
    // Called by the program itself, the same function is the program's own.
    report.accesses[1].stack.remove(at: 1)
    #expect(Self.finding(report) != nil)
  }

  @Test("the last release of an object is no race with code that the compiler made")
  func release() throws {
    var report = try #require(Self.reports(Self.swift).first)
    report.accesses[0].stack[0].function = "free"
    report.accesses[0].stack[0].file = "/b/compiler-rt/lib/tsan/x.cpp"
    report.accesses[0].stack.append(
      .init(image: "app", offset: 9, function: "$s3app4mainyyF", file: "/src/main.swift", line: 3))
    #expect(Self.finding(report)?.message.contains("frees") == true)
    let made = { (call: SanitizerReport.Call) in
      var frame = call.frame
      if call == report.accesses[1].stack[0] { frame.runtime = true }
      return [frame]
    }
    #expect(Self.finding(report, name: made) == nil)
  }
}
