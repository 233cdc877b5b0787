import Testing

@testable import HangReport

@Suite(.serialized) struct SiteTests {
  /// What was kept of an acquisition, as the subject printed it.
  struct Record {
    var returnAddress: UInt64
    var sp: UInt64
    var rbp: UInt64
    var window: StackCopy
  }

  private func record(_ name: String, of subject: Subject) throws -> Record {
    let line = try #require(subject.lines.first { $0.hasPrefix("site-\(name) ") })
    let fields = line.split(separator: " ")
    try #require(fields.count == 5)
    let numbers = try fields[1...3].map { try #require(UInt64($0, radix: 16)) }
    let digits = Array(fields[4])
    let bytes = try stride(from: 0, to: digits.count, by: 2).map {
      try #require(UInt8(String(digits[$0...($0 + 1)]), radix: 16))
    }
    return Record(
      returnAddress: numbers[0], sp: numbers[1], rbp: numbers[2],
      window: StackCopy(base: numbers[1], bytes: bytes))
  }

  @Test(
    "where a lock was taken, from what was kept", .timeLimit(.minutes(1)),
    arguments: [["-O2", "-g"], ["-O0", "-g"], ["-O1", "-g", "-fno-omit-frame-pointer"]])
  func acquisitions(_ options: [String]) throws {
    let source = Programs.site
    let subject = try Subject(
      Workshop.shared.build("site" + options.joined(), source, options))
    let images = try subject.images()
    let unwinder = try Unwinder(images: images, memory: subject.memory)
    let symbolizer = Symbolizer(images: images)
    let (registers, stack) = try subject.capture(subject.tid("main"))
    let live = unwinder.unwind(registers, stack: [stack])
    #expect(live.isComplete)

    func site(_ name: String, live: [RawFrame], window: Int = 96) throws -> (Unwound, [String]) {
      var record = try record(name, of: subject)
      record.window.bytes.removeLast(96 - window)
      let unwound = unwinder.unwindSite(
        returnAddress: record.returnAddress, sp: record.sp, rbp: record.rbp,
        kept: [record.window], live: live)
      return (
        unwound,
        symbolizer.frames(for: unwound.frames).filter { !$0.runtime }.map {
          "\($0.symbol ?? "??"):\($0.line ?? 0)"
        }
      )
    }
    func at(_ function: String, _ mark: String) -> String {
      "\(function):\(source.line(mark) ?? -1)"
    }

    let rest = [at("first", "first"), at("main", "main")]
    let direct = try site("direct", live: live.frames)
    #expect(direct.1 == [at("second", "direct")] + rest)
    #expect(direct.0.isComplete && direct.0.note == nil)
    #expect(direct.0.frames.last == live.frames.last)

    // What the live stack lacks, the site lacks too.
    var cutLive = Array(live.frames.prefix(4))
    cutLive[3].cfa = 0
    let half = try site("direct", live: cutLive)
    #expect(half.0.frames.count == 2 && !half.0.isComplete && half.0.note != nil, "\(half)")

    let wrapper = try site("wrapper", live: live.frames)
    #expect(wrapper.1 == [at("acquire", "wrapper"), at("second", "second")] + rest)
    #expect(wrapper.0.isComplete)

    // The function has returned and the window does not reach its caller.
    let big = try site("big", live: live.frames)
    #expect(big.1 == [at("bigAcquire", "big")])
    #expect(!big.0.isComplete && big.0.note == "the callers were not kept")

    // Without a live stack the same holds for a function that has not returned.
    let alone = try site("direct", live: [])
    #expect(alone.1 == [at("second", "direct")])
    #expect(!alone.0.isComplete && alone.0.note != nil)

    // No window at all.
    let blind = try site("wrapper", live: live.frames, window: 0)
    #expect(blind.1 == [at("acquire", "wrapper")])
    #expect(!blind.0.isComplete)
    let lucky = try site("direct", live: live.frames, window: 0)
    #expect(lucky.1 == direct.1)
  }

  @Test("a site in no image gives one frame and a note")
  func nowhere() throws {
    let unwinder = try Unwinder(images: ImageMap([]), memory: NoMemory())
    let unwound = unwinder.unwindSite(
      returnAddress: 0, sp: .max, rbp: .max, kept: [StackCopy(base: .max, bytes: [])], live: [])
    #expect(unwound.frames.count == 1)
    #expect(!unwound.isComplete && unwound.note != nil)
  }
}

struct NoMemory: MemoryReader {
  func read(_ address: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int { 0 }
}
