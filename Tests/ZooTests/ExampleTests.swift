import Foundation
import HangReport
import Testing

/// The programs of Examples: the wrong one is explained, by the text that is kept beside it, and the
/// fixed one is not spoken of. `HANGCHECK_UPDATE=1` writes the kept texts anew.
@Suite("Examples") struct ExampleTests {
  static let folder = Fixture.root.appending(path: "Examples")
  static let names = [
    "BlockedPool", "ForgottenLeave", "HiddenOrder", "JoinUnderLock", "LazyGlobalCycle", "Livelock",
    "LockOrder", "LockedCallback", "LostSignal", "MainWaitsForMain", "OperationCircle",
    "PriorityInversion", "ReadWriteUpgrade", "ReaderBehindBarrier", "SelfLock",
    "SignalBehindWait", "SlowMain", "SyncOntoSelf", "UnlockedRead",
  ]
  static let updates = ProcessInfo.processInfo.environment["HANGCHECK_UPDATE"] == "1"

  @Test("the report is the one that is kept", arguments: names)
  func wrong(_ name: String) async throws {
    let text = try await report(of: name)
    try compare(text, with: Self.folder.appending(path: "\(name)/report.txt"))
  }

  @Test("the mended program is silent", arguments: names)
  func fixed(_ name: String) async throws {
    let program = try await program(name, "fixed")
    let result = try await Gate.shared.pass {
      try Watched.run(["--timeout", "20s"], [program.path])
    }
    #expect(result.outcome.status == .exited(0), "\(result.outcome.errorText)")
    #expect(result.loud.isEmpty)
  }

  @Test("the README shows the report of LockOrder") func readme() async throws {
    let file = Fixture.root.appending(path: "README.md")
    let readme = try String(contentsOf: file, encoding: .utf8)
    let marker = "<!-- report -->\n"
    let parts = readme.components(separatedBy: marker)
    try #require(parts.count == 3, "README.md has two lines \(marker)")
    let text = "```\n\(try await report(of: "LockOrder"))```\n"
    if Self.updates {
      try [parts[0], text, parts[2]].joined(separator: marker)
        .write(to: file, atomically: true, encoding: .utf8)
    } else {
      #expect(parts[1] == text, "HANGCHECK_UPDATE=1 swift test --filter ExampleTests mends it")
    }
    #expect(readme.split(separator: "\n", omittingEmptySubsequences: false).count <= 151)
  }

  /// What hangcheck writes for the wrong program, with whatever differs between runs masked.
  private func report(of name: String) async throws -> String {
    let program = try await program(name, "wrong")
    let source = try String(
      contentsOf: Self.folder.appending(path: "\(name)/wrong.swift"), encoding: .utf8)
    var text = ""
    // Foundation loses, now and then and by itself, the name that a thread is given right after its
    // start.
    for _ in 0..<4
    where text.isEmpty || text.contains("thread …") && source.contains(".start()") {
      let outcome = try await Gate.shared.pass {
        try Child.run(
          [
            Watched.tool, "--color", "never", "--on-deadlock", "terminate", "--timeout", "20s",
            "--fail-on", "warning",
            program.path,
          ], limit: 45)
      }
      // Two that fail in turn may be lucky.
      if name == "Livelock", outcome.status == .exited(0) { continue }
      #expect(outcome.status == .exited(66), "\(outcome.errorText)")
      text = mask(outcome.errorText, program: program.path)
    }
    return text
  }

  /// Those that need the drop-ins are targets of this package.
  private func program(_ name: String, _ variant: String) async throws -> URL {
    let source = Self.folder.appending(path: "\(name)/\(variant).swift")
    let text = try String(contentsOf: source, encoding: .utf8)
    guard text.contains("import InstrumentedLocks") else {
      return try await Builder.shared.program(source, variant: "debug")
    }
    let own = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    return own.deletingLastPathComponent().appending(path: name + variant.capitalized)
  }

  private func compare(_ text: String, with file: URL) throws {
    if Self.updates { try text.write(to: file, atomically: true, encoding: .utf8) }
    let kept = try? String(contentsOf: file, encoding: .utf8)
    let how = "HANGCHECK_UPDATE=1 swift test --filter ExampleTests writes \(file.path)"
    #expect(kept != nil, "\(how)")
    if let kept { #expect(comparable(text, file) == comparable(kept, file), "\(how)") }
  }

  /// How many threads the pool has, and so how many tasks wait, is the machine's.
  private func comparable(_ text: String, _ file: URL) -> String {
    // About a second: one or the other.
    var text = text.replacing("… ms", with: "… s")
    // How many of the pool's threads did it is the machine's.
    text.replace(#/\d+ threads left/#, with: "… threads left")
    // Whether old words in memory keep the proof from being made is chance.
    if file.path.contains("SignalBehindWait") {
      text = text.replacing("possible DEADLOCK", with: "DEADLOCK")
      if let end = text.range(of: "Other threads\n") { text = String(text[..<end.lowerBound]) }
    }
    // What is told while a hang lasts, and how often it was looked at.
    if file.path.contains("SlowMain") {
      text.replace(#/\(since [\d:.]+ UTC\)/#, with: "(since …)")
      text.replace(#/it began at [\d:.]+ UTC/#, with: "it began at …")
      text.replace(#/\d+ of \d+ samples/#, with: "… samples")
      text.replace(#/hangcheck: HANG .* has made no progress for … s .*\n(?!\n)/#, with: "")
    }
    // How often a thread failed is chance.
    text.replace(#/in vain \d+ times/#, with: "in vain … times")
    // Not everybody may have a negative one.
    text.replace(#/nice -?\d+/#, with: "nice …")
    // A thread's name may be gone with it before it is asked for.
    if file.path.contains("UnlockedRead") { text.replace("\"server\"", with: "thread …") }
    guard file.path.contains("BlockedPool") else { return text }
    if let end = text.range(of: "\nWaiting behind") { text.removeSubrange(end.lowerBound...) }
    text.replace(#/\b(task) \d+/#) { "\($0.output.1) …" }
    text.replace(#/\b\d+ (threads|more)\b/#) { "… \($0.output.1)" }
    return text
  }
}

/// Masks addresses, ids, times and places: what differs between two runs of one program.
func mask(_ text: String, program: String) -> String {
  var text = text.replacing(program, with: "./wrong")
    .replacing(Fixture.root.path + "/", with: "")
  text.replace(#/0x[0-9a-fA-F]+/#, with: "0x…")
  text.replace(#/\d{4}-\d\d-\d\dT[\d:.]+Z/#, with: "(time)")
  text.replace(#/\b\d+(\.\d+)? ?(µs|ms|s|seconds|second)\b/#) { match in "… \(match.output.2)" }
  text.replace(#/\b(pid|PID|tid|TID|process|thread|Thread|worker|Worker|LWP) \d+/#) { match in
    "\(match.output.1) …"
  }
  text.replace(#/\+ ?\d+\b/#, with: "+ …")
  return text
}
