import Foundation
import HangReport
import Testing

/// `hangcheck core` with cores of real programs.
@Suite("Cores") struct CoreTests {
  /// A core by gcore of a deadlocked program, and what is done with it.
  private func withCore<T: Sendable>(
    of name: String, _ body: @escaping @Sendable (_ core: String, _ program: String) throws -> T
  ) async throws -> T {
    let fixture = try #require(Fixture.table.first { $0.name == name })
    let program = try await Builder.shared.program(fixture)
    return try await Gate.shared.pass {
      let cores = try CoreFolder()
      defer { cores.remove() }
      let copy = cores.url.appending(path: "program").path
      // By a process of its own: a copy that is open for writing in this one cannot be executed.
      let copied = try Child.run(["/bin/cp", program.path, copy], limit: 30)
      try #require(copied.status == .exited(0), "\(copied.errorText)")
      let target = try Target(Watched.command(fixture, URL(filePath: copy)))
      defer { target.end() }
      usleep(700_000)
      let core = try cores.debuggersCore(of: target.pid)
      target.end()
      return try body(core, copy)
    }
  }

  private static func deadlock(_ result: Watched.Result) -> Finding? {
    result.loud.first { $0.kind == .deadlock }
  }
  /// Whether some place in a finding has a line of the program's own code.
  private static func hasLines(_ finding: Finding?) -> Bool {
    finding?.evidence.contains { evidence in
      evidence.stack.contains { $0.line ?? 0 > 0 && $0.file?.hasSuffix("mutexes.c") == true }
    } ?? false
  }

