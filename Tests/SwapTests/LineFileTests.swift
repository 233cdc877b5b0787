import Foundation
import HangReport
import Testing

@testable import Watchdog

@Suite struct LineFileTests {
  /// A folder of its own for a log.
  private func withLog(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder.appendingPathComponent("log").path)
  }

  private func text(_ path: String) -> String {
    (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
  }

  /// The files that a log has become, the oldest first.
  private func parts(of log: String) -> [String] {
    var number = 1
    while FileManager.default.fileExists(atPath: "\(log).\(number)") { number += 1 }
    return (1..<number).reversed().map { "\(log).\($0)" } + [log]
  }

  @Test func appendsWholeLines() throws {
    try withLog { log in
      let file = LineFile(path: log)
      try file.append(Array("one\n".utf8))
      try file.append(Array("two\n".utf8))
      #expect(text(log) == "one\ntwo\n")
    }
  }

  @Test func endsWhatAKilledWriterLeft() throws {
    try withLog { log in
      try "{\"schema".write(toFile: log, atomically: true, encoding: .utf8)
      for line in ["one", "two"] { try LineFile(path: log).append(Array("\(line)\n".utf8)) }
      #expect(text(log) == "{\"schema\none\ntwo\n")
    }
  }

  @Test func putsFullFilesAside() throws {
    try withLog { log in
      let file = LineFile(path: log, rotation: .init(size: 8, kept: 2))
      for line in ["aaa", "bbb", "ccc", "a line that is longer", "d", "e"] {
        try file.append(Array("\(line)\n".utf8))
      }
      #expect(text(log) == "d\ne\n")
      #expect(text(log + ".1") == "a line that is longer\n")
      #expect(text(log + ".2") == "ccc\n")
      #expect(parts(of: log).count == 3)
    }
  }

  @Test func keepsNone() throws {
    try withLog { log in
      let file = LineFile(path: log, rotation: .init(size: 4, kept: 0))
      for line in ["aaa", "bbb"] { try file.append(Array("\(line)\n".utf8)) }
      #expect(text(log) == "bbb\n")
      #expect(parts(of: log) == [log])
    }
  }

  @Test func whatCannotBePutAsideGrowsOn() throws {
    try withLog { log in
      // A folder that is not empty is in the way.
      try FileManager.default.createDirectory(
        atPath: log + ".1/x", withIntermediateDirectories: true)
      let file = LineFile(path: log, rotation: .init(size: 4, kept: 1))
      try file.append(Array("aaa\n".utf8))
      #expect(throws: LineFileError.self) { try file.append(Array("bbb\n".utf8)) }
      #expect(text(log) == "aaa\nbbb\n")
    }
  }

  @Test func aLinkIsNotPutAside() throws {
    try withLog { log in
      let target = log + ".target"
      try FileManager.default.createSymbolicLink(atPath: log, withDestinationPath: target)
      let file = LineFile(path: log, rotation: .init(size: 4, kept: 1))
      for line in ["aaa", "bbb"] { try file.append(Array("\(line)\n".utf8)) }
      #expect(text(target) == "aaa\nbbb\n")
      #expect(!FileManager.default.fileExists(atPath: log + ".1"))
    }
  }

  @Test func somebodyElsesLockIsNotWaitedForForEver() throws {
    try withLog { log in
      let holder = open(log, O_RDWR | O_CREAT, 0o600)
      defer { close(holder) }
      #expect(flock(holder, LOCK_EX) == 0)
      try LineFile(path: log, rotation: .init(size: 1, kept: 1)).append(Array("aaa\n".utf8))
      #expect(text(log) == "aaa\n")
    }
  }

  /// Each writer opens the file for itself, as a process of its own would.
  @Test func severalWritersLoseAndTearNothing() throws {
    try withLog { log in
      let (writers, lines) = (6, 200)
      let file = LineFile(path: log, rotation: .init(size: 3000, kept: 10_000))
      DispatchQueue.concurrentPerform(iterations: writers) { writer in
        for line in 0..<lines {
          let padding = String(repeating: "x", count: (writer * 31 + line * 7) % 120)
          try? file.append(Array("\(writer) \(line) \(padding)\n".utf8))
        }
      }
      let parts = parts(of: log)
      #expect(parts.count > 10)
      for part in parts { #expect(text(part).utf8.count <= 3000) }
      let all = parts.flatMap { text($0).split(separator: "\n") }
      #expect(all.count == writers * lines)
      // Oldest first, each writer's lines are in their order.
      for writer in 0..<writers {
        let own = all.filter { $0.hasPrefix("\(writer) ") }
        for (line, words) in own.enumerated() {
          let padding = String(repeating: "x", count: (writer * 31 + line * 7) % 120)
          #expect(words == "\(writer) \(line) \(padding)")
        }
      }
    }
  }

  /// Somebody else moves the file away all the time.
  @Test(arguments: [nil, 3000]) func survivesLogrotate(size: Int?) throws {
    try withLog { log in
      let (writers, lines) = (3, 300)
      let file = LineFile(path: log, rotation: size.map { .init(size: $0, kept: 10_000) })
      let moved = log + "-moved"
      let isOver = DispatchSemaphore(value: 0)
      let ended = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        var number = 0
        repeat {
          rename(log, "\(moved)-\(number)")
          number += 1
          usleep(2000)
        } while isOver.wait(timeout: .now()) == .timedOut
        ended.signal()
      }
      DispatchQueue.concurrentPerform(iterations: writers) { writer in
        for line in 0..<lines { try? file.append(Array("\(writer) \(line)\n".utf8)) }
      }
      isOver.signal()
      ended.wait()
      let folder = URL(fileURLWithPath: log).deletingLastPathComponent().path
      let all = try FileManager.default.contentsOfDirectory(atPath: folder)
        .flatMap { text("\(folder)/\($0)").split(separator: "\n").map(String.init) }
      let expected = (0..<writers).flatMap { writer in (0..<lines).map { "\(writer) \($0)" } }
      #expect(all.sorted() == expected.sorted())
    }
  }

  @Test func severalProcesses() throws {
    try withLog { log in
      DispatchQueue.concurrentPerform(iterations: 3) { _ in
        let run = try? Fixture.run(["rotating", log], limit: 60)
        #expect(run?.isWhole == true)
        #expect(run?.errors == "")
      }
      let parts = parts(of: log)
      #expect(parts.count > 1)
      let reports = try parts.flatMap { text($0).split(separator: "\n") }
        .map { try HangReport(json: Array($0.utf8)) }
      #expect(reports.count == 15)
      #expect(Dictionary(grouping: reports, by: \.process.pid).values.allSatisfy { $0.count == 5 })
    }
  }

  /// By the limit of a file's size, which cuts a write short as a full disk does.
  @Test func aFullDiskLeavesWholeLines() throws {
    try withLog { log in
      let run = try Fixture.run(["full", log], limit: 60)
      #expect(run.output == "told 1\ntold 2\ntrue\ntold 3\nDONE\n")
      #expect(
        run.errors == "hangcheck: a report's handler failed: \(log): No space left on device\n")
      let reports = try text(log).split(separator: "\n").map {
        try HangReport(json: Array($0.utf8))
      }
      #expect(reports.count == 2)
    }
  }
}
