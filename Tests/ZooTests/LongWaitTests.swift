import Foundation
import HangReport
import Testing

/// What the notes of long waits say, of the programs of `waits.c`.
@Suite("Long waits") struct LongWaitTests {
  @Test(
    "what the holder does, or who took it meanwhile, is part of the message",
    arguments: [
      ("sleeper", #"held for \d\.\d s by "holder", which sleeps$"#),
      ("computer", #"by "holder", which runs$"#),
      ("parent", #"by "holder", which is in wait4 \(child process \d+ ".*"\)$"#),
      ("pipe", #"which is in read \(descriptor \d+, a pipe whose other end is descriptor \d+"#),
      ("socket", #"in read \(descriptor \d+, a socket from 127.0.0.1:\d+ to 127.0.0.1:\d+\)$"#),
      ("chain", #"by "holder", which waits for mutex 0x\w+, held by "sleeper", which sleeps$"#),
      ("hog", #"passed over at least \d+ times in [\d.]+ s, when others took it \("hog" \d+"#),
      ("readers", #"to write .* 0x\w+, while readers came at least \d+ times in \d\.\d s"#),
    ])
  func message(_ name: String, _ pattern: String) async throws {
    let fixture = try #require(Fixture.table.first { $0.name == "wait-\(name)" })
    let program = try await Builder.shared.program(fixture)
    let result = try await Gate.shared.pass { try Watched.run(fixture, program) }
    let messages = fixture.matching(try #require(result.report)).map(\.message)
    let regex = try Regex(pattern)
    #expect(messages.contains { $0.firstMatch(of: regex) != nil }, "\(messages)")
  }
}