  @Test(
    "a compressed core is unpacked, and nothing is left of it",
    arguments: [("zstd", ["-q", "-1"]), ("gzip", ["-1"])])
  func compressed(_ tool: String, _ options: [String]) async throws {
    try await withCore(of: "mutex-abba") { core, _ in
      let packed = try Child.run(["/usr/bin/env", tool] + options + [core], limit: 60)
      try #require(packed.status == .exited(0), "\(packed.errorText)")
      let files = FileManager.default
      let folder = URL(filePath: core).deletingLastPathComponent().path
      let name = try #require(
        files.contentsOfDirectory(atPath: folder).first {
          $0.hasPrefix("gcore.") && !core.hasSuffix($0)
        })
      let scratch = folder + "/scratch"
      try files.createDirectory(atPath: scratch, withIntermediateDirectories: true)
      let outcome = try Child.run(
        [Watched.tool, "core", folder + "/" + name], limit: 60, adding: ["TMPDIR": scratch])
      #expect(outcome.status == .exited(66), "\(outcome.errorText)")
      #expect(outcome.outputText.contains("DEADLOCK"))
      #expect(try files.contentsOfDirectory(atPath: scratch).isEmpty)
      let without = try Child.run(
        [Watched.tool, "core", folder + "/" + name], limit: 60, adding: ["PATH": "/nowhere"])
      #expect(without.status == .exited(65))
      #expect(without.errorText.contains("apt-get install \(tool)"))
    }
  }

  @Test("a program that has moved is given as the second argument; another build is told apart")
  func moved() async throws {
    let other = try await Builder.shared.program(
      try #require(Fixture.table.first { $0.name == "swift-abba" }))
    try await withCore(of: "mutex-abba") { core, program in
      #expect(Self.hasLines(Self.deadlock(try Cored.run([core]))))
      let elsewhere = program + ".moved"
      try FileManager.default.moveItem(atPath: program, toPath: elsewhere)
      let missing = try Cored.run([core])
      #expect(Self.deadlock(missing) != nil)
      #expect(!Self.hasLines(Self.deadlock(missing)))
      #expect(
        missing.report?.limits?.contains {
          $0.contains(program) && $0.contains("not here") && $0.contains("second argument")
        } == true)
      #expect(Self.hasLines(Self.deadlock(try Cored.run([core, elsewhere]))))
      let wrong = try Cored.run([core, other.path])
      #expect(Self.deadlock(wrong) != nil)
      #expect(!Self.hasLines(Self.deadlock(wrong)))
      #expect(wrong.report?.limits?.contains { $0.contains("another build") } == true)
    }
  }

  /// Where the system has the kernel write cores into the process's own folder.
  private static let hasKernelCores: Bool = {
    let text = try? String(contentsOfFile: "/proc/sys/kernel/core_pattern", encoding: .utf8)
    let pattern = text?.split(separator: "\n").first ?? ""
    return pattern.hasPrefix("core")
  }()

  @Test(
    "the kernel's core of a program under hangcheck has the record too",
    .enabled(if: hasKernelCores, "the system sends cores elsewhere"))
  func record() async throws {
    let fixture = try #require(Fixture.table.first { $0.name == "rwlock-upgrade" })
    let program = try await Builder.shared.program(fixture)
    let result = try await Gate.shared.pass {
      let cores = try CoreFolder()
      defer { cores.remove() }
      let script = "cd '\(cores.url.path)' && ulimit -c unlimited && exec \"$@\""
      let tool = try Target(
        [
          "/bin/sh", "-c", script, "sh", Watched.tool, "run", "--on-deadlock", "continue",
          "--output",
        ]
          + ["/dev/null", "--"] + Watched.command(fixture, program))
      defer { tool.end() }
      usleep(2_500_000)
      let children = try String(
        contentsOfFile: "/proc/\(tool.pid)/task/\(tool.pid)/children", encoding: .utf8)
      let pid = try #require(Int32(children.split(separator: " ").first ?? ""))
      kill(pid, SIGABRT)
      _ = tool.wait(seconds: 30)
      let name = try #require(
        FileManager.default.contentsOfDirectory(atPath: cores.url.path).first {
          $0.hasPrefix("core")
        })
      return try Cored.run([cores.url.appending(path: name).path])
    }
    let found = try #require(Self.deadlock(result), "\(result.outcome.errorText)")
    #expect(found.evidence.contains { $0.label.contains("took") && !$0.stack.isEmpty })
    #expect(result.report?.limits?.contains { $0.contains("where locks were taken") } != true)
    #expect(result.report?.process.exit?.signal == SIGABRT)
  }

  @Test("a damaged core ends in an error or in a report, and in little memory")
  func damaged() async throws {
    let seed = UInt64.random(in: 1..<1 << 32)
    let problems = try await withCore(of: "swift-abba") { core, _ in
      var random = SeededSteps(state: seed)
      var problems: [String] = []
      let size = try #require(
        try FileManager.default.attributesOfItem(atPath: core)[.size] as? Int)
      let file = try #require(FileHandle(forUpdatingAtPath: core))
      for round in 0..<60 {
        var undo: [(UInt64, Data)] = []
        // The notes of gcore lie at its end.
        let places: [Range<UInt64>] = [
          0..<64, 64..<4096, UInt64(size - 30_000)..<UInt64(size - 8), 4096..<UInt64(size - 8),
        ]
        for _ in 0..<(1 << (random.next() % 9)) {
          let place = places[Int(random.next() % 4)]
          let at = place.lowerBound + random.next() % UInt64(place.count)
          try file.seek(toOffset: at)
          undo.append((at, try file.read(upToCount: 8) ?? Data()))
          try file.seek(toOffset: at)
          let word = [0, .max, 1 << 47, random.next(), 0x7fff_ffff][Int(random.next() % 5)]
          file.write(withUnsafeBytes(of: word) { Data($0) })
        }
        let outcome = try Child.run(
          ["/bin/sh", "-c", "ulimit -v 4000000; exec \"$@\"", "sh", Watched.tool, "core", core],
          limit: 60)
        let isError = outcome.status == .exited(65) && outcome.errors.count { $0 == 10 } == 1
        let isReport = [Child.Status.exited(0), .exited(66)].contains(outcome.status)
        if !isError && !isReport {
          problems.append("round \(round): \(outcome.status) \(outcome.errorText.prefix(300))")
        }
        for (at, bytes) in undo.reversed() {
          try file.seek(toOffset: at)
          file.write(bytes)
        }
      }
      return problems
    }
    #expect(problems.isEmpty, "seed \(seed)")
  }
}

private struct SeededSteps {
  var state: UInt64
  mutating func next() -> UInt64 {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return state
  }
}
